"""States, actions, categories, perplexity."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.evaluation import slow
from tests.evaluation.invented import example_turns, scored_turns
from vrbot.evaluation.latents import Network, latent_scores, most_frequent_keyword
from vrbot.evaluation.likelihood import action_nats_score, perplexity_score
from vrbot.evaluation.turns import Latents, ScoredTurn

EXAMPLE = [
    replace(
        example_turns()[0],
        gold=Latents(state=(0, 1), category=0, keywords=(2, 3)),
        previous_gold_state=(0,),
        prior=Latents(state=(0, 2), category=0, keywords=(2,)),
    ),
    replace(
        example_turns()[1],
        gold=Latents(state=(0, 1, 2), category=1, keywords=(2,)),
        previous_gold_state=(0, 1),
        prior=Latents(state=(0, 1, 2), category=0, keywords=(1,)),
    ),
]


def test_scores_of_the_documented_example_are_what_a_hand_computes() -> None:
    scores = {name: score.value for name, score in latent_scores(EXAMPLE, "prior").items()}
    assert scores["state_f1"] == pytest.approx(100 * 2 * 4 / (5 + 5))
    assert scores["state_new_f1"] == pytest.approx(100 * 2 * 1 / (2 + 2))
    assert scores["action_f1"] == pytest.approx(100 * 2 * 1 / (2 + 3))
    assert scores["action_f1_without_most_frequent"] == 0.0  # without entity 2: predicted {} and {1}, gold {3} and {}
    assert scores["category_accuracy"] == pytest.approx(50)
    assert scores["category_macro_f1"] == pytest.approx(100 * (2 / 3 + 0) / 2)


@given(scored_turns())
@settings(max_examples=40)
@pytest.mark.parametrize("network", ["prior", "inference"])
def test_state_and_action_scores_equal_counting_one_by_one(network: Network, turns: list[ScoredTurn]) -> None:
    scores = latent_scores(turns, network)
    for kind in ("state", "keywords"):
        sets = []
        for turn in turns:
            predicted = getattr(turn.prior if network == "prior" else turn.inference, kind)
            gold = getattr(turn.gold, kind)
            if predicted is not None and gold is not None:
                sets.append((frozenset(predicted), frozenset(gold)))
        score = scores["state_f1" if kind == "state" else "action_f1"]
        assert score.value == pytest.approx(slow.micro_f1(sets))


@given(scored_turns())
@settings(max_examples=40)
def test_scores_of_new_entities_do_not_see_what_was_known_before(turns: list[ScoredTurn]) -> None:
    sets = [
        (frozenset(turn.prior.state) - known, frozenset(turn.gold.state) - known)
        for turn in turns
        if turn.prior.state is not None and turn.gold.state is not None and turn.previous_gold_state is not None
        for known in [frozenset(turn.previous_gold_state)]
    ]
    assert latent_scores(turns, "prior")["state_new_f1"].value == pytest.approx(slow.micro_f1(sets))


@given(scored_turns())
@settings(max_examples=40)
def test_category_scores_equal_counting_one_by_one(turns: list[ScoredTurn]) -> None:
    pairs = [
        (turn.prior.category, turn.gold.category)
        for turn in turns
        if turn.prior.category is not None and turn.gold.category is not None
    ]
    scores = latent_scores(turns, "prior")
    right = [predicted == gold for predicted, gold in pairs]
    assert scores["category_accuracy"].value == (pytest.approx(100 * sum(right) / len(right)) if right else None)
    macro = slow.macro([(frozenset({predicted}), frozenset({gold})) for predicted, gold in pairs], 1)[2]
    assert scores["category_macro_f1"].value == (None if macro is None else pytest.approx(macro))


@given(scored_turns())
@settings(max_examples=40)
def test_predicting_the_labels_scores_full_marks_and_nothing_less(turns: list[ScoredTurn]) -> None:
    told = [replace(turn, prior=turn.gold) for turn in turns]
    assert {score.value for score in latent_scores(told, "prior").values()} <= {None, 100.0}


def test_a_model_without_a_network_or_data_without_labels_has_no_score() -> None:
    turns = example_turns()
    assert {score.value for score in latent_scores(turns, "prior").values()} == {None}
    unlabelled = [replace(turn, gold=Latents(), prior=Latents((1,), 1, (1,))) for turn in turns]
    assert {score.value for score in latent_scores(unlabelled, "prior").values()} == {None}
    assert most_frequent_keyword(unlabelled) is None


def test_an_empty_span_is_a_prediction_and_counts() -> None:
    turns = [replace(turn, prior=Latents((), 0, ())) for turn in example_turns()]
    assert latent_scores(turns, "prior")["state_f1"].value == 0.0
    assert latent_scores(turns, "prior")["action_recall"].value == 0.0


def test_perplexity_pools_tokens_of_all_turns() -> None:
    turns = [
        replace(example_turns()[0], log_prob=-4.0, num_log_prob_tokens=2),
        replace(example_turns()[1], log_prob=-1.0, num_log_prob_tokens=3),
        replace(example_turns()[2], log_prob=None, num_log_prob_tokens=3),
        replace(example_turns()[3], log_prob=-1.0, num_log_prob_tokens=None),
    ]
    assert perplexity_score(turns).value == pytest.approx(math.exp(5 / 5))
    assert perplexity_score(turns[2:]).value is None


def test_the_nats_of_actions_are_a_mean_over_turns_that_have_one() -> None:
    turn = example_turns()[0]
    turns = [replace(turn, action_log_prob=value) for value in (-4.0, None, -1.0)]
    assert action_nats_score(turns).value == pytest.approx(2.5)
    assert action_nats_score(turns[1:2]).value is None
    assert not action_nats_score(turns).higher_is_better


@pytest.mark.parametrize("log_prob", [-math.inf, -1e6])
def test_a_reference_the_model_holds_impossible_has_no_finite_perplexity(log_prob: float) -> None:
    assert perplexity_score([replace(example_turns()[0], log_prob=log_prob)]).value is None
