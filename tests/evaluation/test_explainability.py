"""MEP and MER."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.evaluation.invented import NUM_ENTITIES, example_turns, scored_turns
from vrbot.evaluation.explainability import explainability_scores, reached_entities
from vrbot.evaluation.turns import Evidence, Latents, ScoredTurn
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.retrieval import retrieve_subgraph

EXAMPLE = replace(
    example_turns()[0],
    reference_entities=frozenset({2, 4}),
    reply_entities=frozenset({2, 3}),
    prior=Latents(state=(1,), keywords=(1, 2, 3)),
    evidence=Evidence(context=frozenset({0, 1}), reached=frozenset({2, 5})),
)


def values(turns: list[ScoredTurn]) -> dict[str, float | None]:
    return {name: score.value for name, score in explainability_scores(turns, NUM_ENTITIES).items()}


def test_scores_of_the_documented_example_are_what_a_hand_computes() -> None:
    assert values([EXAMPLE]) == pytest.approx(
        {
            "mep": 100 * 2 / 3,  # 1 by state and context, 2 by a path, 3 by nothing
            "mer": 50,  # of 2 and 4 the span explains 2
            "explained_by_state": 100 / 3,
            "explained_by_context": 100 / 3,
            "explained_by_path": 100 / 3,
            "explained_reply": 50,
            "mep_by_chance": 100 * 4 / 6,
        }
    )


@given(scored_turns())
@settings(max_examples=40)
def test_scores_equal_going_through_keywords_one_by_one(turns: list[ScoredTurn]) -> None:
    precisions, recalls = [], []
    for turn in turns:
        if turn.evidence is None or turn.prior.keywords is None:
            continue
        explained = set()
        for keyword in set(turn.prior.keywords):
            in_state = turn.prior.state is not None and keyword in turn.prior.state
            if in_state or keyword in turn.evidence.context or keyword in turn.evidence.reached:
                explained.add(keyword)
        if turn.prior.keywords:
            precisions.append(len(explained) / len(set(turn.prior.keywords)))
        if turn.reference_entities:
            recalls.append(
                sum(entity in explained for entity in turn.reference_entities) / len(turn.reference_entities)
            )
    scores = values(turns)
    assert scores["mep"] == (pytest.approx(100 * sum(precisions) / len(precisions)) if precisions else None)
    assert scores["mer"] == (pytest.approx(100 * sum(recalls) / len(recalls)) if recalls else None)


def test_a_keyword_out_of_nowhere_explains_nothing_even_if_it_is_right() -> None:
    turn = replace(EXAMPLE, prior=Latents(state=(), keywords=(4,)))
    assert values([turn])["mep"] == values([turn])["mer"] == 0.0


def test_without_keywords_there_is_no_precision_and_no_recall_but_zero() -> None:
    turn = replace(EXAMPLE, prior=Latents(state=(1,), keywords=()))
    assert values([turn])["mep"] is None
    assert values([turn])["mer"] == 0.0


def test_a_model_without_keywords_or_evidence_has_no_score() -> None:
    assert set(values([replace(EXAMPLE, prior=Latents())]).values()) == {None}
    assert set(values([replace(EXAMPLE, evidence=None)]).values()) == {None}


def test_what_is_reached_lies_at_the_end_of_an_edge_and_is_no_seed() -> None:
    graph = Graph.from_triples([(0, 0, 1), (1, 0, 2), (2, 0, 3), (4, 0, 0)], 6, ("to",))
    assert reached_entities(retrieve_subgraph(graph, [0, 5], hops=2)) == {1, 2}
    assert reached_entities(retrieve_subgraph(graph, [5])) == frozenset()
