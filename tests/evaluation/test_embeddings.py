"""EA and EG, and the vectors of entities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation import slow
from tests.evaluation.invented import NUM_ENTITIES, as_sets, entity_sets, vectors
from vrbot.evaluation.embeddings import (
    average_similarity,
    embedding_scores,
    entity_vectors,
    greedy_similarity,
    wanted_words,
)
from vrbot.evaluation.vectors import WordVectors

Row = tuple[float, float, float]
numbers = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])
tables = st.lists(st.tuples(numbers, numbers, numbers), min_size=NUM_ENTITIES, max_size=NUM_ENTITIES)
some_entities = entity_sets.filter(bool)

EXAMPLE = vectors([(1, 0), (0, 1), (1, 1)])


def known_words(*words: str) -> WordVectors:
    """Each word with a vector that has 1 at its own place."""
    return WordVectors({word: row for row, word in enumerate(words)}, np.eye(len(words), dtype=np.float32), "invented")


def test_both_similarities_of_the_documented_example_are_what_a_hand_computes() -> None:
    gold, predicted = frozenset({0}), frozenset({1, 2})
    assert average_similarity(EXAMPLE, predicted, gold) == pytest.approx(0.5 / math.hypot(0.5, 1))
    assert greedy_similarity(EXAMPLE, predicted, gold) == pytest.approx((math.sqrt(0.5) / 2 + math.sqrt(0.5)) / 2)


@given(tables, some_entities, some_entities)
def test_average_similarity_equals_its_definition(
    table: list[Row], predicted: frozenset[int], gold: frozenset[int]
) -> None:
    fast = average_similarity(vectors(table), predicted, gold)
    assert fast == pytest.approx(slow.average_similarity(table, predicted, gold), abs=1e-9)


@given(tables, some_entities, some_entities)
def test_greedy_similarity_equals_its_definition(
    table: list[Row], predicted: frozenset[int], gold: frozenset[int]
) -> None:
    fast = greedy_similarity(vectors(table), predicted, gold)
    assert fast == pytest.approx(slow.greedy_similarity(table, predicted, gold), abs=1e-9)


@given(tables, some_entities)
def test_equal_sets_are_fully_similar_whatever_their_vectors(table: list[Row], members: frozenset[int]) -> None:
    scores = embedding_scores(as_sets([(members, members)]), vectors(table))
    assert scores.average.value == scores.greedy.value == pytest.approx(100)


def test_an_entity_without_a_vector_resembles_no_other() -> None:
    unknown = vectors([(0, 0), (0, 1)])
    assert average_similarity(unknown, frozenset({0}), frozenset({1})) == 0.0
    assert greedy_similarity(unknown, frozenset({0}), frozenset({1})) == 0.0
    assert greedy_similarity(unknown, frozenset({0}), frozenset({0, 1})) == pytest.approx((1 + 0.5) / 2)


def test_a_reply_without_entities_counts_nothing_or_is_skipped_as_told() -> None:
    turns = as_sets([(frozenset({0}), frozenset({0})), (frozenset(), frozenset({1})), (frozenset({1}), frozenset())])
    assert embedding_scores(turns, EXAMPLE).average.value == pytest.approx(50)
    assert embedding_scores(turns, EXAMPLE, "skip").greedy.value == pytest.approx(100)
    assert embedding_scores(turns[1:], EXAMPLE, "skip").average.value is None
    assert embedding_scores(turns[2:], EXAMPLE).average.value is None


def test_a_name_takes_its_own_vector_first_then_words_inside_it_then_characters() -> None:
    words = known_words("慢性胃炎", "慢性", "咽炎", "炎", "咳")
    found = entity_vectors(["慢性胃炎", "慢性咽炎", "炎咳", "骨折"], words)
    assert found.origins == ("word", "pieces", "characters", "unknown")
    np.testing.assert_allclose(found.matrix[0], [1, 0, 0, 0, 0])
    np.testing.assert_allclose(found.matrix[1], [0, 0.5, 0.5, 0, 0])
    np.testing.assert_allclose(found.matrix[2], [0, 0, 0, 0.5, 0.5])
    np.testing.assert_allclose(found.matrix[3], 0)
    assert found.num_by_origin == {"word": 1, "pieces": 1, "characters": 1, "unknown": 1}


def test_the_longest_word_inside_a_name_is_taken_first() -> None:
    found = entity_vectors(["急性上呼吸道感染"], known_words("上呼吸", "上呼吸道", "感染"))
    np.testing.assert_allclose(found.matrix[0], [0, 0.5, 0.5])


def test_a_latin_word_is_known_whole_or_not_at_all() -> None:
    words = known_words("pain", "he", "c", "ct", "检查")
    found = entity_vectors(["chest pain", "the", "CT检查"], words)
    np.testing.assert_allclose(found.matrix[0], [1, 0, 0, 0, 0])
    assert found.origins == ("pieces", "unknown", "pieces")
    np.testing.assert_allclose(found.matrix[2], [0, 0, 0, 0.5, 0.5])


@given(st.lists(st.sampled_from(["慢性胃炎", "CT检查", "chest pain", "B超"]), unique=True))
def test_vectors_of_names_are_the_same_when_only_wanted_words_are_there(names: list[str]) -> None:
    every = ["慢性", "胃炎", "胃", "检查", "ct", "chest", "感冒", "超", "pain"]
    wanted = wanted_words(names)
    few = WordVectors({word: row for row, word in enumerate(every) if word in wanted}, np.eye(9, dtype=np.float32), "")
    whole, part = entity_vectors(names, known_words(*every)), entity_vectors(names, few)
    np.testing.assert_array_equal(whole.matrix, part.matrix)
    assert "感冒" not in wanted
