"""Gradients of shards, added in an order that does not depend on how many processes compute them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def cut_into_shards(sessions: NDArray[np.int64], num_shards: int) -> list[NDArray[np.int64]]:
    """The sessions of a batch dealt out in turn: neighbours are of similar length, so shards are too."""
    return [sessions[shard::num_shards] for shard in range(num_shards)]


def pairwise_sum(parts: Sequence[Tensor]) -> Tensor:
    """((a + b) + (c + d)) + ...: blocks of 2, 4, 8 ... parts can be added elsewhere with the same last bit."""
    level = list(parts)
    while len(level) > 1:
        pairs = [first + second for first, second in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *level[2 * len(pairs) :]]
    return level[0]


def flat_gradient(parameters: Sequence[Tensor]) -> Tensor:
    """All gradients end to end; zeros where there is none."""
    parts = [torch.zeros_like(each) if each.grad is None else each.grad for each in parameters]
    return torch.cat([part.reshape(-1) for part in parts])


def have_gradient(parameters: Sequence[Tensor]) -> tuple[bool, ...]:
    return tuple(each.grad is not None for each in parameters)


def set_gradient(parameters: Sequence[Tensor], flat: Tensor, present: Sequence[bool]) -> None:
    """The reverse of `flat_gradient`; a parameter no shard used has no gradient, so that Adam leaves it alone."""
    pieces = torch.split(flat, [each.numel() for each in parameters])
    for parameter, piece, used in zip(parameters, pieces, present, strict=True):
        parameter.grad = piece.view_as(parameter) if used else None


def clear_gradient(parameters: Sequence[Tensor]) -> None:
    for parameter in parameters:
        parameter.grad = None


def clip_gradient(parameters: Sequence[Tensor], largest: float) -> float:
    """Scales the gradient down to the norm `largest`; gives the norm it had."""
    gradients = [each.grad for each in parameters if each.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    torch.nn.utils.clip_grads_with_norm_(parameters, largest, norm)
    return float(norm)
