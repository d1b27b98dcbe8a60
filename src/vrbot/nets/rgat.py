"""Relational graph attention (Busbridge et al., 2019), folded and sparse: the paper's RGAT, section 3.4.

Several graphs are encoded at once as one disjoint graph. Letters: N nodes of all graphs together, E edges, F input
size, O output size of a head, K heads, P pairs (target, relation) that have an edge.

What keeps it cheap, with the result unchanged: the attention vectors are multiplied into the relation weights once, so
an edge's logit is a sum of two scalars looked up per (node, relation); and neighbours are summed, weighted, per pair
*before* the projection, so that each pair is projected once and only relations that occur at a node cost anything.
Every sum runs in a fixed order on a CPU (`embedding_bag`, `index_add`), so results repeat to the last bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Normalisation = Literal["across-relation", "within-relation"]


@dataclass(frozen=True, eq=False)
class GroupedEdges:
    """Edges sorted by (relation, target), with the pairs they form; made once and used by every layer."""

    source: Tensor  # [E]
    target: Tensor  # [E]
    relation: Tensor  # [E]
    order: Tensor  # [E], where each sorted edge stood in the caller's order
    pair: Tensor  # [E], the pair of each edge
    first_edge: Tensor  # [P], where each pair's edges begin
    pair_target: Tensor  # [P]
    pairs_per_relation: tuple[int, ...]
    num_nodes: int

    @property
    def num_pairs(self) -> int:
        return len(self.pair_target)


def group_edges(source: Tensor, target: Tensor, relation: Tensor, num_nodes: int, num_relations: int) -> GroupedEdges:
    """Sorts edges [E] for `RelationalGraphAttention`."""
    key, order = (relation * num_nodes + target).sort(stable=True)
    pairs, pair, edges_per_pair = torch.unique_consecutive(key, return_inverse=True, return_counts=True)
    return GroupedEdges(
        source=source[order],
        target=target[order],
        relation=relation[order],
        order=order,
        pair=pair,
        first_edge=edges_per_pair.cumsum(0) - edges_per_pair,
        pair_target=pairs % max(num_nodes, 1),
        pairs_per_relation=tuple(torch.bincount(pairs // max(num_nodes, 1), minlength=num_relations).tolist()),
        num_nodes=num_nodes,
    )


class RelationalGraphAttention(nn.Module):
    """One layer with additive attention; equals `torch_geometric.nn.RGATConv` with the same weights.

    Softmax runs over all edges into a node (`across-relation`) or over those of one relation (`within-relation`).
    The layer adds no self-loops; a node without incoming edges gets the bias alone.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        num_relations: int,
        num_heads: int = 1,
        *,
        normalisation: Normalisation = "across-relation",
        negative_slope: float = 0.2,
    ) -> None:
        super().__init__()
        self.output_size, self.num_relations, self.num_heads = output_size, num_relations, num_heads
        self.normalisation, self.negative_slope = normalisation, negative_slope
        self.weight = nn.Parameter(torch.empty(num_relations, input_size, num_heads * output_size))
        self.query = nn.Parameter(torch.empty(num_heads * output_size, num_heads))
        self.key = nn.Parameter(torch.empty(num_heads * output_size, num_heads))
        self.bias = nn.Parameter(torch.zeros(num_heads * output_size))
        for relation_weight in self.weight.data:
            nn.init.xavier_uniform_(relation_weight)
        nn.init.xavier_uniform_(self.query)
        nn.init.xavier_uniform_(self.key)

    def forward(self, features: Tensor, source: Tensor, target: Tensor, relation: Tensor) -> Tensor:
        """Node features [N, F] and edges [E] (information flows source -> target) -> [N, K * O]."""
        edges = group_edges(source, target, relation, len(features), self.num_relations)
        return self.propagate(features, edges, self.attention(features, edges))

    def attention(self, features: Tensor, edges: GroupedEdges) -> Tensor:
        """How much each edge counts at its target -> [E, K], in the order of `edges`."""
        folded = torch.cat([self.weight @ self.query, self.weight @ self.key], dim=2)  # [relations, F, 2K]
        scalars = torch.einsum("nf,rfk->nrk", features, folded)  # [N, relations, 2K]
        asked, offered = scalars.chunk(2, dim=2)
        logits = asked[edges.target, edges.relation] + offered[edges.source, edges.relation]
        logits = F.leaky_relu(logits, self.negative_slope)
        if self.normalisation == "within-relation":
            return _grouped_softmax(logits, edges.pair, edges.num_pairs)
        return _grouped_softmax(logits, edges.target, edges.num_nodes)

    def propagate(self, features: Tensor, edges: GroupedEdges, attention: Tensor) -> Tensor:
        """Sums the neighbours of each node under `attention` [E, K] -> [N, K * O]."""
        by_head = self.weight.view(self.num_relations, -1, self.num_heads, self.output_size).unbind(dim=2)
        projected = [
            self._project(_sum_per_pair(features, edges, weights), edges, relation_weights)
            for weights, relation_weights in zip(attention.unbind(dim=1), by_head, strict=True)
        ]
        messages = projected[0] if self.num_heads == 1 else torch.cat(projected, dim=1)
        apply: Callable[..., Tensor] = _SumPerTarget.apply
        return apply(messages, edges.pair_target, edges.num_nodes) + self.bias

    @staticmethod
    def _project(sums: Tensor, edges: GroupedEdges, relation_weights: Tensor) -> Tensor:
        """Each pair through the weights [relations, F, O] of its relation: [P, F] -> [P, O]."""
        parts = torch.split(sums, list(edges.pairs_per_relation))
        # `unbind` has one gradient for all relations; indexing would make a full-sized one for each.
        return torch.cat([part @ weight for part, weight in zip(parts, relation_weights.unbind(0), strict=True)])


@dataclass(frozen=True, eq=False)
class EncodedGraph:
    """Node vectors, and per layer how much each of the caller's edges counted."""

    nodes: Tensor  # [N, sizes[-1]]
    attention: tuple[Tensor, ...]  # one [E, 1] per layer, in the caller's order; self-loops are left out


class RelationalGraphEncoder(nn.Module):
    """Layers of relational attention with self-loops (as relation `num_relations`) and ELU between them."""

    def __init__(self, sizes: Sequence[int] = (128, 128, 512), *, num_relations: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_relations = num_relations
        self.layers = nn.ModuleList(
            RelationalGraphAttention(input_size, output_size, num_relations + 1)
            for input_size, output_size in itertools.pairwise(sizes)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, features: Tensor, source: Tensor, target: Tensor, relation: Tensor) -> Tensor:
        """Node features [N, sizes[0]] and edges [E] -> node vectors [N, sizes[-1]]."""
        return self.encode(features, source, target, relation).nodes

    def encode(self, features: Tensor, source: Tensor, target: Tensor, relation: Tensor) -> EncodedGraph:
        """As `forward`, with the attention that led there."""
        num_nodes, num_edges = len(features), len(source)
        nodes = torch.arange(num_nodes)
        edges = group_edges(
            torch.cat([source, nodes]),
            torch.cat([target, nodes]),
            torch.cat([relation, torch.full((num_nodes,), self.num_relations)]),
            num_nodes,
            self.num_relations + 1,
        )
        attention = []
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, RelationalGraphAttention)
            if number > 0:
                features = self.dropout(F.elu(features))
            weights = layer.attention(features, edges)
            features = layer.propagate(features, edges, weights)
            attention.append(torch.empty_like(weights).index_copy(0, edges.order, weights)[:num_edges])
        return EncodedGraph(features, tuple(attention))


class _SumPerTarget(torch.autograd.Function):
    """Messages [P, O] added up by their targets [P]; `index_add` would keep the messages for its backward pass."""

    @staticmethod
    def forward(ctx: Any, messages: Tensor, target: Tensor, num_nodes: int) -> Tensor:
        ctx.save_for_backward(target)
        return messages.new_zeros(num_nodes, messages.shape[1]).index_add_(0, target, messages)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (target,) = ctx.saved_tensors
        return gradients[0].index_select(0, target), None, None


def _grouped_softmax(logits: Tensor, group: Tensor, num_groups: int) -> Tensor:
    """Softmax of logits [E, K] within each group; groups are numbered [E]."""
    index = group.unsqueeze(1).expand_as(logits)
    highest = logits.new_zeros(num_groups, logits.size(1)).scatter_reduce(
        0, index, logits.detach(), "amax", include_self=False
    )
    mass = (logits - highest[group]).exp()
    total = logits.new_zeros(num_groups, logits.size(1)).index_add(0, group, mass)
    return mass / total[group]


def _sum_per_pair(features: Tensor, edges: GroupedEdges, weights: Tensor) -> Tensor:
    """Weighted sum of the sources of each pair: features [N, F], weights [E] -> [P, F]."""
    return F.embedding_bag(edges.source, features, edges.first_edge, mode="sum", per_sample_weights=weights)
