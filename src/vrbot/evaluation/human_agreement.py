"""How far raters agree: Cohen's kappa of every pair of raters, plain and quadratic, and its mean over pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sklearn.metrics import cohen_kappa_score


@dataclass(frozen=True)
class PairAgreement:
    """Two raters over the units both judged; a kappa is None where both gave one and the same answer throughout."""

    first: str
    second: str
    num_shared: int
    agreement: float  # percent of equal answers
    kappa: float | None
    quadratic_kappa: float | None


@dataclass(frozen=True)
class Agreement:
    """All pairs of raters that share a unit, and the means over the pairs whose kappa is defined."""

    question: str
    pairs: tuple[PairAgreement, ...]
    agreement: float | None
    kappa: float | None
    quadratic_kappa: float | None


def cohen_kappa(
    first: Sequence[int], second: Sequence[int], answers: Sequence[int], *, quadratic: bool = False
) -> float | None:
    """Agreement beyond chance of two raters over the same units, by scikit-learn; `answers` are all possible ones.

    With one and the same answer throughout by both, chance alone gives full agreement and kappa is 0 / 0: None. It is
    None as well without units. The quadratic kappa counts a disagreement by the square of its distance.
    """
    if not first or len({*first, *second}) == 1:
        return None
    return float(cohen_kappa_score(first, second, labels=list(answers), weights="quadratic" if quadratic else None))


def rater_agreement(question: str, given: Mapping[str, Mapping[str, int]], answers: Sequence[int]) -> Agreement:
    """The agreement on one question; `given` holds each rater's answers by unit."""
    pairs = [
        _pair(one, other, given[one], given[other], answers)
        for one, other in combinations(sorted(given), 2)
        if given[one].keys() & given[other].keys()
    ]
    return Agreement(
        question,
        tuple(pairs),
        _mean([pair.agreement for pair in pairs]),
        _mean([pair.kappa for pair in pairs]),
        _mean([pair.quadratic_kappa for pair in pairs]),
    )


def _pair(
    one: str, other: str, first: Mapping[str, int], second: Mapping[str, int], answers: Sequence[int]
) -> PairAgreement:
    shared = sorted(first.keys() & second.keys())
    left, right = [first[unit] for unit in shared], [second[unit] for unit in shared]
    equal = sum(mine == yours for mine, yours in zip(left, right, strict=True))
    kappas = (cohen_kappa(left, right, answers), cohen_kappa(left, right, answers, quadratic=True))
    return PairAgreement(one, other, len(shared), 100 * equal / len(shared), *kappas)


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None
