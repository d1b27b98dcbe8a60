"""The best few sequences, by beam search with a reward for every word or with length normalisation.

Letter: k beam width. The search, exactly: an item has k places. At each step the best extensions of its living
hypotheses, by log probability and rewards, take the places not yet held by finished ones; an extension by the end
symbol is finished and holds its place. The search of an item is over when no hypothesis lives, at the length limit
(what still lives is then cut and scored as it is), or as soon as no living hypothesis can enter the results any more:
the log probability can only fall and the length is bounded, which bounds the score. Stopping by that bound never
changes a result. With k = 1 this is greedy decoding; with k as large as the tree it is exhaustive search.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vrbot.decoding.adjusting import adjusted
from vrbot.decoding.ranking import best_choices
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
from vrbot.errors import ConfigError


@torch.no_grad()
def beam(
    step: StepFunction[StateT],
    state: StateT,
    batch_size: int,
    start: int,
    end: int,
    max_length: int,
    *,
    width: int = 5,
    word_reward: float = 0.0,
    length_penalty: float = 0.0,
    num_results: int = 1,
    min_length: int = 0,
    adjust: Adjust | None = None,
    pad: int = 0,
) -> Decoded:
    """The `num_results` best of each item by (log probability + reward) / length ** length_penalty, best first.

    The reward is `word_reward` for each token but the end symbol, which has to make up for it; the length counts
    every scored token, the end symbol included. Equal extensions of one hypothesis go by token id,
    lower first; of two hypotheses, the one that ranked higher goes first. `adjust` must not lift log probabilities
    above 0, or the bound fails.
    """
    if not 1 <= num_results <= width:
        raise ConfigError(f"a beam of width {width} cannot give {num_results} results; widen it or ask for fewer")
    places = _Places(batch_size, width, end, max_length, word_reward, length_penalty, num_results)
    tokens = torch.full((batch_size,), start)
    for _ in range(max_length):
        if not places.searching():
            break
        log_probs, state = step(tokens, state)
        log_probs = adjusted(log_probs, places.prefix, adjust, end, min_length)
        log_probs[:, end] -= word_reward  # against words, which all living hypotheses have the same number of
        rows, tokens = places.extend(log_probs)
        kept = places.compact()
        if kept is not None:
            rows, tokens = (part.view(-1, width)[kept].flatten() for part in (rows, tokens))
            state = state.select(rows, kept)
        elif not torch.equal(rows, torch.arange(log_probs.size(0))):
            state = state.select(rows, None)
    return assemble(places.results(), num_results, pad)


class _Places:
    """The k places of every item under way: living hypotheses as tensors, finished ones as lists.

    Before the first step there is one row per item; `prefix` is [R, t], `scores` [M, rows per item], `-inf` where a
    place is empty or held by a finished hypothesis.
    """

    def __init__(
        self,
        batch_size: int,
        width: int,
        end: int,
        max_length: int,
        word_reward: float,
        length_penalty: float,
        num_results: int,
    ) -> None:
        self.prefix = torch.empty(batch_size, 0, dtype=torch.long)
        self.scores = torch.zeros(batch_size, 1)
        self.origin = list(range(batch_size))
        self.found: list[list[Hypothesis]] = [[] for _ in range(batch_size)]
        self._width, self._end, self._max_length = width, end, max_length
        self._word_reward, self._length_penalty, self._num_results = word_reward, length_penalty, num_results

    def searching(self) -> bool:
        return bool((self.scores > -math.inf).any())

    def extend(self, log_probs: Tensor) -> tuple[Tensor, Tensor]:
        """Fills the places after one step: log_probs [R, V] -> the old row and the token of each new row [M * k]."""
        values, ids = best_choices(log_probs, self._width)  # [R, k]
        num_items, rows_per_item = self.scores.shape
        known = self.scores.view(-1, 1)
        # Rows that are over may be given anything by the step, nan included: they are emptied after the sum.
        totals = (known + values).masked_fill(known == -math.inf, -math.inf).view(num_items, -1)
        refuse_nan(totals)
        totals = _padded(totals, self._width)  # [M, rows per item * k]
        best, positions = totals.sort(dim=1, descending=True, stable=True)
        best, positions = best[:, : self._width], positions[:, : self._width]
        held = torch.tensor([len(self.found[item]) for item in self.origin]).unsqueeze(1)
        best = best.masked_fill(torch.arange(self._width) >= self._width - held, -math.inf)

        parents = (positions // values.size(1)).clamp_max(rows_per_item - 1)
        rows = (parents + rows_per_item * torch.arange(num_items).unsqueeze(1)).flatten()
        tokens = ids[rows, (positions % values.size(1)).flatten()]
        self.scores, ended = best, (tokens == self._end).view_as(best) & (best > -math.inf)
        prefix = self.prefix[rows]
        for item, place in ended.nonzero().tolist():
            self._record(item, float(best[item, place]), prefix[item * self._width + place], finished=True)
        self.scores = best.masked_fill(ended, -math.inf)
        tokens = tokens.masked_fill(self.scores.flatten() == -math.inf, self._end)
        self.prefix = torch.cat([prefix, tokens.unsqueeze(1)], dim=1)
        self._stop_hopeless()
        return rows, tokens

    def compact(self) -> Tensor | None:
        """Drops items that are over, when enough of them are -> the numbers of those that stay."""
        alive = (self.scores > -math.inf).any(dim=1)
        if not bool(alive.any()) or not worth_compacting(int(alive.sum()), len(self.origin)):
            return None
        kept = alive.nonzero().flatten()
        self.scores = self.scores[kept]
        self.prefix = self.prefix.view(-1, self._width, self.prefix.size(1))[kept].flatten(0, 1)
        self.origin = [self.origin[item] for item in kept.tolist()]
        return kept

    def results(self) -> list[list[Hypothesis]]:
        """The best of each item; hypotheses still alive are taken as they stand."""
        rows_per_item = self.scores.size(1)
        for item, place in (self.scores > -math.inf).nonzero().tolist():
            prefix = self.prefix[item * rows_per_item + place]
            self._record(item, float(self.scores[item, place]), prefix, finished=False)
        return [best_hypotheses(found, self._num_results) for found in self.found]

    def _record(self, item: int, log_prob: float, prefix: Tensor, *, finished: bool) -> None:
        scored_length = max(len(prefix) + int(finished), 1)
        score = (log_prob + self._word_reward * (len(prefix) + int(finished))) / scored_length**self._length_penalty
        self.found[self.origin[item]].append(Hypothesis(tuple(prefix.tolist()), score, finished))

    def _stop_hopeless(self) -> None:
        """Ends items whose best living hypothesis, at the most favourable length, scores below the worst result."""
        shortest = self.prefix.size(1) + 1
        divisors = [length**self._length_penalty for length in (shortest, max(shortest, self._max_length))]
        rewards = self._word_reward * self._max_length
        over = torch.zeros(len(self.origin), dtype=torch.bool)
        for i, (item, best) in enumerate(zip(self.origin, self.scores.amax(dim=1).tolist(), strict=True)):
            if best > -math.inf and len(self.found[item]) >= self._num_results:
                worst = best_hypotheses(self.found[item], self._num_results)[-1].score
                reachable = best + rewards
                over[i] = reachable / (max(divisors) if reachable < 0 else min(divisors)) < worst
        self.scores = self.scores.masked_fill(over.unsqueeze(1), -math.inf)


def _padded(totals: Tensor, width: int) -> Tensor:
    """At least `width` columns, impossible ones added at the end."""
    missing = width - totals.size(1)
    return totals if missing <= 0 else torch.nn.functional.pad(totals, (0, missing), value=-math.inf)
