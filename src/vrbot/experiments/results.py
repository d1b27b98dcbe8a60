"""What the jobs of an experiment found, gathered by system; what is not finished is absent, never filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from vrbot.baselines.references.catalogue import REFERENCES as TRIVIAL
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.comparison import LOWER_IS_BETTER
from vrbot.evaluation.obedience import ORACLE
from vrbot.evaluation.significance import SeedSummary, summarise_seeds
from vrbot.experiments.design import SHARED_SECTIONS, Plan, Row
from vrbot.experiments.folder import ORACLE_REPLIES, REFERENCES, REPLIES, ExperimentFolder, Job, Setup
from vrbot.experiments.published import PUBLISHED

Role = Literal["reference", "baseline", "ours", "oracle", "published"]
PROTOCOLS = {"vrbot": "scores", "meddg": "meddg"}
"""Protocol -> key of its scorecard in a result."""


@dataclass(frozen=True)
class Found:
    """One run of a system: its figures under both protocols, its replies, and the whole result behind them."""

    seed: int
    figures: Mapping[str, Mapping[str, Any]]
    replies: Path | None
    result: Mapping[str, Any]


@dataclass(frozen=True)
class SystemRuns:
    """A row of a table: the runs that are finished, out of so many."""

    name: str
    role: Role
    group: str
    runs: tuple[Found, ...]
    expected: int
    row: Row | None = None
    errors: tuple[str, ...] = ()

    def values(self, metric: str, protocol: str = "vrbot") -> list[float]:
        """The figures of the runs, by seed; a run in which the metric does not apply gives none."""
        found = [run.figures.get(PROTOCOLS[protocol], {}).get(metric) for run in self.runs]
        return [float(value) for value in found if value is not None]

    def summary(self, metric: str, protocol: str = "vrbot") -> SeedSummary | None:
        """Mean and interval over the seeds; None where nothing is finished, or the metric does not apply."""
        values = self.values(metric, protocol)
        return summarise_seeds(values) if values else None


def gather(folder: ExperimentFolder, plan: Plan, setup: Setup, corpus: str) -> list[SystemRuns]:
    """Every system of one corpus in the order of a table: trivial ones, the plan's rows, oracles."""
    systems = _trivial(folder, corpus) if plan.references else []
    oracles = []
    for row in plan.rows:
        found, errors = [], []
        for seed in setup.seeds:
            job = Job(corpus, row.name, seed)
            result, error = folder.result(job), folder.failure(job)
            if result is not None:
                found.append(_found(result, folder.job_folder(job) / REPLIES))
            elif error is not None:
                errors.append(f"{job}: {error}")
        runs, expected = tuple(found), len(setup.seeds)
        whole = SystemRuns(row.name, row.role, row.group, runs, expected, row, tuple(errors))
        systems += [whole] if row.asking is None else after_each_round(whole)
        if row.oracle:
            told = tuple(_told(run) for run in runs if "oracle" in run.result)
            oracles.append(SystemRuns(f"{row.name} {ORACLE}", "oracle", row.group, told, expected))
    return systems + [one for one in oracles if one.runs]


def after_each_round(system: SystemRuns) -> list[SystemRuns]:
    """A simulated annotator as one system for each of its rounds, a point of its curve."""
    row = system.row
    assert row is not None
    assert row.asking is not None
    points = []
    for number, dialogues in enumerate(row.asking.dialogues):
        runs = tuple(
            replace(run, figures={**run.figures, PROTOCOLS["vrbot"]: run.result["rounds"][number]["scores"]})
            for run in system.runs
        )
        point = replace(row, name=f"{row.name}-{dialogues}", place=dialogues)
        points.append(replace(system, name=point.name, runs=runs, row=point, errors=() if number else system.errors))
    return points


def published_systems(plan: Plan, corpus: Corpus) -> list[SystemRuns]:
    """What others published on exactly these dialogues; empty for any other corpus."""
    systems = []
    for key in plan.published:
        table = PUBLISHED[key]
        if table.dataset.fits(corpus):
            for name, figures in table.comparable.items():
                run = Found(0, {PROTOCOLS[table.protocol]: figures}, None, {})
                systems.append(SystemRuns(f"{name} ({table.by})", "published", "", (run,), 1))
    return systems


def best_of(systems: Sequence[SystemRuns], metric: str, protocol: str = "vrbot") -> SystemRuns | None:
    """The system with the best mean; of equals the first."""
    means = [(one, one.summary(metric, protocol)) for one in systems]
    ranked = [(summary.mean, one) for one, summary in means if summary is not None]
    if not ranked:
        return None
    sign = -1 if metric in LOWER_IS_BETTER else 1
    return max(ranked, key=lambda pair: sign * pair[0])[1]


def unfairness(systems: Sequence[SystemRuns]) -> list[str]:
    """What finished runs do not share although rows of one table must, as sentences; empty where all is equal."""
    trained = [(system, run) for system in systems for run in system.runs if "config" in run.result]
    fields = {(part, field) for _, run in trained for part in SHARED_SECTIONS for field in run.result["config"][part]}
    holders: dict[tuple[str, str], dict[str, dict[str, list[int]]]] = {}
    for system, run in trained:
        for what, among, value in _must_share(run.result, sorted(fields)):
            having = holders.setdefault((what, among), {}).setdefault(value, {})
            having.setdefault(system.name, []).append(run.seed)
    seeds = {system.name: [run.seed for run in system.runs] for system, _ in trained}
    found = (
        f"{what} differs: " + "; ".join(f"{value} in {_named(having, seeds)}" for value, having in values.items())
        for (what, _), values in holders.items()
        if len(values) > 1
    )
    return list(dict.fromkeys(found))


def _must_share(result: Mapping[str, Any], fields: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """What must be equal, among which runs, and its value here, briefly."""
    part, seed, config = str(result["part"]), result["seed"], result["config"]
    values = ((f"{section}.{field}", config[section].get(field, "no such setting")) for section, field in fields)
    return [
        *((name, part, str(value)) for name, value in values),
        ("the corpus", f"{part} {seed}", str(result["corpus_sha256"])[:12]),
        ("the selection of labels", f"{part} {seed} {result['labels']}", str(result["labels_sha256"])[:12]),
        ("the number of threads", "", str(result["threads"])),
        ("the commit", "", commit_of(result)),
    ]


def commit_of(result: Mapping[str, Any]) -> str:
    """The commit a run was made with, briefly, and whether the sources were changed since."""
    commit, *changed = str(result["environment"].get("commit")).split("+")
    return "+".join((commit[:12], *changed))


def _named(having: Mapping[str, Sequence[int]], seeds: Mapping[str, Sequence[int]]) -> str:
    """Systems, with the seeds where it is not all of theirs."""
    return ", ".join(
        name if list(some) == list(seeds[name]) else f"{name} (seed {', '.join(map(str, some))})"
        for name, some in having.items()
    )


def _trivial(folder: ExperimentFolder, corpus: str) -> list[SystemRuns]:
    job = Job(corpus, REFERENCES, 0)
    result, error = folder.result(job), folder.failure(job)
    home, errors = folder.job_folder(job), () if error is None else (f"{job}: {error}",)
    if result is None:
        return [
            SystemRuns(name, "reference", "", (), 1, None, errors if name == next(iter(TRIVIAL)) else ())
            for name in TRIVIAL
        ]
    return [
        SystemRuns(name, "reference", "", (Found(0, figures, home / f"{name}.jsonl", {}),), 1)
        for name, figures in result["systems"].items()
    ]


def _found(result: Mapping[str, Any], replies: Path) -> Found:
    return Found(result["seed"], {key: result[key] for key in PROTOCOLS.values()}, replies, result)


def _told(run: Found) -> Found:
    assert run.replies is not None
    return Found(run.seed, run.result["oracle"], run.replies.with_name(ORACLE_REPLIES), {})
