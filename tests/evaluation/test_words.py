"""B@2, R@2, D@1 and D@2."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from tests.evaluation import slow
from tests.evaluation.invented import text_pairs
from vrbot.evaluation.diversity import distinct
from vrbot.evaluation.overlap import bleu_2, bleu_2_score, rouge_2_recalls, rouge_2_score

REPLIES = [("发烧", "几天", "了"), ("多", "喝水")]
REFERENCES = [("发烧", "几天", "了", "吗"), ("多", "喝", "水")]


def test_bleu_of_the_documented_example_is_what_a_hand_computes() -> None:
    by_hand = 100 * math.exp(1 - 7 / 5) * math.sqrt(4 / 5 * 2 / 3)
    assert bleu_2(REPLIES, REFERENCES) == pytest.approx(by_hand)
    assert by_hand == pytest.approx(48.95, abs=0.005)


def test_rouge_recall_of_the_documented_example_is_what_a_hand_computes() -> None:
    assert rouge_2_score(REPLIES, REFERENCES).value == pytest.approx(100 * (2 / 3 + 0 / 2) / 2)


def test_distinct_of_the_documented_example_is_what_a_hand_computes() -> None:
    replies = [("好", "好", "的"), ("好", "的")]
    assert distinct(replies, 1) == pytest.approx(100 * 2 / 5)
    assert distinct(replies, 2) == pytest.approx(100 * 2 / 3)


@given(text_pairs)
def test_bleu_equals_its_definition_on_any_texts(pairs: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
    replies, references = [reply for reply, _ in pairs], [reference for _, reference in pairs]
    assert bleu_2(replies, references) == pytest.approx(slow.bleu_2(replies, references), abs=1e-9)


@given(text_pairs)
def test_bleu_from_sums_over_turns_equals_the_library(pairs: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
    replies, references = [reply for reply, _ in pairs], [reference for _, reference in pairs]
    assert bleu_2_score(replies, references).value == pytest.approx(bleu_2(replies, references), abs=1e-9)


@given(text_pairs)
def test_rouge_equals_its_definition_on_any_texts(pairs: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
    replies, references = [reply for reply, _ in pairs], [reference for _, reference in pairs]
    assert rouge_2_score(replies, references).value == pytest.approx(slow.rouge_2(replies, references), abs=1e-9)


@given(text_pairs)
def test_distinct_equals_its_definition_on_any_texts(pairs: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
    replies = [reply for reply, _ in pairs]
    for size in (1, 2):
        seen: list[tuple[str, ...]] = []
        total = 0
        for reply in replies:
            for group in slow.ngrams(reply, size):
                total += 1
                if group not in seen:
                    seen.append(group)
        assert distinct(replies, size) == pytest.approx(100 * len(seen) / total if total else 0.0)


def test_chinese_words_count_in_rouge_as_much_as_latin_ones() -> None:
    chinese = rouge_2_recalls([("发烧", "几天", "了")], [("发烧", "几天", "吗")])
    assert chinese == rouge_2_recalls([("fever", "since", "when")], [("fever", "since", "today")]) == [0.5]


def test_a_word_with_a_blank_in_it_is_one_word() -> None:
    assert bleu_2([("chest pain", "?")], [("chest", "pain", "?")]) == 0.0
    assert rouge_2_recalls([("chest pain", "?")], [("chest pain", "?")]) == [1.0]


def test_a_reference_of_one_word_is_skipped_or_counts_nothing_as_told() -> None:
    replies, references = [("好",), ("多", "喝水")], [("好",), ("多", "喝水")]
    assert rouge_2_score(replies, references).value == 100.0
    assert rouge_2_score(replies, references, "zero").value == 50.0
    assert rouge_2_score(replies[:1], references[:1]).value is None


def test_a_pair_of_words_never_reaches_from_one_reply_into_the_next() -> None:
    assert distinct([("好",), ("的",)], 2) == 0.0


def test_no_turns_have_no_scores_and_empty_replies_score_nothing() -> None:
    assert bleu_2([], []) is None
    assert rouge_2_score([], []).value is None
    assert distinct([], 1) is None
    assert bleu_2([()], [("好",)]) == bleu_2([()], [()]) == distinct([()], 1) == 0.0
