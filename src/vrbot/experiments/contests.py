"""Which differences of a table are more than luck: rows against the best of the others, over the same turns.

Systems of which the same seeds are finished are tested. Whole dialogues are resampled, and whole seeds, and the seeds'
own differences must agree: what three trained models have in common with the next three counts, not what these three
happened to learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vrbot.evaluation.comparison import LOWER_IS_BETTER
from vrbot.evaluation.reply_files import read_replies
from vrbot.evaluation.scorecard import Resources
from vrbot.evaluation.side_by_side import BOOTSTRAP_MARKER, SIGNIFICANT, T_TEST_MARKER
from vrbot.evaluation.significance import Comparison, compare_systems, holm_corrected
from vrbot.evaluation.tallies import SUFFIX, Tallies, check_same_tallied, read_tallies, stacked, tallies_of
from vrbot.experiments.design import Plan
from vrbot.experiments.results import SystemRuns, best_of

WORSE_MARKER = "!"


@dataclass(frozen=True)
class Match:
    """A system against its opponent under one metric; p-values are corrected for the whole table."""

    system: str
    opponent: str
    comparison: Comparison

    @property
    def marker(self) -> str:
        """Shows what is significant: better by either test, or worse by the bootstrap.

        The bootstrap counts where the seeds' own differences, if there are several, are unlikely to be luck as well.
        """
        comparison = self.comparison
        difference = comparison.bootstrap.difference or 0.0
        better = difference < 0 if comparison.metric in LOWER_IS_BETTER else difference > 0
        seeds = comparison.over_runs
        by_seeds = seeds.num_pairs < 2 or seeds.p_value < SIGNIFICANT
        by_bootstrap = comparison.adjusted_p_bootstrap < SIGNIFICANT and by_seeds
        if not better:
            return WORSE_MARKER if by_bootstrap and difference else ""
        same_way = (comparison.t_test.mean_difference or 0.0) * difference > 0
        by_t_test = comparison.adjusted_p_t_test < SIGNIFICANT and same_way
        return (BOOTSTRAP_MARKER if by_bootstrap else "") + (T_TEST_MARKER if by_t_test else "")


def opponent_of(system: SystemRuns, systems: Sequence[SystemRuns], plan: Plan, metric: str) -> SystemRuns | None:
    """Whom a system is tested against: the plan's one row, or the best trained system of others in its group.

    Trivial references, which have every label and write no reply of their own, only where no other is trained for it.
    """
    if plan.against is not None:
        fixed = [one for one in systems if one.name == plan.against and one.runs]
        return fixed[0] if fixed and system.role in ("ours", "baseline") and system.name != plan.against else None
    if system.role != "ours":
        return None
    trained = [one for one in systems if one.role == "baseline" and one.group == system.group]
    return best_of(trained, metric) or best_of([one for one in systems if one.role == "reference"], metric)


def hold_contests(
    systems: Sequence[SystemRuns],
    plan: Plan,
    metrics: Sequence[str],
    resources: Resources,
    *,
    seed: int = 1,
    num_resamples: int = 10_000,
) -> tuple[Match, ...]:
    """Every test of a table, p-values corrected by Holm's method over all of them."""
    stored = _Stored(resources)
    pairs: list[tuple[str, str, Comparison]] = []
    for system in systems:
        by_opponent: dict[str, tuple[SystemRuns, list[str]]] = {}
        for metric in metrics:
            opponent = opponent_of(system, systems, plan, metric)
            if opponent is not None and system.values(metric) and opponent.values(metric):
                by_opponent.setdefault(opponent.name, (opponent, []))[1].append(metric)
        for opponent, tested in by_opponent.values():
            pairs += [
                (system.name, opponent.name, each)
                for each in stored.compare(opponent, system, tested, np.random.default_rng(seed), num_resamples)
            ]
    corrected = holm_corrected([comparison for *_, comparison in pairs])
    return tuple(Match(one, other, each) for (one, other, _), each in zip(pairs, corrected, strict=True))


def seeds_of_both(first: SystemRuns, second: SystemRuns) -> tuple[int, ...]:
    """The seeds that are finished, where both have the same ones; a trivial system, which has none, goes with any."""
    sets = [{run.seed for run in one.runs} for one in (first, second) if one.role != "reference"]
    if not sets:
        return (0,)
    return tuple(sorted(sets[0])) if sets[0] == sets[-1] else ()


class _Stored:
    """What each run did in every dialogue, read once: from its replies, or from published tallies where none are."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._runs: dict[tuple[str, int], Tallies] = {}

    def compare(
        self,
        first: SystemRuns,
        second: SystemRuns,
        metrics: Sequence[str],
        generator: np.random.Generator,
        num_resamples: int,
    ) -> tuple[Comparison, ...]:
        """Second minus first, over the dialogues of all their seeds; nothing where these are not the same."""
        seeds = seeds_of_both(first, second)
        if not seeds:
            return ()
        runs = [[self._of_seed(system, seed) for seed in seeds] for system in (first, second)]
        for run in runs[0] + runs[1]:
            check_same_tallied(runs[0][0], run)
        one, two = (stacked(each) for each in runs)
        testable = [name for name in metrics if name in one and name in two]
        testable = [name for name in testable if None not in (one[name].value, two[name].value)]
        if not testable:
            return ()
        num_dialogues = runs[0][0].num_dialogues
        dialogues = np.tile(np.arange(num_dialogues), len(seeds))
        run_of = np.repeat(seeds, num_dialogues)
        return compare_systems(one, two, dialogues, generator, testable, num_resamples, run_of)

    def _of_seed(self, system: SystemRuns, seed: int) -> Tallies:
        run = next(run for run in system.runs if system.role == "reference" or run.seed == seed)
        key = (system.name, run.seed)
        if key not in self._runs:
            assert run.replies is not None
            self._runs[key] = tallies_beside(run.replies, self.resources)
        return self._runs[key]


def tallies_beside(replies: Path, resources: Resources) -> Tallies:
    """The tallies of replies in a file; without it, those that were published of it."""
    if not replies.is_file():
        return read_tallies(replies.with_suffix(SUFFIX), resources)
    numbers = {name: number for number, name in enumerate(resources.entity_names or ())}
    return tallies_of(read_replies(replies, numbers), resources)
