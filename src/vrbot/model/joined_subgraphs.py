"""The subgraphs of many rows as one disjoint graph. Letters: N rows, M nodes of all rows together, L edges, X nodes of
the largest subgraph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vrbot.knowledge.retrieval import Subgraph


@dataclass(frozen=True, eq=False)
class JoinedSubgraphs:
    """Nodes of all rows, row by row; edges point from node to node."""

    entities: Tensor  # [M]
    hops: Tensor  # [M]
    sources: Tensor  # [L]
    targets: Tensor  # [L]
    relations: Tensor  # [L]
    row: Tensor  # [M], whose node it is
    place: Tensor  # [M], the how manieth of its row
    counts: Tensor  # [N], nodes of each row

    def by_row(self, values: Tensor) -> Tensor:
        """Something of every node [M, ...], row by row [N, X, ...], 0 where there is no node."""
        width = int(self.counts.max()) if len(self.counts) else 0
        return values.new_zeros(len(self.counts), width, *values.shape[1:]).index_put((self.row, self.place), values)


def join(subgraphs: Sequence[Subgraph], device: torch.device) -> JoinedSubgraphs:
    """All of them, in their order."""
    counts = np.array([graph.num_nodes for graph in subgraphs], dtype=np.int64)
    offsets = np.concatenate(([0], counts.cumsum()))
    row = np.repeat(np.arange(len(subgraphs)), counts)
    shift = np.repeat(offsets[:-1], [graph.num_edges for graph in subgraphs])

    def joined(name: str) -> np.ndarray:
        parts = [getattr(graph, name) for graph in subgraphs]
        return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)

    def tensor(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(device)

    return JoinedSubgraphs(
        entities=tensor(joined("nodes")),
        hops=tensor(joined("hops")),
        sources=tensor(joined("sources") + shift),
        targets=tensor(joined("targets") + shift),
        relations=tensor(joined("relations")),
        row=tensor(row),
        place=tensor(np.arange(len(row)) - offsets[:-1][row]),
        counts=tensor(counts),
    )
