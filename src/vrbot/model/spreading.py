"""Spreading activation: what the graph itself says of each node, in few numbers that mean the same for all entities.

Relational attention learns a vector for every entity, which takes many dialogues. That a symptom belongs to the disease
most of the findings point to is true of all symptoms alike: with what each kind of link is worth learnt, it holds for
entities that were never seen in training. From the state's entities activation flows along their edges, and what was
spoken of but is not in the state (what the patient denied, above all) takes some away; where most of it meets is the
*focus*; from there it flows one step further. Letters: M nodes of all rows together, R relations, N rows.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from vrbot.knowledge.graph import Graph
from vrbot.model.joined_subgraphs import JoinedSubgraphs

SHARPNESS = 4.0
"""How many nats one usual link more puts a node ahead, at first."""

LACKING = 0.5
"""How much a finding that was looked for in vain takes away at first, where one that is there brings 1."""

SMALLEST = 1e-6
"""Added under roots: their slope at 0 is infinite."""


def num_traits(graph: Graph) -> int:
    """How many traits `SpreadingActivation` tells of a node of this graph."""
    return 1 + 2 * len(graph.relations)


class SpreadingActivation(nn.Module):
    """Traits of every node: its share of the focus (a root); for each relation how much focus points to it (roots),
    and how many of the state's entities do (logarithms), rare ones counting for more."""

    rarity: Tensor

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.num_relations = len(graph.relations)
        self.register_buffer("rarity", _rarity(graph), persistent=False)
        self.worth = nn.Parameter(torch.zeros(self.num_relations))
        self.lacking = nn.Parameter(torch.full((self.num_relations,), LACKING))
        self.sharpness = nn.Parameter(torch.tensor(math.log(SHARPNESS)))

    def forward(self, graphs: JoinedSubgraphs, lacking: Tensor) -> Tensor:
        """[M, 1 + 2R]; `lacking` [M]: whether a node was spoken of and is not in the state."""
        known = self._brought(graphs, graphs.hops == 0)
        focus = self.focus(graphs, lacking)
        pointed = self._through(graphs, focus[graphs.sources])
        linked = self._through(graphs, known)
        return torch.cat(((focus + SMALLEST).sqrt().unsqueeze(1), (pointed + SMALLEST).sqrt(), linked.log1p()), dim=1)

    def focus(self, graphs: JoinedSubgraphs, lacking: Tensor) -> Tensor:
        """The share of each node among those the state's entities of its row point to [M]; 0 for all others."""
        none = self.worth.new_zeros(1)  # links between the state's own say nothing
        worth = torch.cat((self.worth.exp(), none))[graphs.relations]
        against = worth * torch.cat((self.lacking, none))[graphs.relations]
        met = self._sum(graphs.targets, self._brought(graphs, graphs.hops == 0) * worth, len(graphs.entities))
        missed = self._sum(graphs.targets, self._brought(graphs, lacking) * against, len(graphs.entities))
        scores = torch.where(met > 0, (met - missed) * self.sharpness.exp(), -torch.inf)
        top = scores.new_full((len(graphs.counts),), -torch.inf).scatter_reduce(0, graphs.row, scores.detach(), "amax")
        powers = (scores - top.nan_to_num(neginf=0.0)[graphs.row]).exp()
        total = self._sum(graphs.row, powers, len(graphs.counts))
        return powers / total[graphs.row].clamp_min(SMALLEST)

    def _brought(self, graphs: JoinedSubgraphs, nodes: Tensor) -> Tensor:
        """What each edge brings from these nodes [M]: how rare its source is, 0 where it begins elsewhere."""
        return self.rarity[graphs.entities[graphs.sources]] * nodes[graphs.sources]

    def _through(self, graphs: JoinedSubgraphs, brought: Tensor) -> Tensor:
        """What edges bring to each node, added up for each relation [M, R]."""
        width = self.num_relations + 1
        places = graphs.targets * width + graphs.relations
        return self._sum(places, brought, len(graphs.entities) * width).view(-1, width)[:, :-1]

    @staticmethod
    def _sum(places: Tensor, values: Tensor, count: int) -> Tensor:
        return values.new_zeros(count).index_add(0, places, values)


def _rarity(graph: Graph) -> Tensor:
    """Near 1 for an entity with as many links as most have, more for one with fewer [entities]."""
    links = torch.from_numpy(np.diff(graph.offsets)).float()
    usual = float(links[links > 0].mean()) if graph.num_edges else 1.0
    return torch.log1p(graph.num_nodes / links.clamp_min(1.0)) / math.log1p(graph.num_nodes / usual)
