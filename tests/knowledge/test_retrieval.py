"""The local graph around the seeds, against networkx and against the laws of the cap."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vrbot.knowledge.graph import Graph
from vrbot.knowledge.reach import reach
from vrbot.knowledge.retrieval import Subgraph, SubgraphRetriever, retrieve_subgraph

RELATIONS = ("caused_by", "related_to", "to_treat")
SEED_LINK = len(RELATIONS)

Edge = tuple[int, int, int]
Query = tuple[Graph, list[Edge], list[int], int]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    num_nodes = draw(st.integers(1, 14))
    node = st.integers(0, num_nodes - 1)
    return num_nodes, draw(st.lists(st.tuples(node, st.integers(0, 2), node), max_size=40))


@st.composite
def queries(draw: st.DrawFn) -> Query:
    num_nodes, rows = draw(graphs())
    seeds = draw(st.lists(st.integers(0, num_nodes - 1), max_size=4))
    return Graph.from_triples(rows, num_nodes, RELATIONS), rows, seeds, draw(st.integers(0, 4))


def edges_of(subgraph: Subgraph) -> list[Edge]:
    sources, targets = subgraph.nodes[subgraph.sources], subgraph.nodes[subgraph.targets]
    return list(zip(sources.tolist(), subgraph.relations.tolist(), targets.tolist(), strict=True))


def distances_by_networkx(num_nodes: int, rows: list[Edge], seeds: list[int], hops: int) -> dict[int, int]:
    oracle = nx.MultiDiGraph()
    oracle.add_nodes_from(range(num_nodes))
    oracle.add_edges_from((head, tail) for head, _, tail in rows)
    return dict(nx.multi_source_dijkstra_path_length(oracle, set(seeds), cutoff=hops)) if seeds else {}


@settings(max_examples=300)
@given(queries())
def test_without_a_limit_retrieval_is_what_networkx_reaches(query: Query) -> None:
    graph, rows, seeds, hops = query
    distance = distances_by_networkx(graph.num_nodes, rows, seeds, hops)
    facts = {
        (head, relation, tail)
        for head, relation, tail in rows
        if head in distance and tail in distance and min(distance[head], distance[tail]) < hops
    }
    links = {(a, SEED_LINK, b) for a in seeds for b in seeds if a != b}
    subgraph = retrieve_subgraph(graph, seeds, hops)
    assert dict(zip(subgraph.nodes.tolist(), subgraph.hops.tolist(), strict=True)) == distance
    assert sorted(edges_of(subgraph)) == sorted(facts | links)


@given(queries())
def test_seeds_come_first_in_their_order_then_nodes_by_hop_and_id(
    query: Query,
) -> None:
    graph, _, seeds, hops = query
    subgraph = retrieve_subgraph(graph, seeds, hops)
    unique = list(dict.fromkeys(seeds))
    assert subgraph.nodes[: len(unique)].tolist() == unique
    rest = list(zip(subgraph.hops[len(unique) :].tolist(), subgraph.nodes[len(unique) :].tolist(), strict=True))
    assert rest == sorted(rest)
    assert all(hop > 0 for hop, _ in rest)


@settings(max_examples=300)
@given(queries(), st.integers(1, 8))
def test_a_limit_keeps_every_seed_and_a_part_of_the_whole(query: Query, limit: int) -> None:
    graph, _, seeds, hops = query
    whole, part = retrieve_subgraph(graph, seeds, hops), retrieve_subgraph(graph, seeds, hops, limit)
    assert set(seeds) <= set(part.nodes.tolist()) <= set(whole.nodes.tolist())
    assert set(edges_of(part)) <= set(edges_of(whole))
    assert part.num_nodes <= max(limit, len(set(seeds)))
    if limit >= whole.num_nodes:
        assert sorted(edges_of(part)) == sorted(edges_of(whole))


@given(queries(), st.integers(1, 8))
def test_every_node_that_stays_can_be_walked_to_inside_the_subgraph(query: Query, limit: int) -> None:
    graph, _, seeds, hops = query
    part = retrieve_subgraph(graph, seeds, hops, limit)
    inside = [edge for edge in edges_of(part) if edge[1] != SEED_LINK]
    assert set(distances_by_networkx(graph.num_nodes, inside, seeds, hops)) == set(part.nodes.tolist())


@given(queries(), st.integers(1, 8))
def test_the_same_question_always_gets_the_same_answer(query: Query, limit: int) -> None:
    graph, rows, seeds, hops = query
    again = Graph.from_triples(rows[::-1], graph.num_nodes, RELATIONS)
    first, second = retrieve_subgraph(graph, seeds, hops, limit), retrieve_subgraph(again, seeds, hops, limit)
    for name in ("nodes", "hops", "sources", "targets", "relations"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert getattr(first, name).dtype == (np.int8 if name == "hops" else np.int32)


def test_no_seeds_give_an_empty_subgraph() -> None:
    empty = retrieve_subgraph(Graph.from_triples([(0, 0, 1)], 2, RELATIONS), [], limit=3)
    assert (empty.num_nodes, empty.num_edges) == (0, 0)


@settings(max_examples=200)
@given(queries())
def test_visits_are_those_of_a_walk_at_random_from_any_of_the_seeds(query: Query) -> None:
    graph, _, seeds, hops = query
    unique = np.unique(np.array(seeds, dtype=np.int64))
    found = reach(graph, unique, hops, None)
    sources = np.repeat(np.arange(graph.num_nodes), np.diff(graph.offsets))
    going = np.zeros((graph.num_nodes, graph.num_nodes))
    np.add.at(going, (sources, graph.targets), 1.0)
    going /= np.maximum(going.sum(axis=1, keepdims=True), 1.0)
    here, visits = np.zeros(graph.num_nodes), np.zeros(graph.num_nodes)
    here[unique] = 1 / max(len(unique), 1)
    for _ in range(hops + 1):
        visits, here = visits + here, here @ going
    np.testing.assert_allclose(found.visits, visits[found.ids])
    assert set(np.flatnonzero(visits).tolist()) == set(found.ids.tolist())


def test_the_rank_is_seeds_then_visits_then_id() -> None:
    rows = [(0, 0, 2), (1, 0, 2)]  # both seeds reach node 2
    rows += [(0, 0, 3), (0, 1, 3)]  # two ways from 0
    rows += [(0, 0, 4), (0, 0, 5), (1, 0, 6), (5, 0, 8), (5, 0, 9)]  # 1 has fewer edges than 0, so 6 is visited more
    rows += [(6, 2, 7)]  # as often as 6, and needs room for 6 too
    graph = Graph.from_triples(rows, 10, RELATIONS)
    stay = [set(retrieve_subgraph(graph, [0, 1], 2, limit).nodes.tolist()) - {0, 1} for limit in range(2, 9)]
    assert stay == [set(), {2}, {2, 6}, {2, 6, 7}, {2, 3, 6, 7}, {2, 3, 4, 6, 7}, {2, 3, 4, 5, 6, 7}]


def test_what_one_finding_leads_to_is_not_crowded_out_by_hubs() -> None:
    """A symptom (0), its disease (1) with two other symptoms (2, 3), and a medicine (4) against many diseases."""
    rows = [(0, 0, 1), (1, 0, 0), (1, 0, 2), (1, 0, 3), (0, 1, 4), *((4, 2, other) for other in range(5, 60))]
    rows += [(other, 0, 60 + other) for other in range(5, 60)]
    part = retrieve_subgraph(Graph.from_triples(rows, 120, RELATIONS), [0], hops=2, limit=6)
    assert set(part.nodes.tolist()) >= {0, 1, 2, 3, 4}


def test_a_far_node_that_all_seeds_reach_brings_the_walk_to_it() -> None:
    rows = [(0, 0, 2), (1, 0, 3), (2, 0, 4), (3, 0, 4), (0, 0, 5), (1, 0, 6)]
    part = retrieve_subgraph(Graph.from_triples(rows, 7, RELATIONS), [0, 1], hops=2, limit=4)
    assert set(part.nodes.tolist()) == {0, 1, 4, 2}


def test_work_with_a_limit_does_not_grow_with_the_hub() -> None:
    num_nodes = 400_000
    spokes = np.arange(1, num_nodes)
    rows = np.stack([np.zeros_like(spokes), np.zeros_like(spokes), spokes], axis=1)
    back = rows[:, [2, 1, 0]]
    graph = Graph.from_triples(np.concatenate((rows, back)), num_nodes, ("related_to",))

    class Counting(np.ndarray):
        read = 0

        def __getitem__(self, key):
            result = super().__getitem__(key)
            if not isinstance(key, slice):
                Counting.read += np.size(result)
            return result

    graph.targets = graph.targets.view(Counting)
    part = retrieve_subgraph(graph, [0, 7], hops=2, limit=50)
    assert part.num_nodes == 50
    assert 0 < Counting.read < 40_000


def test_edges_of_a_long_row_are_found_by_search_with_parallel_relations() -> None:
    rows = [(0, 0, tail) for tail in range(1, 200)] + [(0, 2, 5), (5, 1, 0)]
    graph = Graph.from_triples(rows, 200, RELATIONS)
    part = retrieve_subgraph(graph, [0, 5], hops=1, limit=2)
    assert sorted(edges_of(part)) == sorted([(0, 0, 5), (0, 2, 5), (5, 1, 0), (0, SEED_LINK, 5), (5, SEED_LINK, 0)])


def test_more_seeds_than_bits_still_all_stay() -> None:
    rows = [(node, 0, (node * 7 + 1) % 150) for node in range(150)]
    seeds = list(range(0, 150, 2))
    part = retrieve_subgraph(Graph.from_triples(rows, 150, RELATIONS), seeds, limit=10)
    assert part.nodes.tolist() == seeds


@pytest.mark.parametrize(("seeds", "hops", "limit"), [([5], 2, None), ([-1], 2, None), ([0], -1, None), ([0], 2, 0)])
def test_a_question_that_makes_no_sense_is_refused(seeds: list[int], hops: int, limit: int | None) -> None:
    with pytest.raises(ValueError, match=r"seeds|hops|limit"):
        retrieve_subgraph(Graph.from_triples([(0, 0, 1)], 2, RELATIONS), seeds, hops, limit)


def test_a_retriever_answers_like_the_function_and_remembers() -> None:
    graph = Graph.from_triples([(0, 0, 1), (1, 1, 2)], 4, RELATIONS)
    retriever = SubgraphRetriever(graph, hops=1, cache_size=8)
    first, second, third = retriever.retrieve_many([[0], (0,), [1]])
    assert first is second
    np.testing.assert_array_equal(third.nodes, retrieve_subgraph(graph, [1], hops=1).nodes)
