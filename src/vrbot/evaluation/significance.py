"""Whether a difference between two systems is more than luck, and how far several seeds differ.

Letters: T turns, C clusters (dialogues), S seeds, R resamples, M scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse, stats

from vrbot.errors import UsageError
from vrbot.evaluation.pooling import Floats, PooledScore
from vrbot.evaluation.turns import Ints

_NUMBERS_AT_ONCE = 4_000_000
"""About so many numbers are held at once while resampling."""

_TIE = 1e-12
"""Differences nearer than this are equal: sums in another order may differ so much."""


@dataclass(frozen=True)
class BootstrapResult:
    """Second minus first, its 95 % interval, and the two-sided p-value; None where nothing can be said."""

    difference: float | None
    low: float | None
    high: float | None
    p_value: float


@dataclass(frozen=True)
class TTestResult:
    """A paired t-test of second minus first over `num_pairs` units."""

    mean_difference: float | None
    p_value: float
    num_pairs: int


@dataclass(frozen=True)
class Comparison:
    """Two systems under one metric; the adjusted p-values are equal to the plain ones until `holm_corrected`.

    `first` and `second` are means over runs, `over_runs` a paired t-test of their values, one for each run.
    """

    metric: str
    first: float | None
    second: float | None
    bootstrap: BootstrapResult
    t_test: TTestResult
    over_runs: TTestResult
    adjusted_p_bootstrap: float
    adjusted_p_t_test: float


@dataclass(frozen=True)
class SeedSummary:
    """Mean of several runs with the 95 % interval of that mean (t distribution); one run has no interval."""

    mean: float
    low: float | None
    high: float | None
    standard_deviation: float | None
    num_seeds: int


def paired_bootstrap(
    first: PooledScore,
    second: PooledScore,
    clusters: Ints,
    generator: np.random.Generator,
    num_resamples: int = 10_000,
    seeds: Ints | None = None,
) -> BootstrapResult:
    """Resamples whole clusters of turns, the same ones for both systems, and scores each resample anew.

    p is the share of resamples, the observed one included, whose difference lies at least as far from the observed
    difference as that lies from 0. Give dialogue numbers as clusters: turns of one dialogue are not independent.
    With `seeds` [T], the runs that turns are of, the score is the mean of the runs' scores, and runs are resampled as
    well: what one lucky run did counts little. Few runs differ less from each other than many would (three by a third),
    so that a lead needs their own t-test besides (`Comparison.over_runs`).
    """
    return _bootstrap_many([first], [second], clusters, generator, num_resamples, seeds)[0]


def paired_t_test(first: Floats, second: Floats) -> TTestResult:
    """Two-sided, over the pairs in which both values are there (not nan).

    Equal values everywhere: p = 1. Fewer than two pairs: p = 1. One same difference everywhere: p = 0.
    """
    differences = (second - first)[~(np.isnan(first) | np.isnan(second))]
    num_pairs = len(differences)
    if num_pairs == 0:
        return TTestResult(None, 1.0, 0)
    mean, spread = float(differences.mean()), float(np.ptp(differences))
    if num_pairs < 2 or np.abs(differences).max() <= _TIE:
        return TTestResult(mean, 1.0, num_pairs)
    if spread <= _TIE:
        return TTestResult(mean, 0.0, num_pairs)
    error = float(differences.std(ddof=1)) / math.sqrt(num_pairs)
    return TTestResult(mean, float(2 * stats.t.sf(abs(mean) / error, num_pairs - 1)), num_pairs)


def unit_values(score: PooledScore, clusters: Ints) -> Floats:
    """The score of each cluster by itself, [C]; nan where it does not apply there."""
    num_clusters = int(clusters.max()) + 1 if len(clusters) else 0
    return score.score_of(np.asarray(cluster_sums(score.rows, clusters, num_clusters).toarray(), dtype=np.float64))


def cluster_sums(rows: sparse.csr_array[Any], clusters: Ints, num_clusters: int) -> sparse.csr_array[Any]:
    """Rows [T, K] added up within clusters, [C, K]."""
    places = (clusters, np.arange(len(clusters)))
    members = sparse.csr_array((np.ones(len(clusters)), places), shape=(num_clusters, len(clusters)))
    return sparse.csr_array(members @ rows)


def compare_systems(
    first: Mapping[str, PooledScore],
    second: Mapping[str, PooledScore],
    clusters: Ints,
    generator: np.random.Generator,
    metrics: Sequence[str],
    num_resamples: int = 10_000,
    seeds: Ints | None = None,
) -> tuple[Comparison, ...]:
    """Every test for each metric; `t_test` pairs the clusters' own values, all their `seeds` together.

    `first` and `second` come from `scorecard.measure` over the same turns (`turns.check_same_turns`), or are tallies of
    the same dialogues.
    """
    if not metrics:
        raise UsageError(f"no metrics to compare: name at least one of {', '.join(sorted(first)) or 'those measured'}")
    unknown = [metric for metric in metrics if metric not in first or metric not in second]
    if unknown:
        raise UsageError(f"no significance test for {', '.join(unknown)}: choose among {', '.join(sorted(first))}")
    pairs = [(first[metric], second[metric]) for metric in metrics]
    bootstraps = _bootstrap_many(
        [one for one, _ in pairs], [two for _, two in pairs], clusters, generator, num_resamples, seeds
    )
    runs = _run_numbers(clusters, seeds)
    comparisons = []
    for metric, (one, two), bootstrap in zip(metrics, pairs, bootstraps, strict=True):
        t_test = paired_t_test(unit_values(one, clusters), unit_values(two, clusters))
        over_runs = paired_t_test(unit_values(one, runs), unit_values(two, runs))
        values = (metric, _mean_of_runs(one, runs), _mean_of_runs(two, runs))
        comparisons.append(Comparison(*values, bootstrap, t_test, over_runs, bootstrap.p_value, t_test.p_value))
    return tuple(comparisons)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down correction: adjusted p-values, in the given order."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return tuple(adjusted)


def holm_corrected(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons of one whole table with p-values adjusted for their number, each test by itself."""
    bootstraps = holm([comparison.bootstrap.p_value for comparison in comparisons])
    t_tests = holm([comparison.t_test.p_value for comparison in comparisons])
    return tuple(
        replace(comparison, adjusted_p_bootstrap=bootstrap, adjusted_p_t_test=t_test)
        for comparison, bootstrap, t_test in zip(comparisons, bootstraps, t_tests, strict=True)
    )


def summarise_seeds(values: Sequence[float]) -> SeedSummary:
    """Mean and 95 % interval of one metric over runs that differ in their seed only."""
    if not values:
        raise UsageError("no values to summarise: give the results of at least one run")
    mean = float(np.mean(values))
    if len(values) == 1:
        return SeedSummary(mean, None, None, None, 1)
    deviation = float(np.std(values, ddof=1))
    half = float(stats.t.ppf(0.975, len(values) - 1)) * deviation / math.sqrt(len(values))
    return SeedSummary(mean, mean - half, mean + half, deviation, len(values))


def _bootstrap_many(
    first: Sequence[PooledScore],
    second: Sequence[PooledScore],
    clusters: Ints,
    generator: np.random.Generator,
    num_resamples: int,
    seeds: Ints | None,
) -> list[BootstrapResult]:
    scores, runs = [*first, *second], _run_numbers(clusters, seeds)
    resampled = _resampled_scores(scores, clusters, generator, num_resamples, runs)  # [R, M]
    results = []
    for place, (one, two) in enumerate(zip(first, second, strict=True)):
        differences = resampled[:, len(first) + place] - resampled[:, place]
        means = _mean_of_runs(one, runs), _mean_of_runs(two, runs)
        results.append(_bootstrap_result(*means, differences[np.isfinite(differences)]))
    return results


def _run_numbers(clusters: Ints, seeds: Ints | None) -> Ints:
    """The runs that turns are of, from 0 [T]; all the same where there are no seeds."""
    return np.zeros_like(clusters) if seeds is None else np.unique(seeds, return_inverse=True)[1]


def _mean_of_runs(score: PooledScore, runs: Ints) -> float | None:
    """The mean of the runs' own scores; None where one has none."""
    values = unit_values(score, runs)
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None


def _bootstrap_result(first: float | None, second: float | None, differences: Floats) -> BootstrapResult:
    if first is None or second is None or not len(differences):
        return BootstrapResult(None, None, None, 1.0)
    observed = second - first
    as_far = np.abs(differences - observed) >= abs(observed) - _TIE
    low, high = np.quantile(differences, [0.025, 0.975]).tolist()
    return BootstrapResult(observed, low, high, float(1 + as_far.sum()) / (1 + len(differences)))


def _resampled_scores(
    scores: Sequence[PooledScore],
    clusters: Ints,
    generator: np.random.Generator,
    num_resamples: int,
    runs: Ints,
) -> Floats:
    """[R, M]: every score of every resample of the clusters, averaged over resampled runs."""
    num_clusters = int(clusters.max()) + 1 if len(clusters) else 0
    if not num_clusters:
        return np.full((num_resamples, len(scores)), math.nan)
    num_runs = int(runs.max()) + 1
    sums = [cluster_sums(score.rows, runs * num_clusters + clusters, num_runs * num_clusters) for score in scores]
    widest = max(num_clusters, *(part.shape[1] for part in sums))
    at_once, parts = max(1, _NUMBERS_AT_ONCE // widest), []
    for start in range(0, num_resamples, at_once):
        size = min(at_once, num_resamples - start)
        of_clusters, of_runs = _draws(num_clusters, size, generator), np.ones((size, 1))
        if num_runs > 1:
            of_runs = _draws(num_runs, size, generator) / num_runs
        found = np.zeros((size, len(scores)))
        for run in range(num_runs):
            own = slice(run * num_clusters, (run + 1) * num_clusters)
            values = np.stack(
                [score.score_of(of_clusters @ part[own]) for score, part in zip(scores, sums, strict=True)], axis=1
            )
            found += np.where(of_runs[:, [run]] > 0, of_runs[:, [run]] * values, 0.0)  # nan only where it was drawn
        parts.append(found)
    return np.concatenate(parts)


def _draws(num_units: int, num_resamples: int, generator: np.random.Generator) -> Floats:
    """How often each resample has each unit, [R, units]."""
    drawn = generator.integers(num_units, size=(num_resamples, num_units))
    flat = (drawn + num_units * np.arange(num_resamples)[:, None]).reshape(-1)
    counts = np.bincount(flat, minlength=num_resamples * num_units)
    return counts.reshape(num_resamples, num_units).astype(np.float64)
