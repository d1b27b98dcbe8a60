"""`vrbot simulate`: consultations of the embedded clinic, with known truth."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import note, say, say_json, say_table
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
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Simulate consultations with the true state and action of every turn, and the clinic's graph beside them.

    Departments: respiratory, digestive, cardiology, neurology, dermatology, endocrinology, urology, ent.

    \b
    Example:
        vrbot simulate --out clinic --dialogues 2000 --seed 1 --language en
        vrbot prepare clinic --out corpora/clinic --graph clinic/graph.csv --lexicon clinic/lexicon.json \\
            --entities clinic/entities.csv
    """
    settings = SimulationSettings(dialogues, seed, language, difficulty, tuple(hold_out or ()))
    report = simulate_corpus(out, settings, overwrite=overwrite)
    if as_json:
        say_json({"out": str(out), "settings": asdict(settings), **asdict(report)})
        return
    _say_report(report)
    note(NOTICE)


def _say_report(report: SimulationReport) -> None:
    rows = [(split, count, report.turns[split]) for split, count in report.dialogues.items()]
    say_table(("split", "dialogues", "turns"), rows)
    say(f"graph: {report.triples:,} triples over {report.entities:,} entities, {report.aliases:,} other names")
