"""A Transformer (Vaswani et al. 2017), normalised before each part, whose decoder also goes word by word.

Letters: N rows, T positions read, Q positions written, H width, A heads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class KeysValues:
    """What can be attended to: keys and values [N, A, T, H / A] each."""

    keys: Tensor
    values: Tensor

    def select(self, rows: Tensor) -> KeysValues:
        return KeysValues(self.keys[rows], self.values[rows])

    def and_then(self, other: KeysValues) -> KeysValues:
        """These positions, then the other's."""
        return KeysValues(torch.cat((self.keys, other.keys), dim=2), torch.cat((self.values, other.values), dim=2))


class Attention(nn.Module):
    """Attention with several heads."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key_value, self.output = (
            nn.Linear(size, size),
            nn.Linear(size, 2 * size),
            nn.Linear(size, size),
        )

    def prepare(self, vectors: Tensor) -> KeysValues:
        """Vectors [N, T, H] as something to attend to."""
        keys, values = self.key_value(vectors).chunk(2, dim=-1)
        return KeysValues(self._parted(keys), self._parted(values))

    def forward(
        self, queries: Tensor, memory: KeysValues, allowed: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        """[N, Q, H] -> what they read [N, Q, H]; `allowed` [N, T] is true where there is something to read."""
        mask = None if allowed is None else allowed[:, None, None, :]
        read = nn.functional.scaled_dot_product_attention(
            self._parted(self.query(queries)), memory.keys, memory.values, attn_mask=mask, is_causal=causal
        )
        attended: Tensor = self.output(read.transpose(1, 2).flatten(2))
        return attended

    def _parted(self, vectors: Tensor) -> Tensor:
        parted: Tensor = vectors.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return parted


class Feedforward(nn.Module):
    """Two layers at each position by itself."""

    def __init__(self, size: int, factor: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(size, factor * size), nn.GELU(), nn.Dropout(dropout), nn.Linear(factor * size, size)
        )

    def forward(self, vectors: Tensor) -> Tensor:
        changed: Tensor = self.layers(vectors)
        return changed


class EncoderLayer(nn.Module):
    """Every position reads all others."""

    def __init__(self, size: int, heads: int, factor: int, dropout: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.attention, self.feedforward = Attention(size, heads), Feedforward(size, factor, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """[N, T, H], which exist [N, T] -> [N, T, H]."""
        normed = self.norms[0](vectors)
        vectors = vectors + self.dropout(self.attention(normed, self.attention.prepare(normed), mask))
        changed: Tensor = vectors + self.dropout(self.feedforward(self.norms[1](vectors)))
        return changed


class DecoderLayer(nn.Module):
    """Every position reads those before it, and what was encoded."""

    def __init__(self, size: int, heads: int, factor: int, dropout: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3))
        self.own, self.encoded = Attention(size, heads), Attention(size, heads)
        self.feedforward = Feedforward(size, factor, dropout)
        self.dropout = nn.Dropout(dropout)

    def along(self, vectors: Tensor, memory: KeysValues, mask: Tensor) -> Tensor:
        """All positions at once [N, Q, H]; none sees a later one."""
        normed = self.norms[0](vectors)
        vectors = vectors + self.dropout(self.own(normed, self.own.prepare(normed), causal=True))
        return self._read(vectors, memory, mask)

    def advance(self, vectors: Tensor, past: KeysValues, memory: KeysValues, mask: Tensor) -> tuple[Tensor, KeysValues]:
        """One more position of every hypothesis [rows, H], after the past of each; the rows of an item stand side by
        side and read its memory together."""
        normed = self.norms[0](vectors).unsqueeze(1)
        past = past.and_then(self.own.prepare(normed))
        vectors = vectors + self.own(normed, past).squeeze(1)
        return self._read(vectors.unflatten(0, (len(mask), -1)), memory, mask).flatten(0, 1), past

    def _read(self, vectors: Tensor, memory: KeysValues, mask: Tensor) -> Tensor:
        vectors = vectors + self.dropout(self.encoded(self.norms[1](vectors), memory, mask))
        changed: Tensor = vectors + self.dropout(self.feedforward(self.norms[2](vectors)))
        return changed


@dataclass(frozen=True, eq=False)
class DecoderMemory:
    """What each layer of a decoder reads again at every step, projected once, and which positions exist [N, T]."""

    layers: tuple[KeysValues, ...]
    mask: Tensor

    def select(self, rows: Tensor) -> DecoderMemory:
        return DecoderMemory(tuple(layer.select(rows) for layer in self.layers), self.mask[rows])


class Encoder(nn.Module):
    """Layers over embedded positions."""

    def __init__(self, size: int, layers: int, heads: int, factor: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(size, heads, factor, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(size)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            vectors = layer(vectors, mask)
        normed: Tensor = self.norm(vectors)
        return normed


class Decoder(nn.Module):
    """Layers over what was written so far, all at once or one position at a time."""

    def __init__(self, size: int, layers: int, heads: int, factor: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(size, heads, factor, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(size)
        self.size, self.heads = size, heads

    def prepare(self, encoded: Tensor, mask: Tensor) -> DecoderMemory:
        """Encoded positions [N, T, H] as every layer's memory."""
        return DecoderMemory(tuple(layer.encoded.prepare(encoded) for layer in self._layers()), mask)

    def no_past(self, num_rows: int) -> tuple[KeysValues, ...]:
        """Nothing was written yet."""
        nothing = self.norm.weight.new_zeros(num_rows, self.heads, 0, self.size // self.heads)
        return tuple(KeysValues(nothing, nothing) for _ in self.layers)

    def along(self, vectors: Tensor, memory: DecoderMemory) -> Tensor:
        """[N, Q, H] -> outputs [N, Q, H]."""
        for layer, encoded in zip(self._layers(), memory.layers, strict=True):
            vectors = layer.along(vectors, encoded, memory.mask)
        normed: Tensor = self.norm(vectors)
        return normed

    def advance(
        self, vectors: Tensor, past: Sequence[KeysValues], memory: DecoderMemory
    ) -> tuple[Tensor, tuple[KeysValues, ...]]:
        """One position more [rows, H] -> outputs [rows, H], and the past of every layer with it."""
        grown = []
        for layer, before, encoded in zip(self._layers(), past, memory.layers, strict=True):
            vectors, now = layer.advance(vectors, before, encoded, memory.mask)
            grown.append(now)
        return self.norm(vectors), tuple(grown)

    def _layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]


def position_vectors(start: int, count: int, size: int, device: torch.device) -> Tensor:
    """Sines and cosines of the positions from `start` on [count, size]."""
    half = (size + 1) // 2
    rates = torch.exp(torch.arange(half, device=device) * (-math.log(10_000.0) / max(half - 1, 1)))
    angles = torch.arange(start, start + count, device=device).unsqueeze(1) * rates
    return torch.cat((angles.sin(), angles.cos()), dim=1)[:, :size]
