"""Laws of the order in which dialogues are labelled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.explain.active_learning import TurnFeatures, active_order, random_order, turn_features


def features(*sessions: list[set[int]]) -> TurnFeatures:
    """Sessions as lists of turns, a turn as its features."""
    turns = [turn for session in sessions for turn in session]
    width = 1 + max((max(turn, default=0) for turn in turns), default=0)
    table = np.array([[float(feature in turn) for feature in range(width)] for turn in turns])
    return TurnFeatures(sparse.csr_array(table), np.cumsum([0, *map(len, sessions)], dtype=np.int64))


def order(found: TurnFeatures, uncertainty: list[float] | None = None, labelled: tuple[int, ...] = ()) -> list[int]:
    count = len(found.session_offsets) - 1
    unsure = np.ones(found.in_turns.shape[0]) if uncertainty is None else np.array(uncertainty)
    return active_order(found, [f"d-{number}" for number in range(count)], unsure, labelled)


def test_what_the_model_is_unsure_of_comes_first() -> None:
    assert order(features([{0}], [{1}], [{2}]), [0.1, 5.0, 1.0]) == [1, 2, 0]


def test_what_was_not_seen_yet_comes_before_more_of_the_same() -> None:
    pool = features([{0}], [{0}], [{1}])
    unsure = [1.0, 1.0, 1.5]
    assert order(pool, unsure)[1] == 2  # of the two alike one is enough for a while
    assert order(pool, unsure, labelled=(0,))[0] == 2


def test_a_long_dialogue_has_no_advantage_by_its_length() -> None:
    pool = features([{0}, {0}, {0}, {0}], [{1}])
    assert order(pool, [1.0, 1.0, 1.0, 1.0, 2.0])[0] == 1


@given(st.integers(0, 50), st.integers(0, 4))
def test_every_waiting_dialogue_stands_in_the_order_once(seed: int, done: int) -> None:
    generator = np.random.default_rng(seed)
    pool = features(*[[set(generator.integers(0, 6, 2).tolist()) for _ in range(1 + n % 3)] for n in range(5)])
    labelled = tuple(range(done))
    found = order(pool, generator.random(pool.in_turns.shape[0]).tolist(), labelled)
    assert sorted(found) == [number for number in range(5) if number not in labelled]
    names = [f"d-{number}" for number in range(5)]
    assert sorted(random_order(names, labelled, seed=seed)) == sorted(found)
    assert random_order(names, labelled, seed=seed) == random_order(names, labelled, seed=seed)


def test_the_order_is_the_same_every_time_and_the_best_of_it_does_not_depend_on_how_many_are_asked_for(
    corpus: Corpus,
) -> None:
    split = corpus.split("train")
    found, unsure = turn_features(split), np.linspace(0.1, 2.0, split.num_turns)
    whole = active_order(found, split.session_ids, unsure)
    assert whole == active_order(turn_features(split), split.session_ids, unsure)
    assert whole[:2] == active_order(found, split.session_ids, unsure, count=2)
    assert len({tuple(random_order(split.session_ids, seed=seed)) for seed in range(8)}) > 1


def test_features_are_words_and_pairs_of_the_patient_that_stand_in_two_turns(corpus: Corpus) -> None:
    split = corpus.split("train")
    found = turn_features(split)
    counts = np.asarray(found.in_turns.sum(axis=0)).ravel()
    assert found.in_turns.shape[0] == split.num_turns
    assert set(counts[counts > 0].tolist()) <= set(range(2, split.num_turns + 1))
    assert found.in_sessions().sum() == found.in_turns.sum()


@pytest.mark.parametrize("unsure", [[1.0], [1.0, -1.0], [1.0, float("nan")]])
def test_uncertainties_that_are_none_are_refused(unsure: list[float]) -> None:
    with pytest.raises(UsageError):
        active_order(features([{0}], [{1}]), ["a", "b"], np.array(unsure))
