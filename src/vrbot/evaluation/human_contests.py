"""Two systems before the same judges: wins, ties and losses, and whether they are more than luck."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from vrbot.evaluation.significance import holm


@dataclass(frozen=True)
class Contest:
    """The first system against the second in one respect; p-values are of dialogues, the adjusted ones after Holm."""

    first: str
    second: str
    about: str
    wins: int
    ties: int
    losses: int
    num_dialogues: int
    mean_difference: float
    p_sign: float
    p_wilcoxon: float
    adjusted_p_sign: float
    adjusted_p_wilcoxon: float

    @property
    def num_judgements(self) -> int:
        """All of them."""
        return self.wins + self.ties + self.losses


def contest(first: str, second: str, about: str, differences: Sequence[tuple[str, float]]) -> Contest:
    """From how far the first is ahead in each judgement, with its dialogue."""
    by_dialogue = defaultdict[str, list[float]](list)
    for dialogue, difference in differences:
        by_dialogue[dialogue].append(difference)
    means = [sum(one) / len(one) for _, one in sorted(by_dialogue.items())]
    ahead = [difference for _, difference in differences]
    wins, losses = sum(one > 0 for one in ahead), sum(one < 0 for one in ahead)
    tests = sign_test(means), wilcoxon_test(means)
    mean = sum(means) / len(means) if means else 0.0
    return Contest(first, second, about, wins, len(ahead) - wins - losses, losses, len(means), mean, *tests, *tests)


def sign_test(differences: Sequence[float]) -> float:
    """Two-sided p of as many differences above as below 0, zeros left out (scipy's binomtest); 1 if nothing is left."""
    above, below = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
    return float(stats.binomtest(above, above + below).pvalue) if above + below else 1.0


def wilcoxon_test(differences: Sequence[float]) -> float:
    """Two-sided p of Wilcoxon's signed-rank test (scipy), zeros left out; 1 if nothing is left.

    Exact up to 50 differences of which no two are equally large, else by the normal approximation.
    """
    apart = np.array([one for one in differences if one], dtype=np.float64).round(9)  # thirds of sums are ties too
    return float(stats.wilcoxon(apart).pvalue) if len(apart) else 1.0


def with_holm(contests: Sequence[Contest]) -> tuple[Contest, ...]:
    """The contests of one table with p-values adjusted for their number, each test by itself."""
    signs, ranks = holm([one.p_sign for one in contests]), holm([one.p_wilcoxon for one in contests])
    return tuple(
        replace(one, adjusted_p_sign=sign, adjusted_p_wilcoxon=rank)
        for one, sign, rank in zip(contests, signs, ranks, strict=True)
    )
