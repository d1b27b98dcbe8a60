"""Random distributions with holes, for the laws of this package."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor


@dataclass(frozen=True)
class Shape:
    """Sizes of a random case and the seed of its content."""

    sessions: int
    positions: int
    symbols: int
    seed: int

    def generator(self, offset: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed + 10_000_019 * offset)


def shapes(max_symbols: int = 9) -> st.SearchStrategy[Shape]:
    return st.builds(
        Shape,
        sessions=st.integers(1, 4),
        positions=st.integers(1, 4),
        symbols=st.integers(1, max_symbols),
        seed=st.integers(0, 10_000),
    )


def logits_of(shape: Shape, offset: int = 0, scale: float = 3.0) -> Tensor:
    """Random logits [B, L, V] in double precision."""
    size = (shape.sessions, shape.positions, shape.symbols)
    return scale * torch.randn(size, generator=shape.generator(offset), dtype=torch.float64)


def holes_of(shape: Shape, offset: int = 50) -> Tensor:
    """Which symbols exist [B, L, V]; at least one everywhere."""
    allowed = torch.rand(shape.sessions, shape.positions, shape.symbols, generator=shape.generator(offset)) < 0.6
    allowed[..., 0] |= ~allowed.any(dim=-1)
    return allowed


def with_holes(logits: Tensor, allowed: Tensor) -> Tensor:
    """Normalised log probabilities, -inf where nothing is allowed."""
    return logits.masked_fill(~allowed, -math.inf).log_softmax(dim=-1)
