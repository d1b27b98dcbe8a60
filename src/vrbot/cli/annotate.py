"""Labels almost for free: propose them for finished dialogues, hand them to annotators, take what they decided."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrbot.cli.out_file import check_not_inside, check_out_file, check_out_folder, same_file
from vrbot.cli.printing import note, say, say_table
from vrbot.errors import DataError, UsageError, VRBotError

if TYPE_CHECKING:
    from vrbot.dialogue.corpus import Corpus
    from vrbot.dialogue.session import Session
    from vrbot.explain.autolabel import AutoLabeller
    from vrbot.explain.given_labels import GivenLabel
    from vrbot.explain.proposals import ProposedSession

HELP = """Labels almost for free: propose them for finished dialogues, hand them to annotators, take what they decided.

\b
Example:
    vrbot annotate propose runs/first --corpus corpora/chats --out proposed.jsonl --first 50
    vrbot annotate export proposed.jsonl --format label-studio --out tasks.json
    vrbot annotate import annotated.json --corpus corpora/chats --out labelled
    vrbot prepare labelled --out corpora/labelled --like corpora/chats
"""
SETTINGS = {"help_option_names": ["-h", "--help"]}
annotate = typer.Typer(help=HELP, no_args_is_help=True, context_settings=SETTINGS)


class Order(StrEnum):
    """Which dialogues come first."""

    ACTIVE = "active"
    RANDOM = "random"
    CORPUS = "corpus"


class FileFormat(StrEnum):
    """How annotators get their work."""

    JSONL = "jsonl"
    LABEL_STUDIO = "label-studio"


@annotate.command(context_settings=SETTINGS)
def propose(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or of a saved model.")],
    out: Annotated[Path, typer.Option(help="Where the proposals are to stand (.jsonl).")],
    corpus: Annotated[Path | None, typer.Option(help="The dialogues [the run's own corpus].")] = None,
    split: Annotated[str, typer.Option(help="Which split.")] = "train",
    first: Annotated[int | None, typer.Option(min=1, help="Only so many dialogues [all].")] = None,
    order: Annotated[Order, typer.Option(help="Which dialogues come first.")] = Order.RANDOM,
    seed: Annotated[int, typer.Option(min=0, help="Of the order.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
) -> None:
    """Propose states and actions for the turns that lack them, dialogue by dialogue in the order asked for.

    The inference networks read the physician's answer. A dialogue whose turns all have their labels is left out;
    where all are, no file is written.

    \b
    Example:
        vrbot annotate propose runs/first --corpus corpora/chats --out proposed.jsonl --first 50
    """
    from vrbot.dialogue.batching import limits_of
    from vrbot.evaluation.systems import open_system
    from vrbot.explain.autolabel import AutoLabeller
    from vrbot.explain.proposals import write_proposals

    check_out_file(out, overwrite=overwrite)
    system = open_system(run, corpus)
    check_not_inside(out, run, system.corpus.directory)
    labeller = AutoLabeller(system.model, limits_of(system.config.network))  # type: ignore[arg-type]
    ranked = _ranked(labeller, system.corpus, split, order, seed)[:first]
    if not ranked:
        say(f"every turn of {split} is labelled: nothing to propose")
        return
    proposed = labeller.propose(system.corpus, split, system.kind, ranked)
    write_proposals(out, proposed)
    if labeller.copied:
        note(f"{' and '.join(labeller.copied)} repeat what the texts name: this model cannot learn to correct them")
    _say_proposed(proposed, labeller)
    say(f"{len(proposed):,} dialogues of {split}, {order.value} order: {out}")


@annotate.command(context_settings=SETTINGS)
def export(
    proposals: Annotated[Path, typer.Argument(help="What `vrbot annotate propose` wrote.")],
    out: Annotated[Path, typer.Option(help="The file for the annotators.")],
    form: Annotated[FileFormat, typer.Option("--format", help="How to write it.")] = FileFormat.LABEL_STUDIO,
    first: Annotated[int | None, typer.Option(min=1, help="Only so many dialogues [all].")] = None,
    setup: Annotated[Path | None, typer.Option(help="Also write Label Studio's labelling configuration here.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Write proposals for annotators: Label Studio tasks with predictions, or canonical lines to edit by hand.

    \b
    Example:
        vrbot annotate export proposed.jsonl --out tasks.json --setup labelling.xml
        vrbot annotate export proposed.jsonl --format jsonl --first 20 --out for-ann.jsonl
    """
    from vrbot.explain.label_studio import SETUP, write_tasks
    from vrbot.explain.proposals import read_proposals, write_proposals
    from vrbot.files import atomic_write

    check_out_file(out, proposals, overwrite=overwrite)
    if setup is not None:
        if same_file(setup, out):
            raise UsageError(f"--setup and --out are both {out}: give each a file of its own")
        check_out_file(setup, proposals, overwrite=overwrite or _holds(setup, SETUP), option="--setup")
    chosen = list(read_proposals(proposals))[:first]
    if not chosen:
        fix = "give a file that `vrbot annotate propose` wrote"
        raise DataError(proposals, None, "file", "holds no dialogues", fix)
    if form is FileFormat.JSONL:
        say(f"{write_proposals(out, chosen):,} dialogues: {out}")
    else:
        say(f"{write_tasks(out, chosen):,} turns of {len(chosen):,} dialogues: {out}")
    if setup is not None:
        with atomic_write(setup) as file:
            file.write(SETUP)


@annotate.command("import", context_settings=SETTINGS)
def take(
    files: Annotated[list[Path], typer.Argument(help="Annotated files: Label Studio's JSON, or edited lines.")],
    corpus: Annotated[Path, typer.Option(help="The corpus the dialogues are from.")],
    out: Annotated[Path, typer.Option(help="A new folder for the dialogues with all their labels.")],
    proposals: Annotated[Path | None, typer.Option(help="Proposals to accept where nobody labelled.")] = None,
    accept: Annotated[float | None, typer.Option(min=0, max=1, help="From which confidence on.")] = None,
) -> None:
    """Join what annotators decided with a corpus's dialogues: a source for `vrbot prepare`.

    Labels that were there stay; one that was changed is kept beside the new one. Each label says who it is by.

    \b
    Example:
        vrbot annotate import annotated.json --corpus corpora/chats --out labelled
        vrbot annotate import edited.jsonl --corpus corpora/chats --out more --proposals proposed.jsonl --accept 0.95
    """
    from vrbot.dialogue.corpus import Corpus
    from vrbot.explain.given_labels import join_labels
    from vrbot.explain.proposals import read_proposals

    if (proposals is None) != (accept is None):
        raise UsageError("--proposals and --accept go together: which proposals, and from which confidence on")
    check_out_folder(out)
    _refuse_twice(files)
    opened = Corpus.open(corpus)
    splits = {name: opened.sessions(name) for name in opened.split_names}
    source = {session.id: session for sessions in splits.values() for session in sessions}
    taken = {path: _read_given(path, source) for path in files}
    untouched = [path for path, labels in taken.items() if not labels]
    if untouched and proposals is None:
        raise _without_labels(untouched[0])
    given = [label for labels in taken.values() for label in labels]
    proposed = [] if proposals is None else list(read_proposals(proposals))
    joined = join_labels(splits, given, proposed, accept)
    if not any(joined.counts.values()):
        raise VRBotError(
            f"no label was found in {untouched[0]}, and no proposal of {proposals} fills a gap with a confidence of "
            f"{accept} or more: lower --accept, or label some turns"
        )
    joined.write(out)
    for path in untouched:
        note(f"no label was found in {path}: only proposals were taken for its dialogues")
    _note_unknown(given, opened)
    say_table(("labels", "number"), sorted(joined.counts.items()))
    say(f"written to {out}; next: vrbot prepare {out} --out FOLDER --like {corpus}")


def _ranked(labeller: AutoLabeller, corpus: Corpus, split_name: str, order: Order, seed: int) -> list[int]:
    """The dialogues with something left to label, best first."""
    import numpy as np

    from vrbot.explain.active_learning import active_order, random_order, turn_features

    split = corpus.split(split_name)
    labels = split.labels
    whole = labels.state_known
    if "category" in labeller.kinds:
        answered = np.diff(split.texts.utterance_offsets)[1::2] > 0  # without an answer there is no action to label
        whole = whole & (((labels.category >= 0) & labels.keywords_known) | ~answered)
    done = [
        session
        for session in range(split.num_sessions)
        if whole[split.session_offsets[session] : split.session_offsets[session + 1]].all()
    ]
    if len(done) == split.num_sessions:
        return []
    if order is Order.CORPUS:
        return [session for session in range(split.num_sessions) if session not in set(done)]
    if order is Order.RANDOM:
        return random_order(split.session_ids, done, seed=seed)
    unsure = labeller.uncertainty(split)
    return active_order(turn_features(split), split.session_ids, unsure, done, seed=seed)


def _refuse_twice(files: list[Path]) -> None:
    for number, path in enumerate(files):
        if any(same_file(path, earlier) for earlier in files[:number]):
            raise UsageError(f"{path} is given twice: name each file once")


def _holds(path: Path, text: str) -> bool:
    """Whether a file has exactly this text, so that writing it again loses nothing."""
    return path.is_file() and path.read_bytes() == text.encode()


def _without_labels(path: Path) -> VRBotError:
    """What is the matter with a file that holds no label, and the way out."""
    if path.suffix.lower() != ".jsonl":
        why = "nobody has submitted an annotation; annotate its tasks, then export them from Label Studio as JSON"
    elif not path.read_bytes().strip():
        why = "it holds no dialogues; give the file that somebody wrote labels into"
    else:
        why = (
            "its turns have no label that the corpus does not have; write labels into them, "
            f"or accept what is proposed with --proposals {path} --accept CONFIDENCE"
        )
    return VRBotError(f"no label was found in {path}: {why}")


def _read_given(path: Path, source: dict[str, Session]) -> list[GivenLabel]:
    from vrbot.explain.given_labels import labels_written_into
    from vrbot.explain.label_studio import read_annotations
    from vrbot.explain.proposals import read_proposals

    if path.suffix.lower() == ".jsonl":
        return list(labels_written_into(read_proposals(path), source))
    return read_annotations(path)


def _note_unknown(given: list[GivenLabel], corpus: Corpus) -> None:
    """Names that are no entity of the corpus: `vrbot prepare` would leave them out."""
    names = Counter(name for label in given if label.kind != "category" for name in label.value)
    unknown = [name for name in names if not corpus.inventory.ids_of(name)]
    if unknown:
        note(f"{len(unknown)} names are no entities of the corpus and will not be linked, such as {unknown[0]}")


def _say_proposed(proposed: list[ProposedSession], labeller: AutoLabeller) -> None:
    rows = []
    for kind in labeller.kinds:
        found = [turn[kind].confidence for one in proposed for turn in one.turns if kind in turn]
        mean = sum(found) / len(found) if found else None
        how = "copied" if kind in labeller.copied else "inferred"
        rows.append((kind, how, len(found), mean))
    say_table(("kind", "how", "proposed", "mean confidence"), rows)
