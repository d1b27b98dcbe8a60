"""Scores over a large vocabulary when only the target's logit and the normaliser are needed.

Letters: P positions, H size of the vectors, V words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def target_and_total(vectors: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The target's logit and the logsumexp of all logits, [P] each, from vectors [P, H], weight [V, H], bias [V].

    The [P, V] logits exist once: in the backward pass they are turned into the gradient where they lie. The bias goes
    through the matrix product as one more column, which spares two more passes over them.
    """
    apply: Callable[..., tuple[Tensor, Tensor]] = _TargetAndTotal.apply
    ones = torch.ones_like(vectors[:, :1])
    return apply(torch.cat((vectors, ones), dim=1), torch.cat((weight, bias.unsqueeze(1)), dim=1), target)


class _TargetAndTotal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        logits = vectors @ weight.T
        chosen = logits.gather(1, target.unsqueeze(1)).squeeze(1)
        top = logits.amax(dim=1, keepdim=True)
        masses = logits.sub_(top).exp_()
        total = masses.sum(dim=1)
        ctx.save_for_backward(vectors, weight, target, masses, total)
        return chosen, total.log() + top.squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        of_chosen, of_total = gradients
        vectors, weight, target, masses, total = ctx.saved_tensors
        gradient = masses.mul_((of_total / total).unsqueeze(1))
        gradient.scatter_add_(1, target.unsqueeze(1), of_chosen.unsqueeze(1))
        return gradient @ weight, gradient.T @ vectors, None
