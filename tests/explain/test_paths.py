"""Laws of paths: they are walks of the graph, and a subgraph without edges is what retrieval cuts without them."""

from __future__ import annotations

import itertools
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent.conftest import MakeAgent
from tests.explain.conftest import CONVERSATION
from tests.explain.test_evidence import evidence_of
from tests.model.tiny import FORMS
from vrbot.explain.explainer import Explainer
from vrbot.explain.keywords import Reasoning
from vrbot.explain.paths import (
    attention_in,
    nodes_along,
    path_weights,
    paths_to,
    random_path,
    with_edges_only,
    without_edges,
)
from vrbot.explain.steering import Change, perceive
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.retrieval import Subgraph, retrieve_subgraph

NUM_NODES, RELATIONS = 7, ("a", "b")
node = st.integers(0, NUM_NODES - 1)
triples = st.lists(st.tuples(node, st.integers(0, 1), node).filter(lambda t: t[0] != t[2]), max_size=14, unique=True)
seeds = st.lists(node, min_size=1, max_size=3, unique=True)
hops = st.integers(1, 3)


def edges_in(subgraph: Subgraph) -> set[tuple[int, int, int]]:
    ends = subgraph.nodes[subgraph.sources], subgraph.relations, subgraph.nodes[subgraph.targets]
    return set(zip(*(part.tolist() for part in ends), strict=True))


@given(triples, seeds, hops)
def test_paths_are_all_simple_walks_from_a_seed_through_no_other(
    rows: list[tuple[int, int, int]], begin: list[int], furthest: int
) -> None:
    graph = Graph.from_triples(rows, NUM_NODES, RELATIONS)
    subgraph = retrieve_subgraph(graph, begin, furthest)
    oracle: Any = networkx.MultiDiGraph()
    oracle.add_nodes_from(range(NUM_NODES))
    oracle.add_edges_from((head, tail, relation) for head, relation, tail in rows)
    for goal in subgraph.nodes.tolist():
        expected = set()
        for seed in begin:
            if seed == goal:
                continue
            for walk in networkx.all_simple_edge_paths(oracle, seed, goal, cutoff=furthest):
                if not {tail for _, tail, _ in walk[:-1]} & set(begin):
                    expected.add(tuple(walk))
        found = [_walk(subgraph, path) for path in paths_to(subgraph, goal, furthest, len(RELATIONS))]
        assert len(found) == len(set(found))
        assert set(found) == expected


def _walk(subgraph: Subgraph, path: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    nodes = nodes_along(subgraph, path)
    return tuple((nodes[i], nodes[i + 1], int(subgraph.relations[edge])) for i, edge in enumerate(path))


@given(triples, seeds, hops, st.randoms(use_true_random=False))
def test_without_edges_is_what_retrieval_cuts_from_the_graph_without_them(
    rows: list[tuple[int, int, int]], begin: list[int], furthest: int, random: Any
) -> None:
    subgraph = retrieve_subgraph(Graph.from_triples(rows, NUM_NODES, RELATIONS), begin, furthest)
    walkable = np.flatnonzero(subgraph.relations < len(RELATIONS)).tolist()
    removed = [edge for edge in walkable if random.random() < 0.4]
    gone = {
        (int(subgraph.nodes[subgraph.sources[e]]), int(subgraph.relations[e]), int(subgraph.nodes[subgraph.targets[e]]))
        for e in removed
    }
    smaller = Graph.from_triples([row for row in rows if row not in gone], NUM_NODES, RELATIONS)
    expected = retrieve_subgraph(smaller, begin, furthest)
    found = without_edges(subgraph, removed, furthest, len(RELATIONS))
    assert dict(zip(found.nodes.tolist(), found.hops.tolist(), strict=True)) == dict(
        zip(expected.nodes.tolist(), expected.hops.tolist(), strict=True)
    )
    assert edges_in(found) == edges_in(expected)
    kept = [edge for edge in walkable if edge not in removed]
    assert edges_in(with_edges_only(subgraph, kept, furthest, len(RELATIONS))) == edges_in(expected)


def _reasoning(explainer: Explainer, change: Change) -> Reasoning:
    agent = explainer.agent
    perceived = perceive(explainer.model, agent.hear(CONVERSATION), change, agent.pretrained.corpus.inventory)
    found = Reasoning.of(explainer.model, perceived.perception, len(CONVERSATION) - 1)
    assert found is not None
    return found


def test_the_weight_of_a_path_is_the_attention_along_it_in_either_order_of_moving_and_staying(
    make_agent: MakeAgent,
) -> None:
    explainer = Explainer(make_agent())
    reasoning = _reasoning(explainer, Change(state=("咳嗽", "发烧")))
    graph = reasoning.subgraph
    assert graph is not None
    attention = attention_in(reasoning.encoder, graph)
    assert attention.shape == (2, graph.num_edges)
    into = np.stack([np.bincount(graph.targets, layer, graph.num_nodes) for layer in attention])
    lengths = set()
    for entity in graph.nodes.tolist():
        for path in reasoning.paths(entity):
            first, last = int(graph.sources[path[0]]), int(graph.targets[path[-1]])
            if len(path) == 1:
                stays = 1.0 - into
                expected = attention[0, path[0]] * stays[1, last] + stays[0, first] * attention[1, path[0]]
            else:
                expected = attention[0, path[0]] * attention[1, path[1]]
            lengths.add(len(path))
            assert path_weights(graph, attention, [path]) == [pytest.approx(float(expected), abs=1e-9)]
            other = random_path(graph, len(path), entity, 2, reasoning.num_relations, np.random.default_rng(0))
            assert other is not None
            assert len(other) == len(path)
            assert nodes_along(graph, other)[-1] != entity
    assert lengths == {1, 2}


@pytest.mark.parametrize("form", FORMS)
def test_shown_paths_lead_from_the_state_and_their_removal_lowers_the_keyword(form: str, make_agent: MakeAgent) -> None:
    shown = 0
    for seed, name in itertools.product((0, 1, 2), ("气管炎", "流感", "胸片", "退热贴")):
        explainer = Explainer(make_agent("vrbot", form, seed))
        inventory = explainer.agent.pretrained.corpus.inventory
        change = Change(state=("咳嗽", "发烧"), keywords=(name,))
        reasoning = _reasoning(explainer, change)
        (keyword,) = evidence_of(explainer.what_if(CONVERSATION, change)).keywords or ()
        assert keyword.num_paths == len(reasoning.paths(inventory.id_of(name) or 0)) > 0
        assert reasoning.subgraph is not None
        for path in keyword.paths:
            assert path.entities[0] in ("咳嗽", "发烧")
            assert path.entities[-1] == name
            assert 0.0 <= path.weight <= 1.0
            (edges,) = [
                edges
                for edges in reasoning.paths(inventory.id_of(name) or 0)
                if tuple(inventory.names[n] for n in nodes_along(reasoning.subgraph, edges)) == path.entities
            ]
            full, without = reasoning.probabilities([reasoning.subgraph, reasoning.without(edges)])[:, 0].tolist()
            assert full == pytest.approx(keyword.probability, abs=1e-6)
            assert full - without == pytest.approx(path.effect, abs=1e-6)
            assert without < full
            shown += 1
        assert [path.effect for path in keyword.paths] == sorted((p.effect for p in keyword.paths), reverse=True)
    assert shown
