"""Scores over a large vocabulary when only the target's logit and the normaliser are needed.

Letters: P positions, H size of the vectors, V words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

LOGITS_KEPT = 1 << 24
"""How many logits are kept for the backward pass (64 MB); where there are more, they are computed again there."""


def target_and_total(vectors: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The target's logit and the logsumexp of all logits, [P] each, from vectors [P, H], weight [V, H], bias [V].

    Few [P, V] logits exist once: in the backward pass they are turned into the gradient where they lie. Many are
    computed block by block, in both passes, and never exist together: a third more work for a bounded memory. The bias
    goes through the matrix product as one more column, which spares two more passes over them.
    """
    return target_and_total_of(vectors, with_bias(weight, bias), target)


def with_bias(weight: Tensor, bias: Tensor) -> Tensor:
    """The bias [V] as one more column of the weight [V, H]: a copy, which all positions should share."""
    return torch.cat((weight, bias.unsqueeze(1)), dim=1)


def target_and_total_of(vectors: Tensor, vocabulary: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """`target_and_total` from what `with_bias` made [V, H + 1]."""
    extended = torch.cat((vectors, torch.ones_like(vectors[:, :1])), dim=1)
    few = len(vectors) * len(vocabulary) <= LOGITS_KEPT
    apply: Callable[..., tuple[Tensor, Tensor]] = _TargetAndTotal.apply if few else _InBlocks.apply
    return apply(extended, vocabulary, target)


LOGITS_AT_ONCE = 1 << 23
"""How many logits exist at once (32 MB) where they are computed block by block."""


def _masses(
    vectors: Tensor, weight: Tensor, target: Tensor, logits: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The target's logit [P], exp of every logit less the highest [P, V], their sum [P], the highest [P, 1].

    `logits` is memory to put them in, if there is some.
    """
    logits = torch.mm(vectors, weight.T, out=logits)
    chosen = logits.gather(1, target.unsqueeze(1)).squeeze(1)
    top = logits.amax(dim=1, keepdim=True)
    masses = logits.sub_(top).exp_()
    return chosen, masses, masses.sum(dim=1), top


def _turned_into_gradient(masses: Tensor, target: Tensor, of_chosen: Tensor, scale: Tensor) -> Tensor:
    """Masses [P, V] become the gradient of the logits, where they lie."""
    return masses.mul_(scale.unsqueeze(1)).scatter_add_(1, target.unsqueeze(1), of_chosen.unsqueeze(1))


class _TargetAndTotal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        chosen, masses, total, top = _masses(vectors, weight, target)
        ctx.save_for_backward(vectors, weight, target, masses, total)
        return chosen, total.log() + top.squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        of_chosen, of_total = gradients
        vectors, weight, target, masses, total = ctx.saved_tensors
        gradient = _turned_into_gradient(masses, target, of_chosen, of_total / total)
        return gradient @ weight, gradient.T @ vectors, None


class _InBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        ctx.rows = max(1, LOGITS_AT_ONCE // len(weight))
        found, memory = [], vectors.new_empty(min(ctx.rows, len(vectors)), len(weight))
        for block, words in zip(vectors.split(ctx.rows), target.split(ctx.rows), strict=True):
            chosen, _, total, top = _masses(block, weight, words, memory[: len(block)])
            found.append((chosen, total.log() + top.squeeze(1)))
        chosen, totals = (torch.cat(parts) for parts in zip(*found, strict=True))
        ctx.save_for_backward(vectors, weight, target, totals)
        return chosen, totals

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        vectors, weight, target, totals = ctx.saved_tensors
        of_vectors, of_weight = torch.empty_like(vectors), torch.zeros_like(weight)
        memory = vectors.new_empty(min(ctx.rows, len(vectors)), len(weight))
        parts = zip(*(part.split(ctx.rows) for part in (vectors, target, totals, *gradients, of_vectors)), strict=True)
        for block, words, total, of_chosen, of_total, of_block in parts:
            logits = torch.mm(block, weight.T, out=memory[: len(block)])
            masses = logits.sub_(total.unsqueeze(1)).exp_()  # probabilities
            gradient = _turned_into_gradient(masses, words, of_chosen, of_total)
            torch.mm(gradient, weight, out=of_block)
            of_weight.addmm_(gradient.T, block)
        return of_vectors, of_weight, None
