"""Spreading activation: what the graph itself says of each node, in few numbers that mean the same for all entities.

Relational attention learns a vector for every entity, which takes many dialogues. That a symptom belongs to the disease
most of the findings point to is true of all symptoms alike: with what each kind of link is worth learnt, it holds for
entities that were never seen in training. From the state's entities activation flows along their edges, and what was
spoken of but is not in the state may take some away (denied) or bring some (why did the physician ask?); where most of
it meets is a *focus*; from there it flows one step further. A second focus is of everything that was spoken of.
Letters: M nodes of all rows together, L edges, R relations, N rows.
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

LACKING = 0.25
"""How much a finding that was spoken of and is not there takes away at first, where one that is there brings 1."""

RATE = 10.0
"""How much faster than the rest of the policy these numbers learn: they are few, and every turn says something of
them."""

SMALLEST = 1e-6
"""Added under roots: their slope at 0 is infinite."""


def num_traits(graph: Graph) -> int:
    """How many traits `SpreadingActivation` tells of a node of this graph."""
    return 2 * (1 + 2 * len(graph.relations))


class Focus(nn.Module):
    """Where what edges bring meets: what a link of each relation is worth, how sharply most of it counts, and with
    `lacking` how much a link from what is lacking takes away."""

    learning_rate_factor = RATE

    def __init__(self, num_relations: int, *, lacking: bool) -> None:
        super().__init__()
        self.worth = nn.Parameter(torch.zeros(num_relations))
        self.lacking = nn.Parameter(torch.full((num_relations,), LACKING)) if lacking else None
        self.sharpness = nn.Parameter(torch.tensor(math.log(SHARPNESS)))

    def forward(self, graphs: JoinedSubgraphs, brought: Tensor, missing: Tensor | None = None) -> Tensor:
        """The share of each node [M] among those that edges [L] bring something to, in its row; 0 for all others."""
        none = self.worth.new_zeros(1)  # links between the state's own say nothing
        worth = torch.cat((self.worth.exp(), none))[graphs.relations]
        met = scores = added_up(graphs.targets, brought * worth, len(graphs.entities))
        if self.lacking is not None and missing is not None:
            against = worth * torch.cat((self.lacking, none))[graphs.relations]
            scores = met - added_up(graphs.targets, missing * against, len(graphs.entities))
        scores = torch.where(met > 0, scores * self.sharpness.exp(), -torch.inf)
        top = scores.new_full((len(graphs.counts),), -torch.inf).scatter_reduce(0, graphs.row, scores.detach(), "amax")
        powers = (scores - top.nan_to_num(neginf=0.0)[graphs.row]).exp()
        total = added_up(graphs.row, powers, len(graphs.counts))
        return powers / total[graphs.row].clamp_min(SMALLEST)


class SpreadingActivation(nn.Module):
    """Traits of every node, once for the state and once for everything spoken of: its share of the focus (a root); for
    each relation how much focus points to it (roots), and how many of those entities do (logarithms), rare ones
    counting for more."""

    rarity: Tensor

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.num_relations = len(graph.relations)
        self.register_buffer("rarity", _rarity(graph), persistent=False)
        self.of_state = Focus(self.num_relations, lacking=True)
        self.of_all = Focus(self.num_relations, lacking=False)

    def forward(self, graphs: JoinedSubgraphs, lacking: Tensor) -> Tensor:
        """[M, 2 + 4R]; `lacking` [M]: whether a node was spoken of and is not in the state."""
        found, missing = self.brought(graphs, graphs.hops == 0), self.brought(graphs, lacking)
        spoken = found + missing
        of_state = self._traits(graphs, self.of_state(graphs, found, missing), found)
        return torch.cat((*of_state, *self._traits(graphs, self.of_all(graphs, spoken), spoken)), dim=1)

    def brought(self, graphs: JoinedSubgraphs, nodes: Tensor) -> Tensor:
        """What each edge brings from these nodes [M]: how rare its source is, 0 where it begins elsewhere [L]."""
        return self.rarity[graphs.entities[graphs.sources]] * nodes[graphs.sources]

    def _traits(self, graphs: JoinedSubgraphs, focus: Tensor, brought: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        pointed, linked = self._through(graphs, focus[graphs.sources]), self._through(graphs, brought)
        return (focus + SMALLEST).sqrt().unsqueeze(1), (pointed + SMALLEST).sqrt(), linked.log1p()

    def _through(self, graphs: JoinedSubgraphs, brought: Tensor) -> Tensor:
        """What edges bring to each node, added up for each relation [M, R]."""
        width = self.num_relations + 1
        places = graphs.targets * width + graphs.relations
        return added_up(places, brought, len(graphs.entities) * width).view(-1, width)[:, :-1]


def added_up(places: Tensor, values: Tensor, count: int) -> Tensor:
    """The sum of the values of each of so many places."""
    return values.new_zeros(count).index_add(0, places, values)


def _rarity(graph: Graph) -> Tensor:
    """Near 1 for an entity with as many links as most have, more for one with fewer [entities]."""
    links = torch.from_numpy(np.diff(graph.offsets)).float()
    usual = float(links[links > 0].mean()) if graph.num_edges else 1.0
    return torch.log1p(graph.num_nodes / links.clamp_min(1.0)) / math.log1p(graph.num_nodes / usual)
