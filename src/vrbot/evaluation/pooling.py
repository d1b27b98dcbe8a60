"""Scores that are a function of sums over turns, so that one definition serves a whole split and any resample of it.

Letters: T turns, K columns of a score's rows, R resamples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PooledScore:
    """A row of K numbers for each turn, [T, K] sparse, and the score of any sum of rows.

    `score_of` takes [..., K] and gives [...]; it is nan where the score does not apply.
    """

    rows: sparse.csr_array[Any]
    score_of: Callable[[Floats], Floats]
    higher_is_better: bool = True

    @property
    def value(self) -> float | None:
        """The score of all turns together; None where it does not apply."""
        score = float(self.score_of(np.asarray(self.rows.sum(axis=0), dtype=np.float64).reshape(-1)))
        return score if math.isfinite(score) else None


@dataclass(frozen=True)
class RetrievalScores:
    """Precision, recall and F1 of predicted sets against gold sets, in percent."""

    precision: PooledScore
    recall: PooledScore
    f1: PooledScore


def dense_rows(columns: Sequence[Iterable[float]]) -> sparse.csr_array[Any]:
    """Rows [T, K] from K columns of T numbers."""
    table = np.array([list(column) for column in columns], dtype=np.float64).T
    return sparse.csr_array(table.reshape(-1, len(columns)))


def mean_score(values: Sequence[float | None]) -> PooledScore:
    """100 times the mean of the values that are there; None where there is none at all."""
    kept = [0.0 if value is None else value for value in values]
    return PooledScore(dense_rows([kept, [float(value is not None) for value in values]]), percent_of_sums)


def percent_of_sums(sums: Floats) -> Floats:
    """[..., 2] with a part and its whole to percent; nan where the whole is 0."""
    return 100 * _ratio(sums[..., 0], sums[..., 1], where_empty=math.nan)


def retrieval_scores(rows: sparse.csr_array[Any]) -> RetrievalScores:
    """Pooled ("micro") scores from rows of (matched, predicted, gold).

    Nothing predicted and nothing gold in all turns: does not apply. Otherwise an undefined part is 0.
    """
    return RetrievalScores(
        PooledScore(rows, lambda sums: _micro(sums, sums[..., 1])),
        PooledScore(rows, lambda sums: _micro(sums, sums[..., 2])),
        PooledScore(rows, lambda sums: _micro(sums, (sums[..., 1] + sums[..., 2]) / 2)),
    )


def macro_scores(rows: sparse.csr_array[Any], minimum_gold_count: int) -> RetrievalScores:
    """Means over items from rows of [matched | predicted | gold], a third of the columns each, one per item.

    Items with fewer than `minimum_gold_count` gold occurrences are left out; none left: does not apply.
    """

    def mean_over_items(score: Callable[[Floats, Floats, Floats], Floats]) -> Callable[[Floats], Floats]:
        def score_of(sums: Floats) -> Floats:
            matched, predicted, gold = np.split(sums, 3, axis=-1)
            counted = gold >= max(minimum_gold_count, 1)
            scores = np.where(counted, score(matched, predicted, gold), 0.0)
            return 100 * _ratio(scores.sum(axis=-1), counted.sum(axis=-1), where_empty=math.nan)

        return score_of

    return RetrievalScores(
        PooledScore(rows, mean_over_items(lambda matched, predicted, gold: _ratio(matched, predicted))),
        PooledScore(rows, mean_over_items(lambda matched, predicted, gold: _ratio(matched, gold))),
        PooledScore(rows, mean_over_items(lambda matched, predicted, gold: _ratio(2 * matched, predicted + gold))),
    )


def _micro(sums: Floats, whole: Floats) -> Floats:
    applies = sums[..., 1] + sums[..., 2] > 0
    return np.where(applies, 100 * _ratio(sums[..., 0], whole), math.nan)


def _ratio(part: Floats, whole: Floats, where_empty: float = 0.0) -> Floats:
    """part / whole, and `where_empty` where the whole is 0."""
    filled = np.where(whole > 0, whole, 1.0)
    return np.where(whole > 0, part / filled, where_empty)
