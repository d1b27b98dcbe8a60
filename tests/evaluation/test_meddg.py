"""Protocol `meddg`."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation import slow
from tests.evaluation.invented import example_turns
from vrbot.errors import ConfigError
from vrbot.evaluation.meddg import (
    VARIANTS,
    MedDGOptions,
    SubstringEntities,
    characters,
    meddg_scorecard,
    sentence_bleus,
)
from vrbot.evaluation.turns import ScoredTurn

SURFACES = {"胃炎": (0,), "慢性胃炎": (1,), "咳": (2,), "咳嗽": (2, 3), "CT": (4,)}

sentences = st.text(alphabet="胃炎慢性咳嗽CT 。", max_size=12)


def turn(reply: str, reference: str) -> ScoredTurn:
    return replace(example_turns()[0], reply=reply, reference=reference)


def smoothed_precisions(reply: str, reference: str) -> list[float]:
    """Methods 4 and 5 of Chen and Cherry 2014 one after the other, as nltk has them, on four precisions."""
    precisions, halvings = [], 1
    for size in (1, 2, 3, 4):
        matched, total = slow.matches(list(reply), list(reference), size), max(1, len(reply) - size + 1)
        if matched == 0:
            precisions.append(math.log(len(reply)) / (5 * 2**halvings) / total)
            halvings += 1
        else:
            precisions.append(matched / total)
    fifth = slow.matches(list(reply), list(reference), 5) / max(1, len(reply) - 4)
    following = [*precisions[1:], fifth]
    smoothed, before = [], precisions[0] + 1
    for precision, after in zip(precisions, following, strict=True):
        before = (before + precision + after) / 3
        smoothed.append(before)
    return smoothed


def test_bleu_of_the_documented_example_is_what_a_hand_computes() -> None:
    text = list("胃痛几天了")
    assert sentence_bleus(text, text, VARIANTS["meddg"]) == pytest.approx({1: 4 / 3, 2: 10 / 9, 4: 82 / 81})
    cumulative = {1: 4 / 3, 2: (4 / 3 * 10 / 9) ** 0.5, 4: (4 / 3 * 10 / 9 * 28 / 27 * 82 / 81) ** 0.25}
    assert sentence_bleus(text, text, VARIANTS["dfmed"]) == pytest.approx(cumulative)


@given(sentences.map(characters), sentences.map(characters))
@pytest.mark.parametrize("name", ["meddg", "dfmed"])
def test_bleu_equals_its_definition(name: str, reply: list[str], reference: list[str]) -> None:
    variant = VARIANTS[name]
    if len(reply) <= {"meddg": 4, "dfmed": 1}[name] or not set(reply) & set(reference):
        expected = {1: 0.0, 2: 0.0, 4: 0.0}
    else:
        smoothed = smoothed_precisions("".join(reply), "".join(reference))
        penalty = math.exp(min(0.0, 1 - len(reference) / len(reply)))
        orders = {1: [0], 2: [0, 1], 4: [0, 1, 2, 3]} if name == "dfmed" else {1: [0], 2: [1], 4: [3]}
        expected = {
            size: penalty * math.prod(smoothed[order] for order in chosen) ** (1 / len(chosen))
            for size, chosen in orders.items()
        }
    assert sentence_bleus(reply, reference, variant) == pytest.approx(expected)


@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5))
def test_rouge_and_entities_equal_their_definitions(pairs: list[tuple[str, str]]) -> None:
    card = meddg_scorecard([turn(reply, reference) for reply, reference in pairs], SURFACES)
    for size, value in ((1, card.character_rouge_1), (2, card.character_rouge_2)):
        scores = [slow.rouge_f(characters(reply), characters(reference), size) for reply, reference in pairs]
        assert value == pytest.approx(100 * sum(scores) / len(scores))

    def entities(text: str) -> frozenset[int]:
        return frozenset(entity for surface, means in SURFACES.items() if surface in text for entity in means)

    sets = [(entities(reply), entities(reference)) for reply, reference in pairs]
    assert card.substring_entity_f1 == pytest.approx(slow.micro_f1(sets))


def test_substring_search_finds_names_inside_names_and_minds_case() -> None:
    assert SubstringEntities(SURFACES).find("慢性胃炎，咳嗽") == {0, 1, 2, 3}
    assert SubstringEntities(SURFACES).find("ct") == frozenset()
    assert SubstringEntities({"": (1,)}).find("胃炎") == SubstringEntities({}).find("胃炎") == frozenset()


def test_half_characters_in_broken_text_do_no_harm() -> None:
    assert SubstringEntities(SURFACES).find("\ud83d咳") == {2}


def test_a_perfect_reply_gets_all_of_rouge_and_entities() -> None:
    card = meddg_scorecard([turn("慢性胃炎要查CT吗", "慢性胃炎要查CT吗")], SURFACES)
    assert card.character_rouge_1 == card.character_rouge_2 == card.substring_entity_f1 == 100.0


def test_empty_replies_score_nothing_and_no_turns_have_no_scores() -> None:
    empty = meddg_scorecard([turn("", "慢性胃炎"), turn("", "")], SURFACES).as_dict()
    assert {value for key, value in empty.items() if key.startswith(("character", "substring"))} == {0.0}
    nothing = meddg_scorecard([], SURFACES).as_dict()
    assert {value for key, value in nothing.items() if key.startswith(("character", "substring"))} == {None}


def test_short_replies_are_worth_nothing_up_to_the_length_of_the_variant() -> None:
    four, two = list("慢性胃炎"), list("咳嗽")
    assert sentence_bleus(four, four, VARIANTS["meddg"])[1] == 0.0
    assert sentence_bleus(four, four, VARIANTS["dfmed"])[1] > 0.0
    assert sentence_bleus(two, two, VARIANTS["dfmed"])[1] > 0.0
    assert sentence_bleus(two[:1], two, VARIANTS["dfmed"])[1] == 0.0


def test_an_unknown_variant_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="medref"):
        MedDGOptions("medref")  # type: ignore[arg-type]
