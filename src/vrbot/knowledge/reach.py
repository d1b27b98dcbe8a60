"""How far walks from the seeds get: one hop after another, over sorted arrays and never over the whole graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vrbot.knowledge.graph import Graph

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

EDGES_PER_HOP = 4096
"""With a limit, one hop reads about this many edges, shared fairly among the nodes it starts from."""

FEWEST_EDGES_PER_NODE = 16

SEED_BITS = 62
"""Seeds are counted with one bit each; queries with still more seeds share bits."""

NO_PARENT = -1

MOST_VISITS = 32.0
"""More than a walk of the longest length can make."""

LONG_ROW = 16
"""A row so many times longer than the nodes asked about is searched for them instead of read."""


@dataclass(frozen=True)
class Reached:
    """Nodes sorted by id: hop, the seeds that reach it (bits), the node it came from.

    `visits`: how often a walk that begins at any of the seeds and goes on at random is expected to come by.
    """

    ids: Ints
    hops: Ints
    seed_bits: Ints
    visits: Floats
    parents: Ints

    @classmethod
    def from_seeds(cls, seeds: Ints) -> Reached:
        ids = np.sort(seeds)
        bits = np.left_shift(1, np.argsort(seeds) % SEED_BITS)
        return cls(ids, np.zeros_like(ids), bits, np.full(len(ids), 1 / max(len(ids), 1)), np.full_like(ids, NO_PARENT))

    def only(self, ids: Ints) -> Reached:
        """The same for some of the nodes, in the order given."""
        at = self.ids.searchsorted(ids)
        return Reached(self.ids[at], self.hops[at], self.seed_bits[at], self.visits[at], self.parents[at])

    def merge(self, found: Reached) -> Reached:
        """Both together; a node known before keeps its hop and parent and gains seeds and visits."""
        if not len(found.ids):
            return self
        ids = np.concatenate((self.ids, found.ids))
        order = np.argsort(ids, kind="stable")
        starts = _group_starts(ids[order])
        first = order[starts]
        return Reached(
            ids[first],
            np.concatenate((self.hops, found.hops))[first],
            np.bitwise_or.reduceat(np.concatenate((self.seed_bits, found.seed_bits))[order], starts),
            np.add.reduceat(np.concatenate((self.visits, found.visits))[order], starts),
            np.concatenate((self.parents, found.parents))[first],
        )


def reach(graph: Graph, seeds: Ints, hops: int, limit: int | None) -> Reached:
    """All that walks of at most `hops` edges from the seeds come by; with a limit each goes on from the best nodes."""
    reached = frontier = Reached.from_seeds(seeds)
    for hop in range(1, hops + 1):
        if limit is not None:
            frontier = frontier.only(np.sort(best_nodes(frontier, 2 * limit + len(seeds))))
        found = step(graph, frontier, hop, limited=limit is not None)
        reached = reached.merge(found)
        frontier = replace(reached.only(found.ids), visits=found.visits)
    return reached


def step(graph: Graph, frontier: Reached, hop: int, limited: bool) -> Reached:
    """What one more edge reaches from the frontier; of several ways to a node the first in order is its parent.

    Limited, a node with very many edges is read at evenly spaced places, the same ones each time.
    """
    first = graph.offsets[frontier.ids]
    degrees = graph.offsets[frontier.ids + 1] - first
    num_read = degrees
    if limited:
        share = EDGES_PER_HOP // max(1, len(frontier.ids))
        num_read = np.minimum(degrees, max(FEWEST_EDGES_PER_NODE, share))
    owners, within = _ranges(num_read)
    if limited:
        within = within * degrees[owners] // num_read[owners]
    edges = first[owners] + within
    arrivals = np.sort(graph.targets[edges].astype(np.int64) << 32 | np.arange(len(edges)))  # by target, then as read
    if not len(arrivals):
        return frontier.only(frontier.ids[:0])
    targets, order = arrivals >> 32, arrivals & 0xFFFFFFFF
    starts = _group_starts(targets)
    onward = (frontier.visits / np.maximum(num_read, 1))[owners]
    return Reached(
        targets[starts],
        np.full(len(starts), hop, dtype=np.int64),
        np.bitwise_or.reduceat(frontier.seed_bits[owners[order]], starts),
        np.add.reduceat(onward[order], starts),
        frontier.ids[owners[order[starts]]],
    )


def best_nodes(reached: Reached, count: int) -> Ints:
    """The `count` best nodes, best first: those that more seeds reach, then those with more visits, the lower id."""
    rank = np.bitwise_count(reached.seed_bits) * MOST_VISITS + reached.visits  # one number, compared at once
    good = np.arange(len(rank))
    if len(rank) > count:
        threshold = np.partition(rank, len(rank) - count)[len(rank) - count]
        good = np.flatnonzero(rank >= threshold)
    return reached.ids[good[np.argsort(-rank[good], kind="stable")[:count]]]


def edges_between(graph: Graph, ids: Ints) -> tuple[Ints, Ints, Ints]:
    """All edges among these sorted nodes: positions of source and target in `ids`, and the relation.

    Rows are read whole; a row far longer than `ids` is searched for each of them instead.
    """
    first = graph.offsets[ids]
    degrees = graph.offsets[ids + 1] - first
    narrow = ids.astype(np.int32)  # the type of the targets, or searchsorted would copy them
    is_long = degrees > LONG_ROW * len(ids)
    owners, within = _ranges(np.where(is_long, 0, degrees))
    edges = first[owners] + within
    targets = graph.targets[edges]
    places = narrow.searchsorted(targets)
    places[places == len(ids)] = 0  # beyond the last: any place, it will not fit
    hits = np.flatnonzero(narrow[places] == targets)
    parts = [(owners[hits], places[hits], edges[hits])]
    if is_long.any():
        parts.append(_found_in_long_rows(graph, narrow, np.flatnonzero(is_long)))
    sources, target_places, numbers = (np.concatenate(column) for column in zip(*parts, strict=True))
    return sources, target_places, graph.relation_ids[numbers].astype(np.int64)


def _found_in_long_rows(graph: Graph, ids: NDArray[np.int32], owners: Ints) -> tuple[Ints, Ints, Ints]:
    """Positions of source and target in `ids`, and numbers of the edges, by binary search in each owner's row."""
    starts, ends = graph.offsets[ids[owners]], graph.offsets[ids[owners] + 1]
    searched = [
        start + graph.targets[start:end].searchsorted(ids)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    edges = np.concatenate(searched)
    rows = np.repeat(np.arange(len(owners)), len(ids))
    places = np.tile(np.arange(len(ids)), len(owners))
    found = []
    while len(edges):  # once more for every parallel relation
        inside = edges < ends[rows]
        inside[inside] = graph.targets[edges[inside]] == ids[places[inside]]
        edges, rows, places = edges[inside], rows[inside], places[inside]
        found.append((owners[rows], places, edges))
        edges = edges + 1
    sources, target_places, numbers = (np.concatenate(column) for column in zip(*found, strict=True))
    return sources, target_places, numbers


def _ranges(lengths: Ints) -> tuple[Ints, Ints]:
    """For lengths (2, 0, 3): owners (0, 0, 2, 2, 2) and places within them (0, 1, 0, 1, 2)."""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    return owners, np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _group_starts(ordered: Ints) -> Ints:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
