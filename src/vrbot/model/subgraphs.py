"""Subgraphs around the states of a batch, encoded as one disjoint graph.

Retrieval sees only which entities a state names; no gradient flows through it.
Letters: N rows, X nodes of the largest subgraph, H hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from vrbot.knowledge.retrieval import Subgraph, SubgraphRetriever
from vrbot.model.spans import Span
from vrbot.nets.recomputing import computed_again
from vrbot.nets.rgat import RelationalGraphEncoder


@dataclass(frozen=True, eq=False)
class EncodedSubgraphs:
    """Vectors of the nodes [N, X, H], their entity ids [N, X] (0 where there is none), which exist [N, X]."""

    nodes: Tensor
    entities: Tensor
    mask: Tensor
    subgraphs: tuple[Subgraph, ...]

    def select(self, rows: Tensor) -> EncodedSubgraphs:
        kept = tuple(self.subgraphs[i] for i in rows.tolist())
        return EncodedSubgraphs(self.nodes[rows], self.entities[rows], self.mask[rows], kept)


class SubgraphEncoder(nn.Module):
    """qsub, then relational graph attention: G^local_n = RGAT(qsub(S)). Nodes start from a vector of the entity and
    one of the distance from the state's entities."""

    def __init__(
        self, retriever: SubgraphRetriever, num_entities: int, graph_size: int, output_size: int, num_layers: int = 2
    ) -> None:
        super().__init__()
        self.retriever = retriever
        self.entity_vectors = nn.Embedding(num_entities, graph_size)
        self.distance_vectors = nn.Embedding(retriever.hops + 1, graph_size)
        sizes = (*(graph_size for _ in range(num_layers)), output_size)
        self.encoder = RelationalGraphEncoder(sizes, num_relations=len(retriever.graph.relations) + 1)

    def forward(self, state: Span) -> EncodedSubgraphs:
        """The encoded subgraph around each row's state."""
        seeds = [tuple(sorted(ids[kept].tolist())) for ids, kept in zip(state.ids, state.mask, strict=True)]
        return self.encode(self.retriever.retrieve_many(seeds))

    def encode(self, subgraphs: Sequence[Subgraph]) -> EncodedSubgraphs:
        joined = _disjoint_union(subgraphs, self.entity_vectors.weight.device)
        vectors = computed_again(self._vectors, joined)
        width = int(joined.counts.max()) if len(subgraphs) else 0
        nodes = vectors.new_zeros(len(subgraphs), width, vectors.shape[-1])
        nodes = nodes.index_put((joined.row, joined.place), vectors)
        entities = joined.entities.new_zeros(len(subgraphs), width)
        entities[joined.row, joined.place] = joined.entities
        mask = torch.arange(width, device=vectors.device)[None, :] < joined.counts[:, None]
        return EncodedSubgraphs(nodes, entities, mask, tuple(subgraphs))

    def _vectors(self, joined: _Union) -> Tensor:
        """Of all nodes."""
        features = self.entity_vectors(joined.entities) + self.distance_vectors(joined.hops)
        vectors: Tensor = self.encoder(features, joined.sources, joined.targets, joined.relations)
        return vectors


@dataclass(frozen=True, eq=False)
class _Union:
    entities: Tensor
    hops: Tensor
    sources: Tensor
    targets: Tensor
    relations: Tensor
    row: Tensor
    place: Tensor
    counts: Tensor


def _disjoint_union(subgraphs: Sequence[Subgraph], device: torch.device) -> _Union:
    counts = np.array([graph.num_nodes for graph in subgraphs], dtype=np.int64)
    offsets = np.concatenate(([0], counts.cumsum()))
    row = np.repeat(np.arange(len(subgraphs)), counts)
    shift = np.repeat(offsets[:-1], [graph.num_edges for graph in subgraphs])

    def joined(name: str) -> np.ndarray:
        parts = [getattr(graph, name) for graph in subgraphs]
        return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)

    def tensor(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(device)

    return _Union(
        entities=tensor(joined("nodes")),
        hops=tensor(joined("hops")),
        sources=tensor(joined("sources") + shift),
        targets=tensor(joined("targets") + shift),
        relations=tensor(joined("relations")),
        row=tensor(row),
        place=tensor(np.arange(len(row)) - offsets[:-1][row]),
        counts=tensor(counts),
    )
