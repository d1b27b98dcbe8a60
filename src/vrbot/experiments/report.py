"""From the folder of an experiment to tables, figures and sheets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.comparison import MEDDG_COLUMNS
from vrbot.evaluation.scorecard import Resources
from vrbot.evaluation.tables import Table
from vrbot.experiments.contests import Match, hold_contests
from vrbot.experiments.design import Plan, held_out_fields
from vrbot.experiments.entity_vectors import stored_vectors
from vrbot.experiments.figures import draw_curves
from vrbot.experiments.folder import ExperimentFolder, Setup
from vrbot.experiments.plans import plan_of
from vrbot.experiments.published import PUBLISHED
from vrbot.experiments.report_tables import (
    LATENT_COLUMNS,
    REPLY_COLUMNS,
    TESTED,
    Tabulated,
    cost_table,
    run_table,
    score_table,
)
from vrbot.experiments.results import SystemRuns, commit_of, gather, published_systems, unfairness
from vrbot.experiments.savings import savings_table
from vrbot.experiments.selections import held_out_value
from vrbot.experiments.studies import case_table, draw_sheets
from vrbot.files import atomic_write

REPORT = "report"


@dataclass(frozen=True, eq=False)
class CorpusReport:
    """One corpus: every system with its runs, the tests between them, and the tables made from both.

    `runs` is for whoever computes on: it is written and not shown.
    """

    corpus: str
    systems: Sequence[SystemRuns]
    matches: Sequence[Match]
    tables: Mapping[str, Table]
    runs: Table


@dataclass(frozen=True, eq=False)
class Report:
    """All of an experiment that is finished, and what is not."""

    plan: Plan
    setup: Setup
    corpora: Sequence[CorpusReport]
    open_ends: Sequence[str]
    figures: list[Path] = field(default_factory=list)

    @property
    def tables(self) -> list[Table]:
        return [table for one in self.corpora for table in one.tables.values()]

    def markdown(self) -> str:
        """The whole report as one document."""
        parts = [f"# {self.plan.title}", f"Plan `{self.plan.name}` ({self.plan.source}), recipe {self.setup.recipe}."]
        parts += [table.to_markdown() for table in self.tables]
        if self.open_ends:
            parts.append("Not finished:\n\n" + "\n".join(f"- {line}" for line in self.open_ends))
        return "\n\n".join(part.strip() for part in parts) + "\n"


def make_report(folder: ExperimentFolder, plan: Plan | None = None, *, num_resamples: int = 10_000) -> Report:
    """Gathers and tests what is finished; reads results, replies and corpora, and writes nothing but vectors."""
    setup = folder.setup()
    plan = plan or plan_of(setup.plan)
    found = [_corpus_report(folder, plan, setup, name, num_resamples) for name in setup.corpora]
    return Report(plan, setup, found, _open_ends(found))


def write_report(folder: ExperimentFolder, report: Report) -> Path:
    """Writes report.md, .tex and .json, a CSV file for each table and of all runs, figures, sheets: in this folder."""
    out = folder.path / REPORT
    out.mkdir(exist_ok=True)
    _write(out / "report.md", report.markdown())
    _write(out / "report.tex", "\n".join(table.to_latex() for table in report.tables))
    _write(out / "report.json", json.dumps(as_dict(report), ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    for one in report.corpora:
        for name, table in {**one.tables, "runs": one.runs}.items():
            _write(out / f"{one.corpus}-{name}.csv", table.to_csv())
        picture = out / f"{one.corpus}.png"
        if report.plan.drawn and draw_curves(picture, report.plan, one.systems, report.plan.title):
            report.figures.append(picture)
        if report.plan.study == "human":
            corpus = Corpus.open(report.setup.corpora[one.corpus].path)
            draw_sheets(folder.path / one.corpus / "sheets", one.systems, corpus)
    return out


def as_dict(report: Report) -> dict[str, Any]:
    """Every mean, interval and test as plain data."""
    return {
        "plan": report.plan.name,
        "setup": {**asdict(report.setup), "corpora": {name: one.sha256 for name, one in report.setup.corpora.items()}},
        "open_ends": list(report.open_ends),
        "corpora": {one.corpus: _corpus_dict(one) for one in report.corpora},
    }


def _corpus_dict(one: CorpusReport) -> dict[str, Any]:
    metrics = (*REPLY_COLUMNS, *LATENT_COLUMNS)
    return {
        "systems": {
            system.name: {
                "role": system.role,
                "seeds": [run.seed for run in system.runs],
                "expected": system.expected,
                **{name: asdict(found) for name in metrics if (found := system.summary(name)) is not None},
            }
            for system in one.systems
        },
        "tests": [asdict(match) for match in one.matches],
    }


def _corpus_report(folder: ExperimentFolder, plan: Plan, setup: Setup, name: str, num_resamples: int) -> CorpusReport:
    corpus = Corpus.open(setup.corpora[name].path)
    systems = gather(folder, plan, setup, name)
    resources = Resources(stored_vectors(corpus, folder.path / name), corpus.inventory.names)
    curves = any(row.curve is not None for row in plan.rows)
    matches = () if curves else hold_contests(systems, plan, TESTED, resources, num_resamples=num_resamples)
    shown = [*systems, *published_systems(plan, corpus)]
    content = Tabulated(f"{plan.title} on {name}", shown, matches, plan.against, _notes(plan, corpus, systems, setup))
    tables = {
        "replies": score_table(content, "replies", REPLY_COLUMNS),
        "latents": score_table(content, "states and actions", LATENT_COLUMNS),
        "meddg": score_table(content, "replies under protocol meddg", MEDDG_COLUMNS, "meddg"),
        "cost": cost_table(content),
        "case": case_table(systems, corpus, f"{plan.title} on {name}") if plan.study == "case" else None,
        "savings": savings_table(systems, f"{plan.title} on {name}") if plan.study == "annotation" else None,
    }
    there = {key: table for key, table in tables.items() if table is not None}
    return CorpusReport(name, systems, matches, there, run_table(systems, f"{plan.title} on {name}: runs"))


def _notes(plan: Plan, corpus: Corpus, systems: Sequence[SystemRuns], setup: Setup) -> tuple[str, ...]:
    several = any(len(one.runs) > 1 for one in systems)
    means = "means over seeds with 95 % intervals (t distribution)" if several else "one seed each"
    notes = [
        f"{_tested_on(plan, corpus)}, beam {setup.beam}; {means}; runs: finished of planned, and - where a score does "
        "not apply",
    ]
    if plan.references:
        notes.append("Trivial references learn from all labels of the training split; the oracle is told the action")
    other = sorted({PUBLISHED[key].dataset.name for key in plan.published if not PUBLISHED[key].dataset.fits(corpus)})
    if other:
        notes.append(f"Published figures on {', '.join(other)} are of other dialogues or words and are not shown")
    here = [PUBLISHED[key] for key in plan.published if PUBLISHED[key].dataset.fits(corpus)]
    notes += [f"Rows of {table.by} are theirs, words and entities counted by their rules" for table in here]
    left_out = {f"{metric} ({why})" for table in here for metric, why in table.other_rules.items()}
    if left_out:
        notes.append(f"Not shown of what others published, being measured otherwise: {', '.join(sorted(left_out))}")
    commits = sorted({commit_of(run.result) for one in systems for run in one.runs if run.result})
    if commits:
        notes.append(f"Commit {', '.join(commits)}")
    return (*notes, *(f"Not comparable: {fault}" for fault in unfairness(systems)))


def _tested_on(plan: Plan, corpus: Corpus) -> str:
    test, fields = corpus.split("test"), held_out_fields(plan)
    if not fields:
        return f"{test.num_turns} turns of {test.num_sessions} test dialogues"
    field_name, value = held_out_value(corpus, fields)
    return f"Test dialogues with {field_name} {value} only, of which `unseen` rows saw none in training"


def _open_ends(corpora: Sequence[CorpusReport]) -> list[str]:
    lines: list[str] = []
    for one in corpora:
        for system in one.systems:
            lines += system.errors
            absent = system.expected - len(system.runs) - len(system.errors)
            if absent and system.role != "oracle":
                lines.append(f"{one.corpus} {system.name}: {absent} of {system.expected} runs are still to be done")
    return lines


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text)
