"""What a search needs of a model, and what it gives back.

Letters: B items of the batch, R rows (hypotheses) under way, n results per item, L longest result, V vocabulary.

**Rows and items.** A search keeps the same number of rows for every item, side by side: with R rows and M items,
row `r` belongs to item `r // (R // M)`. A state may therefore keep large memories (encoder outputs) once per item,
[M, T, H], and see the rows as [M, R // M, ...]; only its small recurrent part is per row. A state is handed over
with one row per item; the search widens it by `select` (a beam after its first step). Searches run on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from vrbot.errors import VRBotError


class Selectable(Protocol):
    """Decoder state that can be rearranged."""

    def select(self, rows: Tensor, items: Tensor | None) -> Self:
        """The state whose row j was row `rows[j]` and whose item i was item `items[i]`.

        `items` is None when no item is dropped, so that memories kept per item need not be touched. The number of
        rows per item may grow (a beam opening); it is `len(rows) // number of items` afterwards.
        """
        ...


StateT = TypeVar("StateT", bound=Selectable)


class StepFunction(Protocol[StateT]):
    """One step of a decoder: the last tokens [R] and the state -> log probabilities [R, V] and the next state."""

    def __call__(self, tokens: Tensor, state: StateT) -> tuple[Tensor, StateT]: ...


Adjust = Callable[[Tensor, Tensor], Tensor]
"""(tokens so far [R, t] without the start symbol, log_probs [R, V]) -> log_probs [R, V]; must not rise above 0."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """The n best (or n sampled) token sequences of each item, best first, without start and end symbols.

    A place that could not be filled (too few sequences are possible) has length 0, score `-inf`, finished false.
    """

    tokens: Tensor  # [B, n, L], padded
    lengths: Tensor  # [B, n]
    scores: Tensor  # [B, n]
    finished: Tensor  # [B, n], true where the end symbol was reached before the length limit


@dataclass(frozen=True)
class Hypothesis:
    """One sequence that is over: ended, or cut at the length limit."""

    tokens: tuple[int, ...]
    score: float
    finished: bool


def best_hypotheses(found: Sequence[Hypothesis], count: int) -> list[Hypothesis]:
    """The `count` best; equal scores in the order of their tokens."""
    return sorted(found, key=lambda hypothesis: (-hypothesis.score, hypothesis.tokens))[:count]


def assemble(found: Sequence[Sequence[Hypothesis]], num_results: int, pad: int) -> Decoded:
    """Hypotheses per item, already in order -> padded tensors."""
    longest = max((len(hypothesis.tokens) for item in found for hypothesis in item), default=0)
    tokens = torch.full((len(found), num_results, longest), pad, dtype=torch.long)
    lengths = torch.zeros(len(found), num_results, dtype=torch.long)
    scores = torch.full((len(found), num_results), -torch.inf)
    finished = torch.zeros(len(found), num_results, dtype=torch.bool)
    for i, item in enumerate(found):
        for j, hypothesis in enumerate(item[:num_results]):
            length = len(hypothesis.tokens)
            tokens[i, j, :length] = torch.tensor(hypothesis.tokens, dtype=torch.long)
            lengths[i, j], scores[i, j], finished[i, j] = length, hypothesis.score, hypothesis.finished
    return Decoded(tokens, lengths, scores, finished)


def worth_compacting(num_alive: int, num_items: int) -> bool:
    """Whether to drop finished items now: when a quarter of the items is done, so that all copies of the memories
    together cost at most three times the first."""
    return num_alive <= 0.75 * num_items


def refuse_nan(values: Tensor) -> None:
    """A nan compares as the best of all and would win every search."""
    if bool(values.isnan().any()):
        raise VRBotError("the decoder gave nan log probabilities; check the model's weights and masks")
