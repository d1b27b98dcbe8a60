"""`vrbot prepare`: from dialogues in files to a corpus that models can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import counting, note, say, say_table
from vrbot.dialogue.preparation import PreparationSettings
from vrbot.dialogue.preparation import prepare as prepare_corpus
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles
from vrbot.dialogue.preparation_report import PreparationReport, most_frequent, percentage
from vrbot.errors import DataError, UsageError
from vrbot.files import atomic_write
from vrbot.knowledge.aliases import DroppedAlias

SHOWN_ALIASES = 5
MANY_ENTITIES = 2_000


# Long only because every option of the verb stands in its signature.
def prepare(
    source: Annotated[Path, typer.Argument(help="A folder with train, valid and test, or one file to divide.")],
    out: Annotated[Path, typer.Option(help="Where the corpus is to stand.")],
    format: Annotated[str | None, typer.Option(help="canonical, release, meddg or meddialog; else guessed.")] = None,
    graph: Annotated[Path | None, typer.Option(help="Triples: CSV (HEAD,RELATION,TAIL) or JSON.")] = None,
    alias: Annotated[Path | None, typer.Option(help="Other names: JSON, alias to name.")] = None,
    trust_aliases: Annotated[
        bool, typer.Option("--trust-aliases", help="Keep every alias; else suspicious ones are dropped.")
    ] = False,
    lexicon: Annotated[Path | None, typer.Option(help="Surface forms: JSON, form to list of entities.")] = None,
    entities: Annotated[Path | None, typer.Option(help="Entities that labels use: CSV (entity,type).")] = None,
    vocabulary: Annotated[Path | None, typer.Option(help="Words and entities: CSV (Word,Is_know).")] = None,
    segmenter: Annotated[str | None, typer.Option(help="rjieba (default), jieba, pkuseg or spaces.")] = None,
    segmenter_model: Annotated[Path | None, typer.Option(help="The directory of pkuseg's model.")] = None,
    vocabulary_size: Annotated[int, typer.Option(help="Words at most, unless --vocabulary lists them.")] = 30_000,
    minimum_count: Annotated[int, typer.Option(help="How often a word must occur in training.")] = 2,
    minimum_mentions: Annotated[
        int, typer.Option(min=0, help="How often an entity must be named in training; rarer ones are left out.")
    ] = 0,
    minimum_labelled: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="In what share of the labelled turns that name it an entity must be a label; others are left out.",
        ),
    ] = 0.0,
    workers: Annotated[int, typer.Option(help="Processes that read.")] = 1,
    dask: Annotated[str | None, typer.Option(help="Read on the Dask cluster at this address instead.")] = None,
    like: Annotated[Path | None, typer.Option(help="Take words, entities, graph and segmenter from a corpus.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out dialogues that cannot be read.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a corpus that is there.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report to this file, too.")] = None,
) -> None:
    """Prepare a corpus: words, entities, labels and graph as arrays, with a report of what they cover.

    The corpus is the same to the byte however many workers there are, and appears only when it is complete.

    \b
    Example:
        vrbot prepare dialogues/ --out corpora/mine --graph graph.csv --alias alias.json --json report.json
        vrbot prepare dialogues/ --out corpora/own --graph graph.csv --alias handwritten.json --trust-aliases
        vrbot prepare dialogues/ --out corpora/fast --graph large.csv --minimum-mentions 5 --minimum-labelled 0.5
        vrbot prepare more.jsonl --out corpora/more --like corpora/mine --workers 4
    """
    if like is not None and segmenter is not None:
        raise UsageError("--like takes the segmenter of the other corpus: leave out --segmenter")
    if dask is not None and workers != 1:
        raise UsageError("--workers and --dask are two ways to share the work: choose one")
    settings = PreparationSettings(
        format=format,
        knowledge=KnowledgeFiles(graph, alias, lexicon, entities, vocabulary),
        trust_aliases=trust_aliases,
        segmenter=segmenter or "rjieba",
        segmenter_model=segmenter_model,
        vocabulary_size=vocabulary_size,
        minimum_count=minimum_count,
        minimum_mentions=minimum_mentions,
        minimum_labelled=minimum_labelled,
        like=like,
    )
    with counting("dialogues") as advance:
        report = prepare_corpus(
            source,
            out,
            settings,
            workers=workers,
            dask=dask,
            overwrite=overwrite,
            on_bad=_say_skipped if skip_bad else None,
            on_progress=advance,
        )
    if json_file is not None:
        with atomic_write(json_file) as file:
            file.write(json.dumps(report.as_dict(), ensure_ascii=False, indent=2) + "\n")
    _say_report(report, like)


def _say_skipped(error: DataError) -> None:
    note(f"skipped: {error}")


def _say_report(report: PreparationReport, like: Path | None) -> None:
    header = ("split", "dialogues", "turns", "tokens", "unknown %", "dialogues with entities %", "utterances %")
    rows = [
        (
            name,
            counts.dialogues,
            counts.turns,
            counts.tokens,
            percentage(counts.unknown_tokens, counts.tokens),
            percentage(counts.dialogues_with_entities, counts.dialogues),
            percentage(counts.utterances_with_entities, counts.utterances),
        )
        for name, counts in (*report.splits.items(), ("all", report.total))
    ]
    say_table(header, rows)
    knowledge = report.knowledge
    say(f"vocabulary: {report.vocabulary:,} words, {report.characters:,} characters")
    say(f"entities: {knowledge.entities:,} with {knowledge.surfaces:,} surface forms")
    _say_named(report, like)
    say(
        f"graph: {knowledge.triples:,} triples between {knowledge.connected_entities:,} entities "
        f"in {knowledge.relations} relations"
    )
    _say_dropped(knowledge.aliases_dropped)
    if report.unlinked:
        worst = ", ".join(f"{name} ({count:,})" for name, count in most_frequent(report.unlinked)[:SHOWN_ALIASES])
        when = "" if like is None else f" when {like} is prepared"
        say(
            f"unlinked labels: {report.unlinked.total():,} times a label uses one of {len(report.unlinked):,} names "
            f"that are no entity, most often {worst}: they are left out of their labels: "
            f"name them with --entities or --alias{when}"
        )
    if report.skipped:
        say(f"skipped dialogues: {report.skipped:,}")
    for repair, count in report.repairs.items():
        say(f"repaired: {count:,} x {repair}")
    say(f"read {report.input_bytes / 1e6:,.1f} MB in {report.seconds:.1f} s")


def _say_named(report: PreparationReport, like: Path | None) -> None:
    """How many entities the training texts name, and what to do about many that they hardly ever do."""
    if not report.splits["train"].dialogues:
        return
    once, times, often = report.named[1], max(report.named), report.named[max(report.named)]
    say(f"  named in training: {once:,}, at least {times} times: {often:,}")
    entities = report.knowledge.entities
    if like is None and entities > MANY_ENTITIES and often < entities / 2:
        say(
            f"  what is hardly ever named can hardly be learnt and makes training slow: --minimum-mentions {times} "
            "leaves it out"
        )


def _say_dropped(dropped: tuple[DroppedAlias, ...]) -> None:
    if not dropped:
        return
    say(f"aliases dropped: {len(dropped):,}, for example")
    known = [row for row in dropped if "not a known entity" not in row.reason]  # idle rows say little
    for row in (known or dropped)[:SHOWN_ALIASES]:
        say(f"  {row.alias} -> {row.target}: {row.reason}")
