"""Paths from the entities of the state to a keyword, how much the graph encoder used each, and subgraphs without them.

A path follows edges of the subgraph that the model saw, from a seed to the keyword, through no other seed; the links
among seeds are no edges of the graph and belong to no path. Edges are numbered as in the subgraph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrbot.knowledge.retrieval import Subgraph
from vrbot.model.subgraphs import SubgraphEncoder

Edges = tuple[int, ...]
Weights = NDArray[np.float64]


def paths_to(subgraph: Subgraph, entity: int, hops: int, num_relations: int) -> list[Edges]:
    """All paths of at most `hops` edges to an entity, each as its edges in order; `num_relations` are the graph's."""
    found = np.flatnonzero(subgraph.nodes == entity)
    if not len(found):
        return []
    incoming = _incoming(subgraph, num_relations)
    paths: list[Edges] = []
    unfinished: list[tuple[Edges, tuple[int, ...]]] = [((), (int(found[0]),))]
    while unfinished:
        edges, nodes = unfinished.pop()
        for edge in incoming[nodes[0]]:
            source = int(subgraph.sources[edge])
            if source in nodes:
                continue
            longer = (edge, *edges)
            if subgraph.hops[source] == 0:
                paths.append(longer)
            elif len(longer) < hops:
                unfinished.append((longer, (source, *nodes)))
    return sorted(paths, key=lambda path: (len(path), path))


def _incoming(subgraph: Subgraph, num_relations: int) -> defaultdict[int, list[int]]:
    """The edges into each node, links among seeds left out."""
    incoming: defaultdict[int, list[int]] = defaultdict(list)
    for edge in np.flatnonzero(subgraph.relations < num_relations).tolist():
        incoming[int(subgraph.targets[edge])].append(edge)
    return incoming


def nodes_along(subgraph: Subgraph, path: Edges) -> list[int]:
    """The entities on a path, its beginning first."""
    local = [int(subgraph.sources[path[0]]), *(int(subgraph.targets[edge]) for edge in path)]
    return [int(subgraph.nodes[node]) for node in local]


@torch.no_grad()
def attention_in(encoder: SubgraphEncoder, subgraph: Subgraph) -> Weights:
    """How much each edge counts at its target in each layer [layers, edges]."""

    def tensor(values: NDArray[np.signedinteger]) -> Tensor:
        return torch.from_numpy(values.astype(np.int64))

    features = encoder.entity_vectors(tensor(subgraph.nodes)) + encoder.distance_vectors(tensor(subgraph.hops))
    ends = (tensor(subgraph.sources), tensor(subgraph.targets), tensor(subgraph.relations))
    layers = encoder.encoder.encode(features, *ends).attention
    weights: Weights = torch.stack([layer[:, 0] for layer in layers]).double().numpy()
    return weights


def path_weights(subgraph: Subgraph, attention: Weights, paths: Sequence[Edges]) -> list[float]:
    """For each path the share of its last node's vector that came along it, by attention [layers, edges].

    In every layer a vector stays at its node (what attention its edges leave) or moves on along the next edge.
    """
    into = [np.bincount(subgraph.targets, weights=layer, minlength=subgraph.num_nodes) for layer in attention]
    stays = [np.clip(1.0 - total, 0.0, 1.0).tolist() for total in into]  # sums of float32 can be a little above 1
    moves = attention.tolist()
    weights = []
    for path in paths:
        nodes = [int(subgraph.sources[path[0]]), *(int(subgraph.targets[edge]) for edge in path)]
        along = [1.0] + [0.0] * len(path)
        for stay, move in zip(stays, moves, strict=True):
            came = [0.0, *(share * move[edge] for share, edge in zip(along, path, strict=False))]
            along = [share * stay[node] + more for share, node, more in zip(along, nodes, came, strict=True)]
        weights.append(along[-1])
    return weights


def without_edges(subgraph: Subgraph, removed: Collection[int], hops: int, num_relations: int) -> Subgraph:
    """The subgraph as it would be if these edges had not been there: what no walk reaches any more is gone.

    Hops are counted anew; as in retrieval an edge needs one end that is less than `hops` steps away.
    """
    kept = np.ones(subgraph.num_edges, dtype=bool)
    kept[list(removed)] = False
    return _reached(subgraph, kept, hops, num_relations)


def with_edges_only(subgraph: Subgraph, edges: Collection[int], hops: int, num_relations: int) -> Subgraph:
    """The seeds with their links, and of all else only what these edges reach."""
    kept = subgraph.relations >= num_relations
    kept[list(edges)] = True
    return _reached(subgraph, kept, hops, num_relations)


def _reached(subgraph: Subgraph, kept: NDArray[np.bool_], hops: int, num_relations: int) -> Subgraph:
    walkable = np.flatnonzero(kept & (subgraph.relations < num_relations))
    sources, targets = subgraph.sources[walkable], subgraph.targets[walkable]
    distance = np.where(subgraph.hops == 0, 0, hops + 1).astype(np.int64)
    for hop in range(1, hops + 1):
        distance[targets[(distance[sources] == hop - 1) & (distance[targets] > hop)]] = hop
    order = np.argsort(distance, kind="stable")
    order = order[distance[order] <= hops]
    local = np.full(subgraph.num_nodes, -1)
    local[order] = np.arange(len(order))
    ends = np.minimum(distance[subgraph.sources], distance[subgraph.targets])
    there = (local[subgraph.sources] >= 0) & (local[subgraph.targets] >= 0)
    edges = np.flatnonzero(kept & there & (ends < max(hops, 1)))
    return Subgraph(
        subgraph.nodes[order],
        distance[order].astype(np.int8),
        local[subgraph.sources[edges]].astype(np.int32),
        local[subgraph.targets[edges]].astype(np.int32),
        subgraph.relations[edges],
    )


def random_path(
    subgraph: Subgraph, length: int, elsewhere: int, hops: int, num_relations: int, random: np.random.Generator
) -> Edges | None:
    """Some path of exactly this many edges to another entity than `elsewhere`; None where there is none."""
    for entity in random.permutation(subgraph.nodes[subgraph.hops > 0]).tolist():
        paths = [path for path in paths_to(subgraph, entity, hops, num_relations) if len(path) == length]
        if entity != elsewhere and paths:
            return paths[int(random.integers(len(paths)))]
    return None
