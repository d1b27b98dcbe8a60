"""The paper's qsub: the local graph G^local_n around the entities of a patient's state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vrbot.knowledge.graph import Graph
from vrbot.knowledge.reach import NO_PARENT, Ints, Reached, best_nodes, edges_between, reach

FURTHEST_HOP = 15
"""Further is the whole graph."""


@dataclass(frozen=True)
class Subgraph:
    """Nodes are entity ids, the seeds first in the given order, then by hop and id; edges use local positions.

    nodes int32 [n], hops int8 [n]; sources, targets, relations int32 [e]. Links between seeds carry the relation
    id one past the graph's last.
    """

    nodes: NDArray[np.int32]
    hops: NDArray[np.int8]
    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    relations: NDArray[np.int32]

    @property
    def num_nodes(self) -> int:
        return len(self.nodes)

    @property
    def num_edges(self) -> int:
        return len(self.sources)


def retrieve_subgraph(graph: Graph, seeds: Sequence[int], hops: int = 2, limit: int | None = None) -> Subgraph:
    """All nodes a walk of at most `hops` edges from a seed can reach, and the edges such walks use.

    An edge belongs to the subgraph if both its ends do and at least one of them is less than `hops` steps away
    (so the return edge from a node on the rim is there too, but no edge along the rim). Seeds are linked to each
    other, both ways.

    With a `limit`, at most so many nodes stay (the seeds always do). Those that more seeds reach come first, then
    those that a walk at random from a seed visits more often (what only hubs lead to is visited seldom), and lower ids.
    A node stays only together with a walk to it. Work then depends on the limit, not on the graph: of very large
    neighbourhoods an evenly spaced, always equal part is read, so a hop may count a longer walk than there is.
    """
    unique = np.array(list(dict.fromkeys(seeds)), dtype=np.int64)
    _check(graph, unique, hops, limit)
    reached = reach(graph, unique, hops, limit)
    if limit is not None and len(reached.ids) > limit:
        reached = reached.only(_choose(reached, max(limit, len(unique))))
    return _assemble(graph, reached, unique, hops)


class SubgraphRetriever:
    """Retrieval with fixed settings that remembers the latest answers; training asks for the same seeds often."""

    def __init__(self, graph: Graph, hops: int = 2, limit: int | None = None, cache_size: int = 4096) -> None:
        self.graph, self.hops, self.limit = graph, hops, limit
        self._remembered = lru_cache(maxsize=cache_size)(self._retrieve)

    def retrieve(self, seeds: Sequence[int]) -> Subgraph:
        """The subgraph around these seeds; treat it as read-only, others share it."""
        return self._remembered(tuple(int(seed) for seed in seeds))

    def retrieve_many(self, queries: Iterable[Sequence[int]]) -> list[Subgraph]:
        """One subgraph for each query, in order."""
        return [self.retrieve(seeds) for seeds in queries]

    def _retrieve(self, seeds: tuple[int, ...]) -> Subgraph:
        return retrieve_subgraph(self.graph, seeds, self.hops, self.limit)


def _choose(reached: Reached, room: int) -> Ints:
    """The nodes that stay: in order of rank, each with the nodes on its walk, while there is room."""
    ranked = best_nodes(reached, 2 * room)
    parent_of = _parents_on_the_way(reached, ranked)
    kept = set(reached.ids[reached.hops == 0].tolist())
    for node in ranked.tolist():
        walk = []
        while node not in kept:
            walk.append(node)
            node = parent_of[node]
        if len(kept) + len(walk) <= room:
            kept.update(walk)
        if len(kept) >= room:
            break
    return np.sort(np.fromiter(kept, dtype=np.int64, count=len(kept)))


def _parents_on_the_way(reached: Reached, nodes: Ints) -> dict[int, int]:
    """The parent of each of these nodes, of each of their parents, and so on back to the seeds."""
    parent_of: dict[int, int] = {}
    while len(nodes):
        parents = reached.only(nodes).parents
        parent_of.update(zip(nodes.tolist(), parents.tolist(), strict=True))
        nodes = np.unique(parents[parents != NO_PARENT])
    return parent_of


def _assemble(graph: Graph, reached: Reached, seeds: Ints, hops: int) -> Subgraph:
    """The subgraph over the reached nodes, with local positions for ids."""
    others = reached.ids[np.argsort(reached.hops, kind="stable")][len(seeds) :]
    nodes = np.concatenate((seeds, others))
    local = np.argsort(nodes)  # local[i] is the place of the i-th lowest id
    sources, targets, relations = edges_between(graph, reached.ids)
    walkable = np.minimum(reached.hops[sources], reached.hops[targets]) < hops
    seed_sources, seed_targets = np.nonzero(~np.eye(len(seeds), dtype=bool))
    return Subgraph(
        nodes.astype(np.int32),
        np.sort(reached.hops).astype(np.int8),
        np.concatenate((local[sources[walkable]], seed_sources)).astype(np.int32),
        np.concatenate((local[targets[walkable]], seed_targets)).astype(np.int32),
        np.concatenate((relations[walkable], np.full(len(seed_sources), len(graph.relations)))).astype(np.int32),
    )


def _check(graph: Graph, seeds: Ints, hops: int, limit: int | None) -> None:
    if len(seeds) and (seeds.min() < 0 or seeds.max() >= graph.num_nodes):
        raise ValueError(f"seeds {seeds.tolist()} are not all in 0..{graph.num_nodes - 1}")
    if not 0 <= hops <= FURTHEST_HOP:
        raise ValueError(f"hops must be in 0..{FURTHEST_HOP}, got {hops}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1 or None, got {limit}")
