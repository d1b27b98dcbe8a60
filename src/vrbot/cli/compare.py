"""`vrbot compare`: runs side by side over the same turns, with tests of the differences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.evaluate import Protocol, Variant, measure_system
from vrbot.cli.printing import note
from vrbot.cli.score_tables import Format, say_scores
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.evaluation.meddg import MedDGOptions, measure_meddg
from vrbot.evaluation.pooling import PooledScore
from vrbot.evaluation.recorded import corpus_vectors, vectors_from_file
from vrbot.evaluation.reply_files import read_replies
from vrbot.evaluation.scorecard import Options, Resources, measure
from vrbot.evaluation.side_by_side import Candidate, SideBySide, compare_candidates, contests_table, values_table
from vrbot.evaluation.systems import System, open_system
from vrbot.evaluation.trivial import measure_references
from vrbot.evaluation.turns import ScoredTurn
from vrbot.files import atomic_write

COMPARED = {
    Protocol.VRBOT: (
        "bleu_2",
        "rouge_2",
        "macro_f1",
        "micro_f1",
        "micro_f1_without_most_frequent",
        "embedding_average",
        "embedding_greedy",
        "state_f1",
        "action_f1",
        "action_f1_without_most_frequent",
        "action_nats",
        "category_accuracy",
    ),
    Protocol.MEDDG: (
        "character_bleu_1",
        "character_bleu_4",
        "character_rouge_1",
        "character_rouge_2",
        "substring_entity_f1",
    ),
}


# Long only because every option of the verb stands in its signature.
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or files of `evaluate --replies`.")],
    metric: Annotated[list[str] | None, typer.Option(help="A metric to compare; repeatable [the usual ones].")] = None,
    form: Annotated[Format, typer.Option("--format", help="How to write the tables.")] = Format.TERMINAL,
    corpus: Annotated[Path | None, typer.Option(help="The corpus [the one the first run learnt from].")] = None,
    split: Annotated[str, typer.Option(help="Which split.")] = "test",
    beam: Annotated[int, typer.Option(min=1, help="Width of the search; 1 is greedy.")] = 5,
    protocol: Annotated[Protocol, typer.Option(help="The measures; never mixed.")] = Protocol.VRBOT,
    variant: Annotated[Variant, typer.Option(help="Of sentence BLEU, under protocol meddg.")] = Variant.MEDDG,
    vectors: Annotated[Path | None, typer.Option(help="word2vec file for EA and EG [trained on the corpus].")] = None,
    references: Annotated[bool, typer.Option("--references", help="Also the trivial systems.")] = False,
    resamples: Annotated[int, typer.Option(min=100, help="Resamples of the bootstrap.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write everything here as JSON.")] = None,
) -> None:
    """Compare systems with the first one: paired bootstrap over dialogues, paired t-test, Holm's correction.

    Folders are evaluated now; files hold replies that were stored. All must be of the same turns.

    \b
    Example:
        vrbot compare runs/seq2seq runs/vrbot --metric micro_f1 --metric action_f1
        vrbot compare seq2seq.jsonl vrbot.jsonl --format latex
    """
    opened = None if corpus is None else Corpus.open(corpus)
    if len(runs) + references < 2:
        raise UsageError("a comparison needs at least two systems: name two runs or files, or add --references")
    collected = _Collected(opened, split, beam)
    systems = [(path, name, collected.open(path)) for path, name in zip(runs, _names(runs), strict=True)]
    for path, name, system in systems:
        collected.add(path, name, system)
    if references:
        collected.add_references()
    candidates = collected.candidates(protocol, MedDGOptions(variant.value), vectors)
    metrics = metric or [
        name
        for name in COMPARED[protocol]
        if name in candidates[0].scores and any(one.scores[name].value is not None for one in candidates)
    ]
    found = compare_candidates(candidates, metrics, seed=seed, num_resamples=resamples)
    options = Options() if protocol is Protocol.VRBOT else MedDGOptions(variant.value)
    values = values_table("Systems side by side", found, (f"Protocol {protocol.value}: {options.stated()}",))
    for table in (values, contests_table(f"Differences from {next(iter(found.values))}", found)):
        say_scores(table, form)
    if json_file is not None:
        _write_json(json_file, found, protocol, options.as_dict())


class _Collected:
    """The turns of each system, entities numbered alike in all of them."""

    def __init__(self, corpus: Corpus | None, split: str, beam: int) -> None:
        self.corpus, self.split, self.beam = corpus, split, beam
        self.turns: dict[str, list[ScoredTurn]] = {}
        self.stored: dict[str, Path] = {}

    def open(self, path: Path) -> System | None:
        """The system of a folder, None for a file of replies; what is neither is refused before anything is done."""
        if path.is_file():
            return None
        system = open_system(path, None if self.corpus is None else self.corpus.directory)
        if self.corpus is None:
            self.corpus = system.corpus
        elif system.corpus.fingerprint != self.corpus.fingerprint:
            raise UsageError(f"{path} is of another corpus than {self.corpus.directory}: give one with --corpus")
        return system

    def add(self, path: Path, name: str, system: System | None) -> None:
        if system is None:
            self.stored[name] = path
            self.turns[name] = []  # keeps the place; read when the corpus, and so the numbers, are known
            return
        note(f"evaluating {path}")
        self.turns[name] = measure_system(name, system, self.split, self.beam)[name].turns

    def add_references(self) -> None:
        if self.corpus is None:
            raise UsageError("the trivial systems learn from a corpus: give it with --corpus")
        for name, one in measure_references(self.corpus, self.split):
            note(f"measured {name}")
            self.turns[name] = one.turns

    def candidates(self, protocol: Protocol, options: MedDGOptions, vectors: Path | None) -> list[Candidate]:
        """Every system with its scores; EA and EG need a corpus."""
        numbers: dict[str, int] = {}
        if self.corpus is not None:
            numbers = {name: number for number, name in enumerate(self.corpus.inventory.names)}
        for name, path in self.stored.items():
            self.turns[name] = read_replies(path, numbers)
        if protocol is Protocol.MEDDG:
            if self.corpus is None:
                raise UsageError("protocol meddg finds entities by the corpus's names: give it with --corpus")
            surfaces = self.corpus.inventory.surfaces
            return [
                Candidate(name, turns, measure_meddg(turns, surfaces, options)) for name, turns in self.turns.items()
            ]
        resources = self._resources(vectors, tuple(numbers))
        return [Candidate(name, turns, _scores(turns, resources)) for name, turns in self.turns.items()]

    def _resources(self, vectors: Path | None, names: Sequence[str]) -> Resources:
        if self.corpus is None:
            return Resources(entity_names=names)
        found = corpus_vectors(self.corpus) if vectors is None else vectors_from_file(self.corpus, vectors)
        return Resources(found, names)


def _scores(turns: list[ScoredTurn], resources: Resources) -> dict[str, PooledScore]:
    return measure(turns, Options(), resources)


def _names(runs: Sequence[Path]) -> list[str]:
    """The last part of each path, where that tells them apart."""
    short = [path.stem if path.is_file() else path.name for path in runs]
    if len(set(runs)) < len(runs):
        raise UsageError("one run is given twice: a system cannot be compared with itself")
    return short if len(set(short)) == len(short) and all(short) else [str(path) for path in runs]


def _write_json(path: Path, found: SideBySide, protocol: Protocol, options: Mapping[str, object]) -> None:
    with atomic_write(path) as file:
        content = {"protocol": protocol.value, "options": options, **asdict(found)}
        json.dump(content, file, ensure_ascii=False, indent=2, allow_nan=False)
        file.write("\n")
