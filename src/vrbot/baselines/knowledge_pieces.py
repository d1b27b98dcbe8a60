"""Pieces of knowledge: facts of the subgraph around what was mentioned so far, each as a sequence of three symbols.

Letters: N rows (turns), P pieces (the first is "none"), E entities, K size of a piece's vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vrbot.dialogue.batching import TurnLayout
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.retrieval import Subgraph, SubgraphRetriever
from vrbot.nets.encoders import BidirectionalEncoder

NO_PIECE = 0
Triples = NDArray[np.int64]
"""Rows of (head, relation, tail)."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The facts each row may use; place 0 is "none", which only a row without facts has. Ids of head, relation
    and tail [N, P], -1 at place 0 and where there is no piece."""

    heads: Tensor
    relations: Tensor
    tails: Tensor
    mask: Tensor  # [N, P]

    def to(self, device: torch.device) -> Pieces:
        return Pieces(*(part.to(device) for part in (self.heads, self.relations, self.tails, self.mask)))

    @property
    def entities(self) -> Tensor:
        """Head and tail of every piece [N, P, 2], -1 where there is none."""
        return torch.stack((self.heads, self.tails), dim=-1)

    def holding(self, entities: Tensor) -> Tensor:
        """Which pieces [N, P] name one of these entities [N, K] (-1 after the end); for no entities "none", if it is
        there."""
        named = entities.masked_fill(entities < 0, -2)[:, None, None, :]
        holds = (self.entities.unsqueeze(-1) == named).any(dim=-1).any(dim=-1)
        holds[:, NO_PIECE] = (entities < 0).all(dim=1) & self.mask[:, NO_PIECE]
        return holds


class PieceFinder:
    """Retrieves the subgraph and states its facts; answers are remembered, training asks for the same ones often."""

    def __init__(
        self,
        graph: Graph,
        hops: int,
        subgraph_limit: int,
        limit: int,
        cache_size: int = 20_000,
    ) -> None:
        self.retriever = SubgraphRetriever(graph, hops, subgraph_limit, cache_size=1)
        self.num_relations, self.limit = len(graph.relations), limit
        self._remembered = lru_cache(maxsize=cache_size)(self._facts)

    def find(self, seeds: Sequence[tuple[int, ...]]) -> Pieces:
        """The pieces around the seeds of each row; without seeds there is only "none"."""
        found = [self._remembered(tuple(sorted(each))) for each in seeds]
        width = 1 + max((len(facts) for facts in found), default=0)
        table = np.full((len(found), width, 3), -1, dtype=np.int64)
        mask = np.zeros((len(found), width), dtype=bool)
        for row, facts in enumerate(found):
            table[row, 1 : 1 + len(facts)] = facts
            mask[row, 1 : 1 + len(facts)] = True
            mask[row, NO_PIECE] = not len(facts)
        heads, relations, tails = torch.from_numpy(table).unbind(dim=-1)
        return Pieces(heads, relations, tails, torch.from_numpy(mask))

    def _facts(self, seeds: tuple[int, ...]) -> Triples:
        return facts_of(self.retriever.retrieve(seeds), self.num_relations, self.limit)


def facts_of(subgraph: Subgraph, num_relations: int, limit: int) -> Triples:
    """At most `limit` facts of a subgraph, each once.

    Where a graph states a fact from both ends, the statement away from the seeds is kept. Every entity gets one fact
    before any gets a second, nearer entities first. The links retrieval adds between seeds are no facts.
    """
    sources, targets, relations = subgraph.sources, subgraph.targets, subgraph.relations
    near, far = np.minimum(sources, targets), np.maximum(sources, targets)  # nodes stand nearest first
    pair, outward = near.astype(np.int64) * subgraph.num_nodes + far, sources < targets
    fact = (relations < num_relations) & (near < far)
    kept = np.flatnonzero(fact & (outward | ~np.isin(pair, pair[fact & outward])))
    kept = kept[np.lexsort((relations[kept], near[kept], far[kept]))]
    rank = np.arange(len(kept)) - np.searchsorted(far[kept], far[kept])  # among the facts of the same entity
    best = kept[np.lexsort((far[kept], rank))[:limit]]
    nodes = subgraph.nodes.astype(np.int64)
    return np.stack((nodes[sources[best]], relations[best].astype(np.int64), nodes[targets[best]]), axis=1)


class PieceEncoder(nn.Module):
    """A BiGRU over head, relation and tail; entities have the vectors of their names, relations their own.

    Every different fact of a batch is read once, however many rows it stands in.
    """

    entity_words: Tensor

    def __init__(
        self, words: nn.Embedding, entity_words: Tensor, num_relations: int, hidden_size: int, dropout: float
    ) -> None:
        super().__init__()
        self.words = words
        self.relations = nn.Embedding(num_relations, words.embedding_dim)
        nn.init.normal_(self.relations.weight, std=words.embedding_dim**-0.5)
        self.none = nn.Parameter(torch.zeros(hidden_size))
        self.encoder = BidirectionalEncoder(words.embedding_dim, hidden_size)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("entity_words", entity_words.long(), persistent=False)

    def forward(self, pieces: Pieces) -> Tensor:
        """Vectors of the pieces [N, P, K]; zeros where there is no piece."""
        vectors = self.none.new_zeros(*pieces.mask.shape, len(self.none))
        vectors[:, NO_PIECE] = self.none
        row, place = (pieces.heads >= 0).nonzero(as_tuple=True)
        if not len(row):
            return vectors
        facts = torch.stack([part[row, place] for part in (pieces.heads, pieces.relations, pieces.tails)], dim=1)
        different, number = facts.unique(dim=0, return_inverse=True)
        heads, tails = (self.words(self.entity_words[different[:, column]]) for column in (0, 2))
        symbols = torch.stack((heads, self.relations(different[:, 1]), tails), dim=1)
        lengths = torch.full((len(different),), 3, device=symbols.device)
        read = self.encoder(self.dropout(symbols), lengths).summary
        return vectors.index_put((row, place), read[number])


def mentioned_so_far(mentions: Tensor, layout: TurnLayout, limit: int) -> list[tuple[int, ...]]:
    """The latest `limit` different entities of the dialogue up to each turn, from mentions [N, M] (-1: none)."""
    known: list[dict[int, None]] = [{} for _ in range(layout.num_sessions)]
    seeds: list[tuple[int, ...]] = []
    for session, entities in zip(layout.session.tolist(), mentions.tolist(), strict=True):
        latest = known[session]
        for entity in entities:
            if entity >= 0:
                latest.pop(entity, None)
                latest[entity] = None
        seeds.append(tuple(latest)[-limit:])
    return seeds
