"""Precision, recall and F1 of entities, micro and macro."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from tests.evaluation import slow
from tests.evaluation.invented import NUM_ENTITIES, as_sets, set_pairs
from vrbot.evaluation.entities import macro_entity_scores, micro_entity_scores, most_frequent_entity

Pairs = list[tuple[frozenset[int], frozenset[int]]]

EXAMPLE: Pairs = [
    (frozenset({1, 2}), frozenset({1, 3})),
    (frozenset(), frozenset({1})),
    (frozenset({2}), frozenset()),
]


def test_micro_scores_of_the_documented_example_are_what_a_hand_computes() -> None:
    scores = micro_entity_scores(as_sets(EXAMPLE))  # 1 hit, 3 predicted, 3 gold
    values = (scores.precision.value, scores.recall.value, scores.f1.value)
    assert values == pytest.approx((100 / 3, 100 / 3, 100 / 3))


def test_macro_scores_of_the_documented_example_are_what_a_hand_computes() -> None:
    scores = macro_entity_scores(as_sets(EXAMPLE))  # entity 1: P 1, R 1/2, F1 2/3; entity 3: 0; entity 2 is never gold
    values = (scores.precision.value, scores.recall.value, scores.f1.value)
    assert values == pytest.approx((50, 25, 100 / 3))


@given(set_pairs)
def test_micro_f1_equals_counting_one_by_one(pairs: Pairs) -> None:
    assert micro_entity_scores(as_sets(pairs)).f1.value == pytest.approx(slow.micro_f1(pairs))


@given(set_pairs, st.integers(1, 4))
def test_macro_scores_equal_scoring_entity_by_entity(pairs: Pairs, minimum_gold_count: int) -> None:
    scores = macro_entity_scores(as_sets(pairs), minimum_gold_count)
    expected = slow.macro(pairs, minimum_gold_count)
    for score, value in zip((scores.precision, scores.recall, scores.f1), expected, strict=True):
        assert score.value == (None if value is None else pytest.approx(value))


@given(set_pairs)
def test_both_averages_equal_scikit_learn(pairs: Pairs) -> None:
    table = np.zeros((2, len(pairs), NUM_ENTITIES), dtype=int)
    for turn, sets in enumerate(pairs):
        for side, members in enumerate(sets):
            table[side, turn, sorted(members)] = 1
    predicted, gold = table
    in_gold = np.flatnonzero(gold.any(axis=0))
    if not len(in_gold):
        return
    library = precision_recall_fscore_support(gold, predicted, average="macro", labels=in_gold, zero_division=0.0)
    macro = macro_entity_scores(as_sets(pairs))
    assert [macro.precision.value, macro.recall.value, macro.f1.value] == pytest.approx([100 * x for x in library[:3]])
    library = precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0.0)
    micro = micro_entity_scores(as_sets(pairs))
    assert [micro.precision.value, micro.recall.value, micro.f1.value] == pytest.approx([100 * x for x in library[:3]])


def test_without_any_entity_on_either_side_the_scores_do_not_apply() -> None:
    nothing = as_sets([(frozenset(), frozenset())])
    assert micro_entity_scores(nothing).f1.value is None
    assert macro_entity_scores(nothing).f1.value is None
    assert micro_entity_scores([]).f1.value is None
    assert macro_entity_scores([]).f1.value is None


def test_predictions_without_any_gold_score_zero_when_pooled_and_nothing_when_averaged() -> None:
    wrong = as_sets([(frozenset({1}), frozenset())])
    assert micro_entity_scores(wrong).precision.value == micro_entity_scores(wrong).recall.value == 0.0
    assert macro_entity_scores(wrong).f1.value is None


def test_the_most_frequent_entity_is_counted_once_a_turn_and_ties_go_to_the_lowest_id() -> None:
    assert most_frequent_entity([(5, 5, 5), (2,), (2,)]) == 2
    assert most_frequent_entity([(7, 3), (3, 7)]) == 3
    assert most_frequent_entity([(), ()]) is None
    assert most_frequent_entity([]) is None
