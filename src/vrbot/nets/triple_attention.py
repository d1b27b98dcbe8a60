"""Attention over one-hop graphs and the triples in them: static where a text is read, dynamic where one is written.

Letters: N rows, G graphs of a row, X triples of a graph, U entities of a batch, Q queries per row, S size of an
entity's vector, H hidden size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.nets.one_hop import TripleTable
from vrbot.probability.category import masked_log_softmax


@dataclass(frozen=True, eq=False)
class GraphMemory:
    """The graphs of each row: their vectors [N, G, H], those of their triples [N, G, X, H], which exist [N, G, X]."""

    graphs: Tensor
    triples: Tensor
    triple_mask: Tensor

    @property
    def mask(self) -> Tensor:
        """Which graphs have a triple [N, G]."""
        return self.triple_mask.any(dim=-1)

    def select(self, rows: Tensor | slice) -> GraphMemory:
        return GraphMemory(self.graphs[rows], self.triples[rows], self.triple_mask[rows])


@dataclass(frozen=True, eq=False)
class EntityTriples:
    """The triples around the entities of a batch, each computed once; `ids` [U] rise and begin with -1, "no entity"."""

    ids: Tensor
    parts: tuple[Tensor, Tensor, Tensor]  # vectors of heads, relations and tails [U, X, S]
    vectors: Tensor  # [U, X, H]
    tails: Tensor  # [U, X], entity ids
    mask: Tensor  # [U, X]

    def places(self, entities: Tensor) -> Tensor:
        """Where these entities of the batch stand; -1 is no entity."""
        return torch.searchsorted(self.ids, entities.contiguous())


class TripleEncoder(nn.Module):
    """Vectors of triples, from those of their entities and relations."""

    def __init__(self, table: TripleTable, num_relations: int, size: int, hidden_size: int) -> None:
        super().__init__()
        self.table = table
        self.entities = nn.Embedding(len(table.tails), size)
        self.relations = nn.Embedding(max(num_relations, 1), size)
        for vectors in (self.entities, self.relations):
            nn.init.normal_(vectors.weight, std=size**-0.5)
        self.project = nn.Linear(3 * size, hidden_size)

    def forward(self, entities: Tensor) -> EntityTriples:
        """The triples around all these entities [...]; -1 is no entity."""
        nobody = entities.new_full((1,), -1)
        ids = torch.cat((nobody, entities.flatten())).unique()
        found = self.table.around(ids)
        tail, relation = self.entities(found.tails), self.relations(found.relations)
        head = self.entities(ids.clamp_min(0)).unsqueeze(1).expand_as(tail)
        vectors = torch.tanh(self.project(torch.cat((head, relation, tail), dim=-1)))
        return EntityTriples(ids, (head, relation, tail), vectors, found.tails, found.mask)


class StaticGraphAttention(nn.Module):
    """A vector for each entity's graph: (W_r r) . tanh(W_h h + W_t t) weighs its triples' [h; t].

    A graph without triples, and a word that is no entity, has a vector of its own: "there is no fact".
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.of_head, self.of_tail = nn.Linear(size, size, bias=False), nn.Linear(size, size, bias=False)
        self.of_relation = nn.Linear(size, size, bias=False)
        self.no_fact = nn.Parameter(torch.randn(2 * size) * size**-0.5)

    @property
    def output_size(self) -> int:
        return len(self.no_fact)

    def forward(self, around: EntityTriples) -> Tensor:
        """[U, 2S]"""
        head, _, tail = around.parts
        weights = self.log_weights(around).exp().unsqueeze(-1)
        vectors = (weights * torch.cat((head, tail), dim=-1)).sum(dim=1)
        return torch.where(around.mask.any(dim=-1, keepdim=True), vectors, self.no_fact)

    def log_weights(self, around: EntityTriples) -> Tensor:
        """Log weights of the triples of each graph [U, X]; `-inf` everywhere in a graph without triples."""
        head, relation, tail = around.parts
        scores = (self.of_relation(relation) * torch.tanh(self.of_head(head) + self.of_tail(tail))).sum(dim=-1)
        return masked_log_softmax(scores, around.mask)


class GraphAttention(nn.Module):
    """Dynamic and hierarchical: a query weighs the graphs that have triples, and inside each of them the triples."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.graph_query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.triple_query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.scale = 1.0 / math.sqrt(hidden_size)

    def graph_log_weights(self, query: Tensor, memory: GraphMemory) -> Tensor:
        """Queries [N, Q, H] -> log weights of the graphs [N, Q, G]; `-inf` everywhere in a row without triples."""
        scores = torch.bmm(self.graph_query(query), memory.graphs.transpose(1, 2)) * self.scale
        return masked_log_softmax(scores, memory.mask.unsqueeze(1))

    def triple_log_weights(self, query: Tensor, memory: GraphMemory) -> Tensor:
        """Log weights of all triples of a row [N, Q, G * X]: the graph's and the triple's inside it, multiplied."""
        flat = memory.triples.flatten(1, 2)  # [N, GX, H]
        scores = torch.bmm(self.triple_query(query), flat.transpose(1, 2)) * self.scale
        inside = masked_log_softmax(scores.unflatten(2, memory.triple_mask.shape[1:]), memory.triple_mask.unsqueeze(1))
        return (self.graph_log_weights(query, memory).unsqueeze(-1) + inside).flatten(2)


class ReadGraphs(nn.Module):
    """What the queries read from the graphs' vectors; zeros where there is no triple."""

    def __init__(self, attention: GraphAttention) -> None:
        super().__init__()
        self.attention = attention

    def read(self, query: Tensor, memory: GraphMemory) -> Tensor:
        """Queries [N, Q, H] -> [N, Q, H]."""
        return torch.bmm(self.attention.graph_log_weights(query, memory).exp(), memory.graphs)


class ReadTriples(nn.Module):
    """What the queries read from the triples' vectors; zeros where there is no triple."""

    def __init__(self, attention: GraphAttention) -> None:
        super().__init__()
        self.attention = attention

    def read(self, query: Tensor, memory: GraphMemory) -> Tensor:
        """Queries [N, Q, H] -> [N, Q, H]."""
        weights = self.attention.triple_log_weights(query, memory).exp()
        return torch.bmm(weights, memory.triples.flatten(1, 2))
