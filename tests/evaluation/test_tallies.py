"""Tallies of dialogues stand for their turns in every test, before they are written and after."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from tests.evaluation.invented import NAMES, example_turns, scored_turns, spread_vectors
from vrbot.errors import UsageError
from vrbot.evaluation.scorecard import Options, Resources, measure
from vrbot.evaluation.significance import compare_systems
from vrbot.evaluation.tallies import check_same_tallied, read_tallies, stacked, tallies_of, write_tallies
from vrbot.evaluation.turns import ScoredTurn, dialogue_numbers

RESOURCES = Resources(spread_vectors(), NAMES)


def values_of(scores: object) -> dict[str, float | None]:
    assert isinstance(scores, dict)
    return {name: score.value for name, score in scores.items()}


@settings(max_examples=40)
@given(scored_turns())
def test_sums_of_dialogues_have_the_score_of_their_turns_and_keep_it_in_a_file(
    tmp_path_factory: pytest.TempPathFactory, turns: list[ScoredTurn]
) -> None:
    path = tmp_path_factory.mktemp("tallies") / "replies.tallies.npz"
    tallies, slow = tallies_of(turns, RESOURCES), values_of(measure(turns, Options(), RESOURCES))
    assert values_of(dict(tallies.scores)) == pytest.approx(slow)
    kept = sorted(slow)[::2]
    write_tallies(path, tallies, [*kept, "no such metric"])
    again = read_tallies(path, RESOURCES)
    assert sorted(again.scores) == kept
    for name, value in values_of(dict(again.scores)).items():
        assert value == (None if slow[name] is None else pytest.approx(slow[name], rel=1e-5, abs=1e-9)), name
    check_same_tallied(tallies, again)


def test_a_test_over_tallies_of_two_seeds_is_the_one_over_their_turns() -> None:
    turns = example_turns()
    worse = [replace(turn, reply_words=(), reply_entities=frozenset()) for turn in turns]
    mixed = [*turns[: len(turns) // 2], *worse[len(turns) // 2 :]]
    metrics = ["bleu_2", "micro_f1", "macro_f1", "embedding_average"]
    slow = compare_systems(
        measure([*worse, *mixed], Options(), RESOURCES),
        measure([*mixed, *turns], Options(), RESOURCES),
        dialogue_numbers([*turns, *turns]),
        np.random.default_rng(3),
        metrics,
        200,
        np.repeat([1, 2], len(turns)),
    )
    first, second = ([tallies_of(run, RESOURCES) for run in runs] for runs in ((worse, mixed), (mixed, turns)))
    num_dialogues = first[0].num_dialogues
    fast = compare_systems(
        stacked(first),
        stacked(second),
        np.tile(np.arange(num_dialogues), 2),
        np.random.default_rng(3),
        metrics,
        200,
        np.repeat([1, 2], num_dialogues),
    )
    assert fast == slow


def test_systems_that_answered_other_turns_are_not_set_side_by_side() -> None:
    turns = example_turns()
    other = [replace(turns[0], reference="another answer"), *turns[1:]]
    with pytest.raises(UsageError, match="evaluate both on one split"):
        check_same_tallied(tallies_of(turns, RESOURCES), tallies_of(other, RESOURCES))
