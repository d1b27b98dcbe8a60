"""Attention over memories.

Letters: N rows, T memory slots, Q queries per row, H hidden size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.probability.category import masked_log_softmax


@dataclass(frozen=True, eq=False)
class Memory:
    """What can be read: values [N, T, H], and which slots exist [N, T], or which each query may read [N, Q, T]."""

    values: Tensor
    mask: Tensor

    def select(self, rows: Tensor | slice) -> Memory:
        """The memory of these rows only."""
        return Memory(self.values[rows], self.mask[rows])


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
    scores = torch.bmm(query, memory.values.transpose(1, 2))  # [N, Q, T]
    mask = memory.mask if memory.mask.dim() == 3 else memory.mask.unsqueeze(1)
    scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.cat((scores, null), dim=-1).softmax(dim=-1)[..., :-1]
    return torch.bmm(weights, memory.values)


class AdditiveAttention(nn.Module):
    """Attention after Bahdanau: a small network scores each slot against the query; empty memories read zeros."""

    def __init__(self, query_size: int, memory_size: int, hidden_size: int) -> None:
        super().__init__()
        self.project_query = nn.Linear(query_size, hidden_size)
        self.project_key = nn.Linear(memory_size, hidden_size, bias=False)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """One query per row [N, H] over values [N, T, H] -> [N, H]."""
        hidden = torch.tanh(self.project_query(query).unsqueeze(1) + self.project_key(values))
        weights = masked_log_softmax(self.score(hidden).squeeze(-1), mask).exp()
        return torch.bmm(weights.unsqueeze(1), values).squeeze(1)
