"""`vrbot evaluate`: every metric of a run over all turns of a split."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from vrbot.cli.llm import CACHE, Asked, asked_endpoint
from vrbot.cli.printing import note, say, say_table
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import DataError, UsageError
from vrbot.evaluation.comparison import MEDDG_COLUMNS, VRBOT_COLUMNS
from vrbot.evaluation.measuring import Measured, has_action, measure_model
from vrbot.evaluation.meddg import MedDGOptions, MedDGScorecard, meddg_scorecard
from vrbot.evaluation.obedience import ORACLE, measure_oracle
from vrbot.evaluation.recorded import corpus_vectors, vectors_from_file
from vrbot.evaluation.reply_files import write_replies
from vrbot.evaluation.scorecard import Options, Resources, Scorecard, scorecard
from vrbot.evaluation.systems import System, open_system
from vrbot.evaluation.trivial import measure_references
from vrbot.files import atomic_write
from vrbot.model.vrbot import VRBot


class Protocol(StrEnum):
    """How replies are measured."""

    VRBOT = "vrbot"
    MEDDG = "meddg"


class Variant(StrEnum):
    """Whose sentence BLEU, under protocol meddg."""

    MEDDG = "meddg"
    DFMED = "dfmed"


class Convention(StrEnum):
    """What a case without a value counts."""

    ZERO = "zero"
    SKIP = "skip"


VRBOT_BLOCKS: Mapping[str, Mapping[str, str]] = {
    "replies": VRBOT_COLUMNS,
    "states and actions (prior networks)": {
        "state_f1": "state F1",
        "state_new_f1": "new in turn",
        "action_f1": "action F1",
        "action_f1_without_most_frequent": "without most frequent",
        "action_nats": "action nats",
        "category_accuracy": "category",
        "category_macro_f1": "macro F1",
        "mep": "MEP",
        "mer": "MER",
        "mep_by_chance": "MEP by chance",
    },
    "inference networks, likelihood, speed": {
        "inference_state_f1": "state F1",
        "inference_action_f1": "action F1",
        "inference_category_accuracy": "category",
        "perplexity": "perplexity",
        "micro_f1_without_most_frequent": "mi-F1 without most frequent",
        "turns_per_second": "turns/s",
    },
}
MEDDG_BLOCKS: Mapping[str, Mapping[str, str]] = {"replies": MEDDG_COLUMNS}

Card = Scorecard | MedDGScorecard


@dataclass(frozen=True, eq=False)
class Ruler:
    """How every system of one call is measured."""

    protocol: Protocol
    options: Options
    meddg_options: MedDGOptions
    corpus: Corpus
    vectors: Path | None

    def cards(self, systems: Mapping[str, Measured]) -> dict[str, Card]:
        """The scorecard of each system."""
        if self.protocol is Protocol.MEDDG:
            surfaces = self.corpus.inventory.surfaces
            return {name: meddg_scorecard(one.turns, surfaces, self.meddg_options) for name, one in systems.items()}
        vectors = corpus_vectors(self.corpus) if self.vectors is None else vectors_from_file(self.corpus, self.vectors)
        names = self.corpus.inventory.names
        return {
            name: scorecard(one.turns, self.options, Resources(vectors, names, one.seconds or None))
            for name, one in systems.items()
        }


# Long only because every option of the verb stands in its signature.
def evaluate(
    run: Annotated[Path | None, typer.Argument(help="The folder of a run, or of a saved model.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Measure on this corpus [the one it learnt from].")] = None,
    split: Annotated[str, typer.Option(help="Which split.")] = "test",
    protocol: Annotated[Protocol, typer.Option(help="The paper's measures, or those of MedDG and DFMed.")] = (
        Protocol.VRBOT
    ),
    beam: Annotated[int, typer.Option(min=1, help="Width of the search; 1 is greedy.")] = 5,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write everything here as JSON.")] = None,
    replies: Annotated[Path | None, typer.Option(help="Also write every turn's reply and scores (JSON lines).")] = None,
    vectors: Annotated[Path | None, typer.Option(help="word2vec file for EA and EG [trained on the corpus].")] = None,
    references: Annotated[bool, typer.Option("--references", help="Also measure the trivial systems.")] = False,
    stop_words: Annotated[Path | None, typer.Option(help="File of words to leave out of B@2, R@2, D@1, D@2.")] = None,
    minimum_gold_count: Annotated[
        int | None, typer.Option(min=1, help="Macro scores over entities this frequent [1].")
    ] = None,
    entityless_replies: Annotated[Convention | None, typer.Option(help="In EA and EG [zero].")] = None,
    references_without_pairs: Annotated[Convention | None, typer.Option(help="In R@2 [skip].")] = None,
    variant: Annotated[Variant | None, typer.Option(help="Of sentence BLEU, under protocol meddg [meddg].")] = None,
    llm: Annotated[
        str | None, typer.Option(help="Also measure the OpenAI-compatible endpoint at this address.")
    ] = None,
    llm_set: Annotated[
        list[str] | None, typer.Option(help="Of the endpoint: model=NAME, timeout=60, concurrency=4; repeatable.")
    ] = None,
    llm_informed: Annotated[bool, typer.Option("--llm-informed", help="Tell it the run's state and action.")] = False,
    llm_cache: Annotated[Path, typer.Option(help="Where the endpoint's answers are kept.")] = CACHE,
) -> None:
    """Measure a run on all turns of a split; the same run gives the same numbers every time.

    An endpoint is sent the dialogues' texts; its key is read from the environment variable VRBOT_LLM_API_KEY.

    \b
    Example:
        vrbot evaluate runs/first --json scores.json --replies replies.jsonl
        vrbot evaluate --references --corpus corpora/clinic
        vrbot evaluate --corpus corpora/clinic --llm http://127.0.0.1:8000/v1 --llm-set model=NAME
    """
    papers = {
        "stop-words": stop_words,
        "vectors": vectors,
        "minimum-gold-count": minimum_gold_count,
        "entityless-replies": entityless_replies,
        "references-without-pairs": references_without_pairs,
    }
    _refuse_of_the_other(protocol, papers, {"variant": variant})
    asked = asked_endpoint(llm, llm_set or [], llm_cache, run, informed=llm_informed)
    options = Options(
        _read_words(stop_words),
        minimum_gold_count or 1,
        (entityless_replies or Convention.ZERO).value,
        (references_without_pairs or Convention.SKIP).value,
    )
    system = None if run is None else open_system(run, corpus)
    if system is None and not ((references or asked is not None) and corpus is not None):
        raise UsageError(
            "give a run to measure, or --corpus with --references (the trivial systems) or --llm URL (an endpoint)"
        )
    measured_on = system.corpus if system is not None else Corpus.open(corpus or Path())
    measured_on.split(split)  # refuses a name that is no split before anything is measured
    measured: dict[str, Measured] = {}
    if system is not None and run is not None:
        measured |= measure_system(run.name or str(run), system, split, beam, with_oracle=references)
    if asked is not None:
        measured[asked.name] = asked.measure(measured_on, split)
    if references:
        for name, one in measure_references(measured_on, split):
            note(f"measured {name}")
            measured[name] = one
    ruler = Ruler(protocol, options, MedDGOptions((variant or Variant.MEDDG).value), measured_on, vectors)
    cards = ruler.cards(measured)
    _say_cards(cards, protocol, f"{measured_on.directory} {split}")
    facts = _facts(run, system, measured_on, split, beam)
    if json_file is not None:
        _write_json(json_file, cards, facts, asked, with_references=references)
    if replies is not None:
        first = next(iter(measured))
        write_replies(replies, measured[first].turns, measured_on.inventory.names)
        if asked is not None and asked.name != first:
            beside = replies.with_name(f"{replies.stem}.llm{replies.suffix}")
            write_replies(beside, measured[asked.name].turns, measured_on.inventory.names)


def measure_system(
    name: str, system: System, split: str, beam: int, *, with_oracle: bool = False
) -> dict[str, Measured]:
    """A run by name, and beside it what its generator would reach if it were told the gold action."""
    decoding = system.config.decoding.model_copy(update={"beam": beam})
    found = {name: measure_model(system.model, system.corpus, split, system.config, decoding)}
    if with_oracle and isinstance(system.model, VRBot) and has_action(system.model):
        found[f"{name} {ORACLE}"] = measure_oracle(system.model, system.corpus, split, system.config, decoding)
    return found


def _read_words(path: Path | None) -> frozenset[str]:
    if path is None:
        return frozenset()
    try:
        return frozenset(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path, None, "file", f"cannot be read ({error})", "give a text file of words") from error


def _refuse_of_the_other(protocol: Protocol, papers: Mapping[str, object], meddgs: Mapping[str, object]) -> None:
    """Options that count under one protocol only are refused under the other."""
    for own, options in ((Protocol.VRBOT, papers), (Protocol.MEDDG, meddgs)):
        given = [f"--{name}" for name, value in options.items() if value is not None]
        if given and protocol is not own:
            raise UsageError(f"{given[0]} counts under --protocol {own.value} only: leave it out, or choose that one")


def _say_cards(cards: Mapping[str, Card], protocol: Protocol, what: str) -> None:
    first = next(iter(cards.values()))
    say(f"{what}: {first.num_turns:,} turns")
    contents = {name: card.as_dict() for name, card in cards.items()}
    for title, columns in (VRBOT_BLOCKS if protocol is Protocol.VRBOT else MEDDG_BLOCKS).items():
        shown = _applying(columns, list(contents.values()))
        if shown:
            say()
            say_table(
                (title, *shown.values()), [(name, *(one[key] for key in shown)) for name, one in contents.items()]
            )
    say()
    say(f"Protocol {first.protocol}: {first.options.stated()}.")
    values = next(iter(contents.values()))
    if protocol is Protocol.VRBOT:
        frequent = f"most frequent entity {values['most_frequent_entity']}, keyword {values['most_frequent_keyword']}"
        say(f"Vectors for EA and EG {values['vectors']}; {frequent}.")
    if any(name.endswith(ORACLE) for name in cards):
        say(f"{ORACLE}: an upper bound, told the physician's action; not a system.")


def _applying(columns: Mapping[str, str], contents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The columns that apply to any of the systems."""
    return {key: heading for key, heading in columns.items() if any(one.get(key) is not None for one in contents)}


def _facts(run: Path | None, system: System | None, corpus: Corpus, split: str, beam: int) -> dict[str, Any]:
    return {
        "run": None if run is None else str(run),
        "model": None if system is None else system.kind,
        "corpus": str(corpus.directory),
        "corpus_fingerprint": corpus.fingerprint,
        "split": split,
        "beam": beam,
    }


def _write_json(
    path: Path, cards: Mapping[str, Card], facts: Mapping[str, Any], asked: Asked | None, *, with_references: bool
) -> None:
    """The run's keys at the top; an endpoint's under `llm`, the trivial systems' under `references`, if asked for."""
    contents = {name: card.as_dict() for name, card in cards.items()}
    own = {} if facts["run"] is None else contents.pop(next(iter(contents)))
    beside: dict[str, Any] = {}
    if asked is not None:
        beside["llm"] = {**contents.pop(asked.name), "settings": asked.facts()}
    if with_references:
        beside["references"] = contents
    with atomic_write(path) as file:
        json.dump({**own, **facts, **beside}, file, ensure_ascii=False, indent=2, allow_nan=False)
        file.write("\n")
