"""`vrbot simulate`: consultations of the embedded clinic, with known truth."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import counting, note, say, say_json, say_table
from vrbot.clinic.reference import ReferenceScores, reference_scores
from vrbot.clinic.simulate import NOTICE, SimulationReport, SimulationSettings, simulate_corpus


def simulate(
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    dialogues: Annotated[int, typer.Option(help="How many consultations.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 1,
    language: Annotated[str, typer.Option(help="zh or en.")] = "zh",
    difficulty: Annotated[str, typer.Option(help="easy, normal or hard: how far words hide truth.")] = "normal",
    hold_out: Annotated[
        list[str] | None, typer.Option(help="A department whose dialogues go to test only; may be repeated.")
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Also score simple rules on it (takes longer).")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Simulate consultations with the true state and action of every turn, and the clinic's graph beside them.

    Departments: respiratory, digestive, cardiology, neurology, dermatology, endocrinology, urology, ent.

    \b
    Example:
        vrbot simulate --out clinic --dialogues 2000 --seed 1 --language en --report
        vrbot prepare clinic --out corpora/clinic --graph clinic/graph.csv --lexicon clinic/lexicon.json \\
            --entities clinic/entities.csv --segmenter spaces
    """
    settings = SimulationSettings(dialogues, seed, language, difficulty, tuple(hold_out or ()))
    with counting("dialogues", dialogues) as advance:
        written = simulate_corpus(out, settings, overwrite=overwrite, on_progress=advance)
    scores = reference_scores(settings) if report else None
    if as_json:
        reference = {} if scores is None else {"reference": asdict(scores)}
        say_json({"out": str(out), "settings": asdict(settings), **asdict(written), **reference})
        return
    _say_report(written)
    if scores is not None:
        _say_scores(scores)
    note(NOTICE)


def _say_report(report: SimulationReport) -> None:
    rows = [(split, count, report.turns[split]) for split, count in report.dialogues.items()]
    say_table(("split", "dialogues", "turns"), rows)
    say(f"graph: {report.triples:,} triples over {report.entities:,} entities, {report.aliases:,} other names")


def _say_scores(scores: ReferenceScores) -> None:
    say(f"what simple rules score on the {scores.dialogues:,} valid and test dialogues:")
    tables = {"state F1": scores.state_f1, "keyword F1": scores.keyword_f1, "category %": scores.category_accuracy}
    say_table(("what", "rule", "score"), [(what, *row) for what, rows in tables.items() for row in rows.items()])
