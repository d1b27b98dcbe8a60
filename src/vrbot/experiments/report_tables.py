"""The tables of a report: replies, states and actions, protocol `meddg`, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vrbot.evaluation.comparison import LOWER_IS_BETTER, VRBOT_COLUMNS
from vrbot.evaluation.meddg import MedDGOptions
from vrbot.evaluation.scorecard import Options
from vrbot.evaluation.side_by_side import SIGNIFICANT
from vrbot.evaluation.tables import Cell, Table
from vrbot.experiments.contests import Match
from vrbot.experiments.results import PROTOCOLS, Found, SystemRuns, commit_of
from vrbot.experiments.selections import ToldCategory

REPLY_COLUMNS: Mapping[str, str] = {**VRBOT_COLUMNS, "micro_f1_without_most_frequent": "mi-F1 w/o most frequent"}
LATENT_COLUMNS: Mapping[str, str] = {
    "state_f1": "state F1",
    "state_new_f1": "new in turn",
    "action_f1": "action F1",
    "action_f1_without_most_frequent": "w/o most frequent",
    "action_nats": "action nats",
    "category_accuracy": "category",
    "category_macro_f1": "category macro F1",
    "inference_state_f1": "inference state F1",
    "inference_action_f1": "inference action F1",
    "inference_category_accuracy": "inference category",
    "mep": "MEP",
    "mer": "MER",
    "mep_by_chance": "MEP by chance",
    "perplexity": "perplexity",
}
NOT_IN_BOLD = ("oracle", "published")
NO_MERIT = ("mep_by_chance",)
"""Columns that help to read others; nobody is better by them."""
TESTED = tuple(metric for metric in (*REPLY_COLUMNS, *LATENT_COLUMNS) if metric not in NO_MERIT)
"""What tests of significance are asked about; D@1 and D@2 are no sums over turns, and have none."""


@dataclass(frozen=True, eq=False)
class Tabulated:
    """What all tables of one corpus are made from."""

    title: str
    systems: Sequence[SystemRuns]
    matches: Sequence[Match]
    against: str | None  # the one row that all others are tested against, where the plan names one
    notes: tuple[str, ...] = ()

    @property
    def markers(self) -> dict[tuple[str, str], str]:
        return {(match.system, match.comparison.metric): match.marker for match in self.matches}


def score_table(content: Tabulated, what: str, columns: Mapping[str, str], protocol: str = "vrbot") -> Table | None:
    """Means with 95 % intervals over the seeds; columns that apply to no system, and systems without a run,
    are left out; None if all columns are."""
    shown = {
        key: heading
        for key, heading in columns.items()
        if any(one.values(key, protocol) for one in content.systems if one.role != "published")
    }
    if not shown:
        return None
    best = {key: best_mean(content.systems, key, protocol) for key in shown}
    markers = content.markers if protocol == "vrbot" else {}
    rows = []
    for one in content.systems:
        cells = [_cell(one, key, protocol, best[key], markers.get((one.name, key), "")) for key in shown]
        if one.runs or any(cell.value is not None for cell in cells):
            rows.append((Cell(one.name), Cell(runs_of(one)), *cells))
    options = Options().stated() if protocol == "vrbot" else MedDGOptions().stated()
    notes = (*content.notes, *(_tests(content) if protocol == "vrbot" else ()))
    return Table(
        f"{content.title}: {what}",
        ("system", "runs", *shown.values()),
        tuple(rows),
        (f"Protocol {protocol}: {options}", *notes),
    )


def cost_table(content: Tabulated) -> Table:
    """Turns, parameters, updates and time of the systems that are trained; means over the finished runs."""
    rows = []
    for one in content.systems:
        if one.row is None or not one.runs:
            continue
        results = [run.result for run in one.runs]
        turns = sorted({int(run.figures["scores"]["num_turns"]) for run in one.runs})
        parameters = sorted({int(result["parameters"]) for result in results})
        times = [_mean([float(result[key]) / 60 for result in results]) for key in ("wall_seconds", "cpu_seconds")]
        updates = [_mean([float(result[key]) for result in results]) for key in ("steps", "best_step")]
        judged = [result["validation"]["scores"].get("micro_f1") for result in results]
        validated = _mean([float(score) for score in judged if score is not None])
        cells = (_one(turns), _one(parameters), *updates, validated, *times)
        rows.append((Cell(one.name), Cell(runs_of(one)), *(Cell(value) for value in cells)))
    columns = ("turns", "parameters", "updates", "best update", "validation mi-F1", "minutes", "CPU minutes")
    return Table(f"{content.title}: cost", ("system", "runs", *columns), tuple(rows), content.notes)


def run_table(systems: Sequence[SystemRuns], title: str) -> Table:
    """Every finished run by itself: its seed, the commit it was made with, and its figures under protocol `vrbot`."""
    columns = {**REPLY_COLUMNS, **LATENT_COLUMNS}
    rows = [
        (Cell(one.name), Cell(run.seed), Cell(commit_of(run.result) if run.result else None), *_figures(run, columns))
        for one in systems
        for run in one.runs
    ]
    return Table(title, ("system", "seed", "commit", *columns.values()), tuple(rows))


def best_mean(systems: Sequence[SystemRuns], metric: str, protocol: str = "vrbot") -> float | None:
    """The best mean of at least two systems; what is no system, or not ours to claim, does not count."""
    if metric in NO_MERIT:
        return None
    summaries = [one.summary(metric, protocol) for one in systems if may_be_bold(one)]
    means = [summary.mean for summary in summaries if summary is not None]
    if len(means) < 2:
        return None
    return min(means) if metric in LOWER_IS_BETTER else max(means)


def may_be_bold(one: SystemRuns) -> bool:
    """Not what is no system, not ours to claim, or told the category of the reply it is to give."""
    told = one.row is not None and isinstance(one.row.part, ToldCategory)
    return one.role not in NOT_IN_BOLD and not told


def runs_of(one: SystemRuns) -> str:
    """How many runs are finished, out of how many."""
    return "" if one.role == "published" else f"{len(one.runs)}/{one.expected}"


def _cell(one: SystemRuns, metric: str, protocol: str, best: float | None, marker: str) -> Cell:
    summary = one.summary(metric, protocol)
    if summary is None:
        return Cell(None)
    is_best = may_be_bold(one) and summary.mean == best
    return Cell(summary.mean, summary.low, summary.high, is_best, marker)


def _figures(run: Found, columns: Iterable[str]) -> Iterator[Cell]:
    return (Cell(run.figures[PROTOCOLS["vrbot"]].get(metric)) for metric in columns)


def _tests(content: Tabulated) -> tuple[str, ...]:
    """How the marks came about."""
    matches = content.matches
    if not matches:
        return ()
    opponents = ", ".join(dict.fromkeys(match.opponent for match in matches))
    alike = " that learn from as much" if len({one.group for one in content.systems if one.row is not None}) > 1 else ""
    whom = f"the best trained system of others{alike} in each column, a trivial one where there is none ({opponents})"
    several = max(match.comparison.over_runs.num_pairs for match in matches) > 1
    drawn = "dialogues and seeds (the seeds' own differences being unlikely luck too)" if several else "dialogues"
    about = "" if several else "; of one seed, marks say nothing of another training"
    return (
        f"Each against {content.against or whom}, where the same seeds are finished, p < {SIGNIFICANT} after Holm's "
        f"correction over {len(matches)} tests: * better by paired bootstrap over {drawn}, + better by paired t-test "
        f"over dialogues, ! worse by the bootstrap{about}",
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _one(values: Sequence[int]) -> int | str | None:
    """A number all runs share; a range where they do not."""
    if len(values) > 1:
        return f"{values[0]}-{values[-1]}"
    return values[0] if values else None
