"""Following one path per row: what greedy decoding and sampling share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.decoding.adjusting import adjusted
from vrbot.decoding.step import (
    Adjust,
    Decoded,
    Hypothesis,
    StateT,
    StepFunction,
    assemble,
    best_hypotheses,
    refuse_nan,
    worth_compacting,
)

Choose = Callable[[Tensor, Tensor], Tensor]
"""(log_probs [R, V], the original row number of each row [R]) -> the token each row takes [R]."""


@dataclass(frozen=True)
class RollOutLimits:
    """The symbols and lengths of a roll-out."""

    start: int
    end: int
    max_length: int
    min_length: int
    pad: int


@torch.no_grad()
def roll_out(
    step: StepFunction[StateT],
    state: StateT,
    choose: Choose,
    limits: RollOutLimits,
    *,
    batch_size: int,
    rows_per_item: int,
    adjust: Adjust | None,
) -> Decoded:
    """Extends every row until it ends; a row with no possible token left has score `-inf` and nothing is kept of it."""
    if rows_per_item > 1 and batch_size > 0:
        state = state.select(torch.arange(batch_size).repeat_interleave(rows_per_item), None)
    paths = _Paths(batch_size, rows_per_item, limits.end)
    tokens = torch.full((batch_size * rows_per_item,), limits.start)
    for _ in range(limits.max_length):
        if not paths.any_alive():
            break
        log_probs, state = step(tokens, state)
        log_probs = adjusted(log_probs, paths.prefix, adjust, limits.end, limits.min_length)
        tokens = choose(log_probs, paths.origin)
        gained = log_probs.gather(1, tokens.unsqueeze(1)).squeeze(1)
        refuse_nan(gained[paths.alive])
        tokens = paths.extend(tokens, gained)
        kept = paths.compact()
        if kept is not None:
            state = state.select(kept.rows, kept.items)
            tokens = tokens[kept.rows]
    return assemble(paths.results(), rows_per_item, limits.pad)


class _Kept:
    """Rows and items that survive a compaction, by their old numbers."""

    def __init__(self, items: Tensor, rows_per_item: int) -> None:
        self.items = items
        self.rows = (items.unsqueeze(1) * rows_per_item + torch.arange(rows_per_item)).flatten()


class _Paths:
    """The rows under way, and the hypotheses of those that are over."""

    def __init__(self, batch_size: int, rows_per_item: int, end: int) -> None:
        num_rows = batch_size * rows_per_item
        self.prefix = torch.empty(num_rows, 0, dtype=torch.long)
        self.scores = torch.zeros(num_rows)
        self.alive = torch.ones(num_rows, dtype=torch.bool)
        self.origin = torch.arange(num_rows)
        self._rows_per_item, self._end = rows_per_item, end
        self._over: list[Hypothesis | None] = [None] * num_rows

    def any_alive(self) -> bool:
        return bool(self.alive.any())

    def extend(self, tokens: Tensor, gained: Tensor) -> Tensor:
        """Adds a token to every living row -> the tokens to feed next (the end symbol to rows that are over)."""
        self.scores = self.scores + gained
        impossible = self.scores == -torch.inf
        over = self.alive & ((tokens == self._end) | impossible)
        for row in over.nonzero().flatten().tolist():
            self._record(row, finished=True)
        self.alive = self.alive & ~over
        tokens = tokens.masked_fill(~self.alive, self._end)
        self.prefix = torch.cat([self.prefix, tokens.unsqueeze(1)], dim=1)
        return tokens

    def compact(self) -> _Kept | None:
        """Drops items whose rows are all over, when enough of them are."""
        alive_items = self.alive.view(-1, self._rows_per_item).any(dim=1)
        num_alive = int(alive_items.sum())
        if num_alive == 0 or not worth_compacting(num_alive, len(alive_items)):
            return None
        kept = _Kept(alive_items.nonzero().flatten(), self._rows_per_item)
        self.prefix, self.scores = self.prefix[kept.rows], self.scores[kept.rows]
        self.alive, self.origin = self.alive[kept.rows], self.origin[kept.rows]
        return kept

    def results(self) -> list[list[Hypothesis]]:
        for row in self.alive.nonzero().flatten().tolist():
            self._record(row, finished=False)
        by_item = [self._over[i : i + self._rows_per_item] for i in range(0, len(self._over), self._rows_per_item)]
        return [best_hypotheses([h for h in item if h is not None], self._rows_per_item) for item in by_item]

    def _record(self, row: int, *, finished: bool) -> None:
        score = float(self.scores[row])
        if score > -torch.inf:
            tokens = tuple(self.prefix[row].tolist())
            self._over[int(self.origin[row])] = Hypothesis(tokens, score, finished)
