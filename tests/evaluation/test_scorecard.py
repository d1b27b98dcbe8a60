"""The scorecard as a whole."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from tests.evaluation.invented import NAMES, example_turns, scored_turns, spread_vectors
from vrbot.errors import ConfigError, UsageError
from vrbot.evaluation.entities import AUTHORS_MINIMUM_GOLD_COUNT
from vrbot.evaluation.meddg import meddg_scorecard
from vrbot.evaluation.scorecard import Options, Resources, measure, scorecard
from vrbot.evaluation.turns import ScoredTurn, check_same_turns, dialogue_numbers

CONTRACT = [
    *("num_turns", "bleu_2", "rouge_2", "distinct_1", "distinct_2", "macro_precision", "macro_recall", "macro_f1"),
    *("micro_precision", "micro_recall", "micro_f1", "embedding_average", "embedding_greedy"),
    *("state_f1", "action_f1", "category_accuracy", "turns_per_second"),
]
REPLY_METRICS = [*CONTRACT[1:3], *CONTRACT[5:13]]
RESOURCES = Resources(spread_vectors(), NAMES, seconds=2.0)


def perfect(turns: list[ScoredTurn]) -> list[ScoredTurn]:
    return [
        replace(
            turn,
            reply=turn.reference,
            reply_words=turn.reference_words,
            reply_entities=turn.reference_entities,
            prior=turn.gold,
            inference=turn.gold,
        )
        for turn in turns
    ]


def without_entities(turns: list[ScoredTurn]) -> list[ScoredTurn]:
    return [replace(turn, reference_entities=frozenset()) for turn in turns]


def test_the_keys_are_those_of_the_contract_in_its_order_and_then_more() -> None:
    keys = list(scorecard(example_turns()).as_dict())
    assert keys[: len(CONTRACT)] == CONTRACT
    assert {"perplexity", "state_new_f1", "category_macro_f1", "inference_state_f1", "mep", "mer"} <= set(keys)


def test_the_keys_do_not_depend_on_what_could_be_measured() -> None:
    bare, full = scorecard([]).as_dict(), scorecard(perfect(example_turns()), resources=RESOURCES).as_dict()
    assert list(bare) == list(full)


def test_the_perfect_system_scores_full_marks() -> None:
    card = scorecard(perfect(example_turns()), resources=RESOURCES).as_dict()
    assert {key: card[key] for key in REPLY_METRICS} == pytest.approx(dict.fromkeys(REPLY_METRICS, 100.0))
    for key in ("state_f1", "action_f1", "category_accuracy", "category_macro_f1", "inference_state_new_f1"):
        assert card[key] == 100.0
    assert card["turns_per_second"] == 2.0
    assert card["most_frequent_entity"] == "咳嗽"
    assert card["most_frequent_keyword"] == "咳嗽"


def test_the_empty_system_scores_zero_and_raises_nothing() -> None:
    card = scorecard(example_turns(), resources=RESOURCES).as_dict()
    assert {card[key] for key in [*REPLY_METRICS, "distinct_1", "distinct_2"]} == {0.0}
    assert card["state_f1"] is card["action_f1"] is card["category_accuracy"] is card["mep"] is None


def test_without_turns_nothing_applies() -> None:
    card = scorecard([], resources=RESOURCES).as_dict()
    assert card["num_turns"] == 0
    assert {card[key] for key in [*REPLY_METRICS, "distinct_1", "state_f1", "perplexity"]} == {None}


def test_chinese_and_latin_text_are_scored_alike() -> None:
    def translated(turns: list[ScoredTurn], words: dict[str, str]) -> list[ScoredTurn]:
        return [
            replace(
                turn,
                reply_words=tuple(words[word] for word in turn.reply_words),
                reference_words=tuple(words[word] for word in turn.reference_words),
            )
            for turn in turns
        ]

    chinese = perfect(example_turns())
    chinese[0] = replace(chinese[0], reply_words=("咳嗽", "了"))
    every = sorted({word for turn in chinese for word in turn.reference_words})
    latin = translated(chinese, {word: f"w{number}" for number, word in enumerate(every)})
    assert scorecard(chinese).as_dict() == scorecard(latin).as_dict()
    assert scorecard(chinese).rouge_2 == pytest.approx(75.0)


@given(scored_turns(min_size=0))
@settings(max_examples=40)
def test_any_turns_give_a_card_that_json_can_hold_with_percentages_in_range(turns: list[ScoredTurn]) -> None:
    card: dict[str, Any] = scorecard(turns, resources=RESOURCES).as_dict()
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    for key in CONTRACT[1:-1]:
        lowest = -100 if key.startswith("embedding") else 0
        assert card[key] is None or lowest <= card[key] <= 100 + 1e-9


@given(scored_turns())
@settings(max_examples=40)
def test_pooled_scores_are_the_scores_of_the_card(turns: list[ScoredTurn]) -> None:
    card = scorecard(turns, resources=RESOURCES).as_dict()
    for name, score in measure(turns, Options(), RESOURCES).items():
        assert score.value == pytest.approx(card[name], abs=1e-9), name


def test_stop_words_and_blanks_leave_both_texts_before_words_are_compared() -> None:
    turns = [replace(turn, reply_words=("的", *turn.reference_words, " ")) for turn in example_turns()]
    assert scorecard(turns).bleu_2 != pytest.approx(100)
    assert scorecard(turns, Options(stop_words=frozenset({"的"}))).bleu_2 == pytest.approx(100)
    few = [replace(turn, reply_words=turn.reference_words[1:]) for turn in example_turns()]
    first_words = frozenset(turn.reference_words[0] for turn in few)
    assert scorecard(few, Options(stop_words=first_words)).rouge_2 == pytest.approx(100)


def test_the_rule_of_the_authors_leaves_rare_entities_out_of_macro_scores() -> None:
    common = [
        replace(turn, reference_entities=frozenset({1}), reply_entities=frozenset({1})) for turn in example_turns()
    ]
    rare = replace(example_turns()[0], reference_entities=frozenset({2}))
    turns = [*common, *common, rare]
    assert scorecard(turns).macro_f1 == pytest.approx(50)
    assert scorecard(turns, Options(minimum_gold_count=AUTHORS_MINIMUM_GOLD_COUNT)).macro_f1 == pytest.approx(100)


def test_a_score_without_the_most_frequent_entity_is_as_if_it_did_not_exist() -> None:
    turns = [replace(turn, reply_entities=frozenset({0})) for turn in example_turns()]
    turns = [*turns, turns[0]]
    card = scorecard(turns, resources=RESOURCES)
    assert card.more["most_frequent_entity"] == NAMES[0]
    assert card.micro_f1 == pytest.approx(100 * 2 * 2 / (5 + 4))
    assert card.more["micro_f1_without_most_frequent"] == 0.0


def test_options_are_stated_in_the_card_and_checked() -> None:
    options = Options(frozenset({"的", "了"}), AUTHORS_MINIMUM_GOLD_COUNT, "skip", "zero")
    assert scorecard([], options).as_dict()["options"] == {
        "stop_words": 2,
        "minimum_gold_count": 6,
        "entityless_replies": "skip",
        "references_without_pairs": "zero",
    }
    assert "2 stop words" in options.stated()
    assert "at least 6" in options.stated()
    with pytest.raises(ConfigError, match="got 0"):
        Options(minimum_gold_count=0)
    with pytest.raises(ConfigError, match="'drop'"):
        Options(entityless_replies="drop")  # type: ignore[arg-type]


def test_the_protocols_share_no_key_but_the_number_of_turns() -> None:
    told = {"protocol", "options"}
    vrbot, meddg = scorecard([]).as_dict().keys() - told, meddg_scorecard([], {}).as_dict().keys() - told
    assert vrbot & meddg == {"num_turns"}


def test_systems_on_different_turns_cannot_be_compared() -> None:
    turns = example_turns()
    check_same_turns(turns, perfect(turns))
    with pytest.raises(UsageError, match="4 turns and the other 3"):
        check_same_turns(turns, turns[:3])
    with pytest.raises(UsageError, match="references differ"):
        check_same_turns(turns, [*turns[:3], replace(turns[3], reference="bye")])


def test_turns_of_one_dialogue_have_its_number() -> None:
    assert dialogue_numbers(example_turns()).tolist() == [0, 0, 1, 1]
    assert dialogue_numbers([]).tolist() == []


@given(scored_turns())
@settings(max_examples=40)
def test_sets_without_gold_entities_never_raise(turns: list[ScoredTurn]) -> None:
    card = scorecard(without_entities(turns), resources=RESOURCES)
    assert card.macro_f1 is None
    assert card.embedding_average is None
    assert card.more["most_frequent_entity"] is None
