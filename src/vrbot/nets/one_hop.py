"""One-hop facts: the entities a turn stands on, and the triples of the graph that begin at them.

Letters: N rows, M mentions, G entities of a row, X triples of an entity, E entities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from vrbot.dialogue.batching import NO_ENTITY, TurnInputs, TurnLayout
from vrbot.knowledge.graph import Graph


@dataclass(frozen=True, eq=False)
class Triples:
    """Relations and tails of the triples around each entity [..., X] (0 where there is none), which exist [..., X]."""

    relations: Tensor
    tails: Tensor
    mask: Tensor


class TripleTable(nn.Module):
    """The triples of every entity, at most `limit` each, so that a batch's are looked up by one index.

    Of more, those stay whose tails have the highest `preference` [E]; equals in the order of the graph.
    """

    relations: Tensor  # [E, X], E and X at least 1
    tails: Tensor  # [E, X]
    degrees: Tensor  # [E]

    def __init__(self, graph: Graph, num_entities: int, limit: int, preference: Tensor) -> None:
        super().__init__()
        degrees = np.zeros(max(num_entities, 1), dtype=np.int64)
        degrees[: graph.num_nodes] = np.diff(graph.offsets)
        heads = np.repeat(np.arange(len(degrees)), degrees)
        order = np.lexsort((-preference.numpy()[graph.targets], heads))
        rank = np.arange(len(heads)) - np.repeat(np.cumsum(degrees) - degrees, degrees)
        chosen, kept = order[rank < limit], rank < limit
        width = max(min(limit, int(degrees.max())), 1)
        for name, values in (("relations", graph.relation_ids), ("tails", graph.targets)):
            table = np.zeros((len(degrees), width), dtype=np.int64)
            table[heads[kept], rank[kept]] = values[chosen]
            self.register_buffer(name, torch.from_numpy(table), persistent=False)
        self.register_buffer("degrees", torch.from_numpy(np.minimum(degrees, limit)), persistent=False)

    def around(self, entities: Tensor) -> Triples:
        """The triples that begin at these entities [...], -1 where there is none -> [..., X]."""
        known = entities.clamp_min(0)
        count = torch.where(entities >= 0, self.degrees[known], 0)
        mask = torch.arange(self.tails.shape[1], device=entities.device) < count.unsqueeze(-1)
        return Triples(self.relations[known], self.tails[known], mask)


def latest_entities(inputs: TurnInputs, num_entities: int, count: int, layout: TurnLayout | None = None) -> Tensor:
    """The last `count` distinct entities mentioned in each context, latest first [N, G]; -1 where there is none.

    With a layout those of earlier turns of the session count, too. G is at least 1 and at most `count`.
    """
    mentions = inputs.mention_entities
    if mentions.shape[1] == 0 or num_entities == 0:
        return mentions.new_full((len(mentions), 1), NO_ENTITY)
    place = torch.arange(1, mentions.shape[1] + 1, device=mentions.device, dtype=torch.float)
    said = torch.where(mentions >= 0, place, 0.0)
    when = said.new_zeros(len(mentions), num_entities).scatter_reduce(1, mentions.clamp_min(0), said, "amax")
    if layout is not None:
        when = _along_session(when, mentions.shape[1], layout)
    latest, ids = when.topk(min(count, num_entities), dim=1)
    width = max(int((latest > 0).sum(dim=1).max()) if len(latest) else 0, 1)
    return torch.where(latest > 0, ids, NO_ENTITY)[:, :width]


def _along_session(when: Tensor, turn_length: int, layout: TurnLayout) -> Tensor:
    """When each entity was mentioned last, by turn and place in it [N, E]; 0 for never."""
    latest = torch.zeros_like(when[: layout.num_sessions])
    rows = []
    for turn, now in enumerate(when.split(layout.turn_sizes)):
        latest = torch.where(now > 0, now + turn * turn_length, latest[: len(now)])
        rows.append(latest)
    return torch.cat(rows)
