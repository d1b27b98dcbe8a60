"""Spreading activation against a plain walk over the edges, and the laws that make it hold for unseen entities."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vrbot.knowledge.graph import Graph
from vrbot.knowledge.retrieval import Subgraph, SubgraphRetriever
from vrbot.model.detectors import BilinearNodeScore, Detection, GraphDetector, PolicyEvidence, TraitScore
from vrbot.model.joined_subgraphs import JoinedSubgraphs, join
from vrbot.model.spans import Written, span_of
from vrbot.model.spreading import SMALLEST, Focus, SpreadingActivation, num_traits
from vrbot.model.standing import NUM_STANDINGS, standings
from vrbot.model.subgraphs import SubgraphEncoder
from vrbot.nets.encoders import Encoded

NUM_ENTITIES, RELATIONS = 9, ("shows", "shown by", "cures")
CPU = torch.device("cpu")


def some_graph(seed: int, order: np.ndarray | None = None) -> Graph:
    """Random triples; with an `order` entity e is called order[e]."""
    random = np.random.default_rng(seed)
    names = np.arange(NUM_ENTITIES) if order is None else order
    triples = random.integers(0, (NUM_ENTITIES, len(RELATIONS), NUM_ENTITIES), (22, 3))
    triples = triples[triples[:, 0] != triples[:, 2]]
    triples[:, [0, 2]] = names[triples[:, [0, 2]]]
    return Graph.from_triples(triples, NUM_ENTITIES, RELATIONS)


def some_spreading(graph: Graph, seed: int = 0) -> SpreadingActivation:
    spreading, generator = SpreadingActivation(graph), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for number in spreading.parameters():
            number.copy_(torch.randn(number.shape, generator=generator))
    return spreading


def walked(spreading: SpreadingActivation, subgraph: Subgraph, lacking: set[int]) -> np.ndarray:
    """The traits by plain loops over edges; `lacking` are entities."""
    names = subgraph.nodes.tolist()
    state = {name for name, hops in zip(names, subgraph.hops.tolist(), strict=True) if hops == 0}
    parts = [
        walked_once(spreading, spreading.of_state, subgraph, state, lacking),
        walked_once(spreading, spreading.of_all, subgraph, state | lacking, set()),
    ]
    return np.concatenate(parts, axis=1)


def walked_once(
    spreading: SpreadingActivation, focus_of: Focus, subgraph: Subgraph, found: set[int], lacking: set[int]
) -> np.ndarray:
    worth, sharpness = focus_of.worth.exp().tolist(), focus_of.sharpness.exp().item()
    lost = [0.0] * len(worth) if focus_of.lacking is None else focus_of.lacking.tolist()
    edges = [
        edge
        for edge in zip(subgraph.sources.tolist(), subgraph.targets.tolist(), subgraph.relations.tolist(), strict=True)
        if edge[2] < spreading.num_relations
    ]
    met, missed = [0.0] * subgraph.num_nodes, [0.0] * subgraph.num_nodes
    linked = np.zeros((subgraph.num_nodes, spreading.num_relations))
    for source, target, relation in edges:
        name = int(subgraph.nodes[source])
        rare = float(spreading.rarity[name])
        if name in lacking:
            missed[target] += rare * worth[relation] * lost[relation]
        if name in found:
            met[target] += rare * worth[relation]
            linked[target, relation] += rare
    reached = [node for node, value in enumerate(met) if value > 0]
    best = max((met[node] - missed[node] for node in reached), default=0.0)
    powers = [math.exp(sharpness * (met[node] - missed[node] - best)) for node in reached]
    focus = [0.0] * subgraph.num_nodes
    for node, power in zip(reached, powers, strict=True):
        focus[node] = power / sum(powers)
    pointed = np.zeros_like(linked)
    for source, target, relation in edges:
        pointed[target, relation] += focus[source]
    first = np.sqrt(np.array(focus) + SMALLEST)[:, None]
    return np.concatenate((first, np.sqrt(pointed + SMALLEST), np.log1p(linked)), axis=1)


seeds_of_states = st.lists(st.integers(0, NUM_ENTITIES - 1), unique=True, max_size=4)
entities = st.sets(st.integers(0, NUM_ENTITIES - 1), max_size=4)
NOTHING = torch.zeros(NUM_ENTITIES, dtype=torch.bool)


def flags(names: set[int]) -> torch.Tensor:
    return NOTHING.index_fill(0, torch.tensor(sorted(names), dtype=torch.long), True)


def focus_of_state(spreading: SpreadingActivation, joined: JoinedSubgraphs, lacking: set[int]) -> torch.Tensor:
    missing = spreading.brought(joined, flags(lacking)[joined.entities])
    focus: torch.Tensor = spreading.of_state(joined, spreading.brought(joined, joined.hops == 0), missing)
    return focus


@given(st.integers(0, 50), st.lists(seeds_of_states, min_size=1, max_size=4), entities)
def test_traits_are_those_of_a_plain_walk_whoever_stands_beside(
    seed: int, states: list[list[int]], spoken_of: set[int]
) -> None:
    graph = some_graph(seed)
    spreading, retriever = some_spreading(graph, seed), SubgraphRetriever(graph, hops=2)
    subgraphs = retriever.retrieve_many(states)
    joined = join(subgraphs, CPU)
    lacking = flags(spoken_of)[joined.entities] & (joined.hops > 0)
    traits = joined.by_row(spreading(joined, lacking)).detach().numpy()
    assert traits.shape[-1] == num_traits(graph)
    for row, subgraph in enumerate(subgraphs):
        expected = walked(spreading, subgraph, spoken_of - {*states[row]})
        np.testing.assert_allclose(traits[row, : subgraph.num_nodes], expected, rtol=1e-4, atol=1e-5)
        assert not traits[row, subgraph.num_nodes :].any()


@given(st.integers(0, 50), seeds_of_states, entities)
def test_the_focus_is_a_distribution_over_what_the_state_points_to(
    seed: int, state: list[int], spoken_of: set[int]
) -> None:
    graph = some_graph(seed)
    subgraph = SubgraphRetriever(graph, hops=2).retrieve(state)
    joined = join([subgraph], CPU)
    focus = focus_of_state(some_spreading(graph, seed), joined, spoken_of).detach().numpy()
    known = (subgraph.hops[subgraph.sources] == 0) & (subgraph.relations < len(graph.relations))
    pointed_to = np.isin(np.arange(subgraph.num_nodes), subgraph.targets[known])
    assert (focus[~pointed_to] == 0).all()
    assert focus.sum() == pytest.approx(1.0 if pointed_to.any() else 0.0, abs=1e-5)


def test_what_was_looked_for_in_vain_moves_the_focus_elsewhere() -> None:
    triples = np.array([(0, 1, 4), (0, 1, 5), (4, 0, 2), (2, 1, 4), (5, 0, 3), (3, 1, 5)])  # 4 shows 0, 2; 5 shows 0, 3
    graph = Graph.from_triples(triples, NUM_ENTITIES, RELATIONS)
    joined = join([SubgraphRetriever(graph, hops=2).retrieve([0])], CPU)
    spreading = SpreadingActivation(graph)

    def focus_on(entity: int, lacking: set[int]) -> float:
        focus = focus_of_state(spreading, joined, lacking).tolist()
        return float(dict(zip(joined.entities.tolist(), focus, strict=True))[entity])

    assert focus_on(4, set()) == pytest.approx(0.5)
    assert focus_on(4, {2}) < 0.3
    assert focus_on(4, {2}) + focus_on(5, {2}) == pytest.approx(1.0)


@given(st.integers(0, 50), st.permutations(range(NUM_ENTITIES)), seeds_of_states)
def test_traits_do_not_know_who_an_entity_is(seed: int, order: list[int], state: list[int]) -> None:
    names = np.array(order)
    told = []
    for graph, seeds in ((some_graph(seed), state), (some_graph(seed, names), names[state].tolist())):
        subgraph = SubgraphRetriever(graph, hops=2).retrieve(seeds)
        joined = join([subgraph], CPU)
        traits = some_spreading(graph, seed)(joined, NOTHING[joined.entities]).detach().numpy()
        told.append({int(entity): row for entity, row in zip(subgraph.nodes, traits, strict=True)})
    assert {int(names[entity]) for entity in told[0]} == set(told[1])
    for entity, row in told[0].items():
        np.testing.assert_allclose(row, told[1][int(names[entity])], rtol=1e-4, atol=1e-5)


def asked(detector: GraphDetector, graphs: object) -> torch.Tensor:
    hidden = torch.randn(1, 4, generator=torch.Generator().manual_seed(1))
    evidence = PolicyEvidence(
        Encoded(hidden.unsqueeze(1), torch.ones(1, 1, dtype=torch.bool), hidden),
        Encoded(hidden.unsqueeze(1), torch.ones(1, 1, dtype=torch.bool), hidden),
        torch.zeros(NUM_ENTITIES + 1, 4),
        graphs,  # type: ignore[arg-type]
    )
    found: Detection = detector(hidden.unsqueeze(1), Written.nothing(1, NUM_ENTITIES + 1, CPU), evidence)
    assert found.copies is not None
    return found.copies.scores


def test_nothing_is_added_at_first_and_what_is_learnt_reaches_every_part() -> None:
    graph = some_graph(3)
    torch.manual_seed(0)
    encoder = SubgraphEncoder(SubgraphRetriever(graph, hops=2), NUM_ENTITIES, 6, 4, SpreadingActivation(graph))
    score = BilinearNodeScore(8, 4, 0.0)
    detector = GraphDetector(score, TraitScore(8, num_traits(graph), 0.0))
    state = span_of(torch.tensor([[0, 4]]), 3, NUM_ENTITIES)
    graphs = encoder(state, standings(torch.ones(1, NUM_ENTITIES, NUM_STANDINGS - 1), state))
    assert torch.equal(asked(detector, graphs), asked(GraphDetector(score), graphs))
    assert detector.trait_score is not None
    torch.nn.init.normal_(detector.trait_score.worth.weight)
    asked(detector, graphs)[..., -1].sum().backward()
    assert encoder.spreading is not None
    parts = [detector.trait_score.worth.weight, *encoder.spreading.parameters()]
    assert all(part.grad is not None and part.grad.abs().sum() > 0 for part in parts)
