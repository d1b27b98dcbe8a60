"""Who judges what, in which order: even loads, balanced places, shuffled pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from vrbot.evaluation.human_items import BlindItem
from vrbot.evaluation.human_study import Page, Pair, Share, ShownPair
from vrbot.evaluation.human_systems import Field
from vrbot.evaluation.turns import Ints


def assign_raters(num_items: int, num_raters: int, judges: int, generator: np.random.Generator) -> list[frozenset[int]]:
    """For each item the raters who judge it: loads differ by one at most, and pairs of raters meet about equally."""
    loads, met = Counter[int](), Counter[frozenset[int]]()
    assigned = []
    for _ in range(num_items):
        chosen: list[int] = []
        order = generator.permutation(num_raters).tolist()
        for _ in range(judges):
            chosen.append(_least_busy([rater for rater in order if rater not in chosen], chosen, loads, met))
        loads.update(chosen)
        met.update(frozenset(pair) for pair in combinations(chosen, 2))
        assigned.append(frozenset(chosen))
    return assigned


def _least_busy(
    free: Sequence[int], chosen: Sequence[int], loads: Mapping[int, int], met: Mapping[frozenset[int], int]
) -> int:
    return min(free, key=lambda rater: (loads[rater], sum(met[frozenset({rater, other})] for other in chosen)))


def balanced_orders(num_rows: int, size: int, generator: np.random.Generator) -> Ints:
    """[num_rows, size]: every row an order of the numbers below `size`, each equally often in each place.

    Rows are dealt from Latin squares whose rows, columns and symbols are shuffled; counts differ by one at most.
    """
    square = np.add.outer(np.arange(size), np.arange(size)) % size
    blocks = [
        generator.permutation(size)[square[generator.permutation(size)][:, generator.permutation(size)]]
        for _ in range(-(-num_rows // size))
    ]
    return np.concatenate([*blocks, np.zeros((0, size), dtype=np.int64)])[:num_rows].astype(np.int64)


def share_of(rater: str, items: Sequence[BlindItem], field: Field, generator: np.random.Generator) -> Share:
    """The rater's pages: places of systems balanced over items, sides of pairs over the pairs of systems."""
    systems = [system.source.name for system in field.systems]
    orders = [balanced_orders(len(items), len(systems), generator) for _ in ("replies", "explanations")]
    sides = _Sides(generator)
    pages = []
    for number in generator.permutation(len(items)).tolist():
        blind = items[number]
        replies, explanations = ([systems[one] for one in order[number].tolist()] for order in orders)
        shown = [sides.shown(pair, blind) for pair in blind.item.pairs]
        pages.append(
            Page(
                item=blind.item.item,
                candidates=tuple(dict.fromkeys(blind.reply_codes[system] for system in replies)),
                explanations=tuple(
                    dict.fromkeys(
                        blind.explanation_codes[system] for system in explanations if system in blind.explanation_codes
                    )
                ),
                pairs=tuple(shown[one] for one in generator.permutation(len(shown)).tolist()),
            )
        )
    return Share(rater, tuple(pages[one] for one in generator.permutation(len(pages)).tolist()))


class _Sides:
    """Which of a pair stands first: for every two systems each side equally often, beginning with either."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator, self._next = generator, dict[tuple[str, str, str], int]()

    def shown(self, pair: Pair, blind: BlindItem) -> ShownPair:
        owners = blind.reply_codes if pair.about == "reply" else blind.explanation_codes
        code_of = {system: code for system, code in owners.items() if code in (pair.first, pair.second)}
        one, other = sorted({code: system for system, code in reversed(code_of.items())}.values())
        turn = self._next.get((pair.about, one, other))
        turn = int(self._generator.integers(2)) if turn is None else turn
        self._next[pair.about, one, other] = 1 - turn
        first, second = (code_of[one], code_of[other]) if turn else (code_of[other], code_of[one])
        return ShownPair(pair.code, first, second)
