"""Attention over memories.

Letters: N rows, T memory slots, Q queries per row, H hidden size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor, nn

from vrbot.nets.recomputing import computed_again
from vrbot.probability.category import masked_log_softmax


@dataclass(frozen=True, eq=False)
class Memory:
    """What can be read: values [N, T, H], and which slots exist [N, T], or which each query may read [N, Q, T]."""

    values: Tensor
    mask: Tensor

    def select(self, rows: Tensor | slice) -> Self:
        """The memory of these rows only."""
        return replace(self, values=self.values[rows], mask=self.mask[rows])

    def masked(self, mask: Tensor) -> Self:
        """The same with another mask."""
        return replace(self, mask=mask)

    def products(self, query: Tensor) -> Tensor:
        """Of queries [N, Q, H] with every slot's value [N, Q, T]; anything where a slot does not exist."""
        return torch.bmm(query, self.values.transpose(1, 2))

    def weighted(self, weights: Tensor) -> Tensor:
        """The values added up under weights [N, Q, T], zero where a slot does not exist -> [N, Q, H]."""
        return torch.bmm(weights, self.values)


GROUPS = 4
"""Into so many groups of similar length rows are put where lengths differ."""

WORTH_GROUPING = 1.5
"""From how many times fewer slots on rows are put into groups."""


@dataclass(frozen=True, eq=False)
class LongMemory(Memory):
    """A memory that is read again and again, without gradient.

    Reading is as long as the memory is large, and rows of a batch differ in length: each group of rows has its own.
    """

    @cached_property
    def _groups(self) -> _Groups | None:
        exists = self.mask if self.mask.dim() == 2 else self.mask.any(dim=1)
        places = torch.arange(1, exists.shape[1] + 1, device=exists.device)
        lengths = nn.functional.pad(exists * places, (0, 1)).amax(dim=1)  # up to the last slot that exists
        order = lengths.argsort(descending=True, stable=True)
        parts = order.chunk(GROUPS)
        widths = [int(lengths[part[0]]) if len(part) else 0 for part in parts]
        slots = sum(width * len(part) for width, part in zip(widths, parts, strict=True))
        if len(order) < 2 * GROUPS or self.mask.numel() < WORTH_GROUPING * slots:
            return None
        values = tuple(self.values[part, :width] for part, width in zip(parts, widths, strict=True))
        return _Groups(order, order.argsort(), values)

    def products(self, query: Tensor) -> Tensor:
        groups = self._groups
        if groups is None:
            return super().products(query)
        found = query.new_zeros(*query.shape[:2], self.values.shape[1])
        begin, query = 0, query[groups.order]
        for values in groups.values:
            rows = slice(begin, begin + len(values))
            found[rows, :, : values.shape[1]] = torch.bmm(query[rows], values.transpose(1, 2))
            begin = rows.stop
        return found[groups.back]

    def weighted(self, weights: Tensor) -> Tensor:
        groups = self._groups
        if groups is None:
            return super().weighted(weights)
        begin, found, weights = 0, [], weights[groups.order]
        for values in groups.values:
            found.append(torch.bmm(weights[begin : begin + len(values), :, : values.shape[1]], values))
            begin += len(values)
        return torch.cat(found)[groups.back]


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows by length: their order, the way back, and the values of each group [n, T', H]."""

    order: Tensor
    back: Tensor
    values: tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class FoldedMemory(Memory):
    """A memory of few slots whose products with the reader's weights are taken once, for all queries, without gradient.

    `keys` [N, T, H] are what a query is multiplied with before any projection; `told` [N, T, G] is what reading a slot
    adds to the layer that follows.
    """

    keys: Tensor
    told: Tensor

    def select(self, rows: Tensor | slice) -> Self:
        return replace(super().select(rows), keys=self.keys[rows], told=self.told[rows])


class DotAttention(nn.Module):
    """Scaled dot products of a projected query with the values themselves; reading nothing is always possible.

    A learned null slot with the value zero takes part, so that a row whose memory is empty reads zeros. The key
    projection is folded into the query's: (K v) . (Q b) = v . (K'Q b), so a memory costs nothing to prepare.
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.project_query = nn.Linear(query_size, memory_size, bias=False)
        self.null_key = nn.Parameter(torch.zeros(memory_size))

    def read(self, query: Tensor, memory: Memory) -> Tensor:
        """Queries [N, Q, H] -> what they read [N, Q, H]."""
        projected = self.project_query(query) / math.sqrt(self.null_key.shape[0])
        return read_scored(projected, (projected @ self.null_key).unsqueeze(-1), memory)


def read_scored(query: Tensor, null: Tensor, memory: Memory) -> Tensor:
    """What queries [N, Q, H], already scaled, read when reading nothing scores `null` [N, Q, 1] -> [N, Q, H]."""
    return memory.weighted(_weights(memory.products(query), null, memory.mask))


def read_folded(query: Tensor, null: Tensor, memory: FoldedMemory) -> Tensor:
    """The same of a folded memory, by queries that are not projected: what it adds to the next layer [N, Q, G]."""
    weights = _weights(torch.bmm(query, memory.keys.transpose(1, 2)), null, memory.mask)
    return torch.bmm(weights, memory.told)


def _weights(scores: Tensor, null: Tensor, mask: Tensor) -> Tensor:
    """How much each slot counts, [N, Q, T] all."""
    mask = mask if mask.dim() == 3 else mask.unsqueeze(1)
    scores = scores.masked_fill(~mask, -math.inf)
    return torch.cat((scores, null), dim=-1).softmax(dim=-1)[..., :-1]


class AdditiveAttention(nn.Module):
    """Attention after Bahdanau: a small network scores each slot against the query; empty memories read zeros."""

    def __init__(self, query_size: int, memory_size: int, hidden_size: int) -> None:
        super().__init__()
        self.project_query = nn.Linear(query_size, hidden_size)
        self.project_key = nn.Linear(memory_size, hidden_size, bias=False)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """One query per row [N, H] over values [N, T, H] -> [N, H]."""
        weights = masked_log_softmax(computed_again(2 * values.numel(), self._scores, query, values, mask), mask).exp()
        return torch.bmm(weights.unsqueeze(1), values).squeeze(1)

    def _scores(self, query: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Of the slots that exist [N, T], 0 elsewhere."""
        row, slot = mask.nonzero(as_tuple=True)
        asked = self.project_query(query).index_select(0, row)
        scores = self.score(torch.tanh(asked + self.project_key(values[row, slot])))
        return values.new_zeros(mask.shape).index_put((row, slot), scores.squeeze(-1))
