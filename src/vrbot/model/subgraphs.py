"""Subgraphs around the states of a batch, encoded as one disjoint graph.

Retrieval sees only which entities a state names; no gradient flows through it.
Letters: N rows, X nodes of the largest subgraph, H hidden size, K traits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.knowledge.retrieval import Subgraph, SubgraphRetriever
from vrbot.model.joined_subgraphs import JoinedSubgraphs, join
from vrbot.model.spans import Span
from vrbot.model.spreading import SpreadingActivation
from vrbot.model.standing import is_lacking
from vrbot.nets.recomputing import computed_again
from vrbot.nets.rgat import RelationalGraphEncoder


@dataclass(frozen=True, eq=False)
class EncodedSubgraphs:
    """Vectors of the nodes [N, X, H], their entity ids [N, X] (0 where there is none), which exist [N, X].

    `traits` [N, X, K]: how each is linked to what is known, where the encoder looks at that.
    """

    nodes: Tensor
    entities: Tensor
    mask: Tensor
    subgraphs: tuple[Subgraph, ...]
    traits: Tensor | None = None

    def select(self, rows: Tensor) -> EncodedSubgraphs:
        kept = tuple(self.subgraphs[i] for i in rows.tolist())
        traits = None if self.traits is None else self.traits[rows]
        return EncodedSubgraphs(self.nodes[rows], self.entities[rows], self.mask[rows], kept, traits)


class SubgraphEncoder(nn.Module):
    """qsub, then relational graph attention: G^local_n = RGAT(qsub(S)). Nodes start from a vector of the entity and
    one of the distance from the state's entities; with `spreading` they have traits as well."""

    def __init__(
        self,
        retriever: SubgraphRetriever,
        num_entities: int,
        graph_size: int,
        output_size: int,
        spreading: SpreadingActivation | None = None,
        *,
        num_layers: int = 2,
    ) -> None:
        super().__init__()
        self.retriever, self.spreading = retriever, spreading
        self.entity_vectors = nn.Embedding(num_entities, graph_size)
        self.distance_vectors = nn.Embedding(retriever.hops + 1, graph_size)
        sizes = (*(graph_size for _ in range(num_layers)), output_size)
        self.encoder = RelationalGraphEncoder(sizes, num_relations=len(retriever.graph.relations) + 1)

    def forward(self, state: Span, standing: Tensor | None = None) -> EncodedSubgraphs:
        """The encoded subgraph around each row's state; `standing` [N, E, 5] as in `model.standing`."""
        seeds = [tuple(sorted(ids[kept].tolist())) for ids, kept in zip(state.ids, state.mask, strict=True)]
        return self.encode(self.retriever.retrieve_many(seeds), standing)

    def encode(self, subgraphs: Sequence[Subgraph], standing: Tensor | None = None) -> EncodedSubgraphs:
        joined = join(subgraphs, self.entity_vectors.weight.device)
        each = len(self.encoder.layers) * self.entity_vectors.embedding_dim
        vectors = computed_again((len(joined.entities) + len(joined.sources)) * each, self._vectors, joined)
        traits = None if self.spreading is None else self._traits(self.spreading, joined, standing)
        entities = joined.by_row(joined.entities)
        mask = torch.arange(entities.shape[1], device=vectors.device)[None, :] < joined.counts[:, None]
        return EncodedSubgraphs(joined.by_row(vectors), entities, mask, tuple(subgraphs), traits)

    @staticmethod
    def _traits(spreading: SpreadingActivation, joined: JoinedSubgraphs, standing: Tensor | None) -> Tensor:
        """[N, X, K]"""
        if standing is None:
            return joined.by_row(spreading(joined, torch.zeros_like(joined.row, dtype=torch.bool)))
        return joined.by_row(spreading(joined, is_lacking(standing[joined.row, joined.entities])))

    def _vectors(self, joined: JoinedSubgraphs) -> Tensor:
        """Of all nodes."""
        features = self.entity_vectors(joined.entities) + self.distance_vectors(joined.hops)
        vectors: Tensor = self.encoder(features, joined.sources, joined.targets, joined.relations)
        return vectors
