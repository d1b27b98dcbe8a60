"""Experiments as a page shows them: what is finished so far, as tables, curves and open ends.

Only results are read, not the corpora behind them, so a page is ready at once and shows a run that is still going on.
Tests of significance need the replies and take minutes: they are in the report of `vrbot experiment report`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vrbot.errors import VRBotError
from vrbot.evaluation.tables import Table
from vrbot.experiments.design import Plan
from vrbot.experiments.figures import HEADINGS, curve_points
from vrbot.experiments.folder import EXPERIMENT, ExperimentFolder, Setup
from vrbot.experiments.plans import plan_of
from vrbot.experiments.report_tables import LATENT_COLUMNS, REPLY_COLUMNS, Tabulated, cost_table, score_table
from vrbot.experiments.results import SystemRuns, gather

Point = tuple[float, float, float | None, float | None]
"""Place, mean, low and high."""


@dataclass(frozen=True)
class Panel:
    """One metric of a figure: its lines by name."""

    metric: str
    axis: str
    lines: dict[str, list[Point]]


@dataclass(frozen=True, eq=False)
class CorpusView:
    """One corpus of an experiment."""

    corpus: str
    tables: dict[str, Table]
    panels: tuple[Panel, ...]


@dataclass(frozen=True, eq=False)
class ExperimentView:
    """One experiment; `runs` are those finished of those planned, `failures` the error lines of the others."""

    name: str
    plan: Plan
    setup: Setup
    runs: tuple[int, int]
    corpora: tuple[CorpusView, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True)
class Listed:
    """A folder that holds an experiment, or why it cannot be shown."""

    name: str
    path: Path
    title: str
    problem: str = ""


def experiments_in(place: Path) -> list[Listed]:
    """The experiment of a folder, or those of the folders in it, by name."""
    folders = [place] if (place / EXPERIMENT).is_file() else []
    if not folders and place.is_dir():
        folders = sorted(path.parent for path in place.glob(f"*/{EXPERIMENT}"))
    return [_listed(folder) for folder in folders]


def experiment_view(path: Path) -> ExperimentView:
    """Everything that is finished of an experiment."""
    folder = ExperimentFolder(path)
    setup = folder.setup()
    plan = plan_of(setup.plan)
    gathered = {name: gather(folder, plan, setup, name) for name in setup.corpora}
    everything = [system for systems in gathered.values() for system in systems]
    trained = [system for system in everything if system.row is not None]
    runs = sum(len(system.runs) for system in trained), sum(system.expected for system in trained)
    corpora = tuple(_corpus_view(plan, name, systems) for name, systems in gathered.items())
    failures = tuple(dict.fromkeys(error for system in everything for error in system.errors))
    return ExperimentView(path.name, plan, setup, runs, corpora, failures)


def _listed(folder: Path) -> Listed:
    try:
        setup = ExperimentFolder(folder).setup()
        return Listed(folder.name, folder, plan_of(setup.plan).title)
    except VRBotError as error:
        return Listed(folder.name, folder, folder.name, str(error))


def _corpus_view(plan: Plan, corpus: str, systems: Sequence[SystemRuns]) -> CorpusView:
    content = Tabulated(f"{plan.title} · {corpus}", systems, (), plan.against)
    tables = {
        "replies": score_table(content, "replies", REPLY_COLUMNS),
        "latents": score_table(content, "states and actions", LATENT_COLUMNS),
        "cost": cost_table(content) if any(system.runs for system in systems) else None,
    }
    return CorpusView(corpus, {key: table for key, table in tables.items() if table}, _panels(plan, systems))


def _panels(plan: Plan, systems: Sequence[SystemRuns]) -> tuple[Panel, ...]:
    curves = list(dict.fromkeys(row.curve for row in plan.rows if row.curve is not None))
    panels = []
    for metric in plan.drawn:
        lines = {curve: points for curve in curves if (points := curve_points(systems, curve, metric))}
        if lines:
            panels.append(Panel(HEADINGS.get(metric, metric), plan.axis, lines))
    return tuple(panels)
