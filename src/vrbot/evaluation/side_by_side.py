"""Several systems over the same turns: a table of values, and every one against the first with both tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vrbot.errors import UsageError
from vrbot.evaluation.comparison import LOWER_IS_BETTER, MEDDG_COLUMNS, VRBOT_COLUMNS
from vrbot.evaluation.pooling import PooledScore
from vrbot.evaluation.significance import Comparison, compare_systems, holm_corrected
from vrbot.evaluation.tables import Cell, Table
from vrbot.evaluation.turns import ScoredTurn, check_same_turns, dialogue_numbers

HEADINGS: Mapping[str, str] = {**VRBOT_COLUMNS, **MEDDG_COLUMNS}
SIGNIFICANT = 0.05
BOOTSTRAP_MARKER, T_TEST_MARKER = "*", "+"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A system by name: its turns, and every metric of them as a pooled score."""

    name: str
    turns: Sequence[ScoredTurn]
    scores: Mapping[str, PooledScore]


@dataclass(frozen=True)
class Contest:
    """Another system against the first under each metric, p-values corrected for the whole table."""

    name: str
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class SideBySide:
    """Values of all systems, and the contests with the first."""

    values: Mapping[str, Mapping[str, float | None]]
    metrics: tuple[str, ...]
    contests: tuple[Contest, ...]
    num_turns: int
    num_dialogues: int
    num_resamples: int


def compare_candidates(
    candidates: Sequence[Candidate], metrics: Sequence[str], *, seed: int = 1, num_resamples: int = 10_000
) -> SideBySide:
    """Paired bootstrap over dialogues and paired t-test of every system against the first, Holm's correction over all.

    Refuses systems that did not answer the same turns. A metric that does not apply to both is shown, not tested.
    """
    if len(candidates) < 2:
        raise UsageError(f"a comparison needs at least two systems, got {len(candidates)}")
    first = candidates[0]
    for other in candidates[1:]:
        try:
            check_same_turns(first.turns, other.turns)
        except UsageError as error:
            raise UsageError(f"{first.name} and {other.name} cannot be compared: {error}") from None
    unknown = [metric for metric in metrics if any(metric not in one.scores for one in candidates)]
    if unknown:
        raise UsageError(f"no metric {unknown[0]!r} here; choose among {', '.join(sorted(first.scores))}")
    values = {one.name: {metric: one.scores[metric].value for metric in metrics} for one in candidates}
    clusters = dialogue_numbers(first.turns)
    tested: list[tuple[str, Comparison]] = []
    for other in candidates[1:]:
        shared = [name for name in metrics if None not in (values[first.name][name], values[other.name][name])]
        if not shared:
            continue
        generator = np.random.default_rng(seed)
        found = compare_systems(first.scores, other.scores, clusters, generator, shared, num_resamples)
        tested += [(other.name, comparison) for comparison in found]
    corrected = holm_corrected([comparison for _, comparison in tested])
    owners = [name for name, _ in tested]
    contests = tuple(
        Contest(one.name, tuple(each for owner, each in zip(owners, corrected, strict=True) if owner == one.name))
        for one in candidates[1:]
    )
    num_dialogues = int(clusters.max()) + 1 if len(clusters) else 0
    return SideBySide(values, tuple(metrics), contests, len(first.turns), num_dialogues, num_resamples)


def values_table(title: str, found: SideBySide, notes: Sequence[str] = ()) -> Table:
    """A row for each system; markers show what differs from the first after Holm's correction."""
    markers = {
        (contest.name, comparison.metric): _marker(comparison)
        for contest in found.contests
        for comparison in contest.comparisons
    }
    best = {metric: _best(metric, [values[metric] for values in found.values.values()]) for metric in found.metrics}
    rows = tuple(
        (
            Cell(name),
            *(_cell(values[metric], best[metric], markers.get((name, metric), "")) for metric in found.metrics),
        )
        for name, values in found.values.items()
    )
    number = sum(len(contest.comparisons) for contest in found.contests)
    tests = (
        f"{found.num_turns} turns of {found.num_dialogues} dialogues. Against {next(iter(found.values))}, p < "
        f"{SIGNIFICANT} after Holm's correction over {number} comparisons: {BOOTSTRAP_MARKER} paired bootstrap "
        f"({found.num_resamples} resamples of dialogues), {T_TEST_MARKER} paired t-test over dialogues"
    )
    return Table(title, ("system", *(HEADINGS.get(name, name) for name in found.metrics)), rows, (tests, *notes))


def contests_table(title: str, found: SideBySide) -> Table:
    """A row for each comparison: the difference with its interval, and the p-values plain and corrected."""
    columns = ("system", "metric", "first", "system's", "difference", "p bootstrap", "p t-test")
    rows = tuple(
        (
            Cell(contest.name),
            Cell(HEADINGS.get(each.metric, each.metric)),
            Cell(each.first),
            Cell(each.second),
            Cell(each.bootstrap.difference, each.bootstrap.low, each.bootstrap.high),
            *(Cell(value) for value in (each.bootstrap.p_value, each.t_test.p_value)),
            *(Cell(value) for value in (each.adjusted_p_bootstrap, each.adjusted_p_t_test)),
        )
        for contest in found.contests
        for each in contest.comparisons
    )
    notes = (f"95 % intervals by bootstrap; corrected by Holm's method over {len(rows)} comparisons",)
    return Table(title, (*columns, "p bootstrap corrected", "p t-test corrected"), rows, notes, decimals=4)


def _marker(comparison: Comparison) -> str:
    bootstrap = BOOTSTRAP_MARKER if comparison.adjusted_p_bootstrap < SIGNIFICANT else ""
    return bootstrap + (T_TEST_MARKER if comparison.adjusted_p_t_test < SIGNIFICANT else "")


def _cell(value: float | None, best: float | None, marker: str) -> Cell:
    return Cell(value, best=value is not None and value == best, marker=marker)


def _best(metric: str, values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2:
        return None
    return min(numbers) if metric in LOWER_IS_BETTER else max(numbers)
