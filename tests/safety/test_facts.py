"""What the patient's words tell of allergies, ages and medicines, and what an answer tells with its question."""

from __future__ import annotations

import pytest

from vrbot.safety.facts import extract_facts
from vrbot.safety.medication import check


def stopped_for(said: str, written: str) -> set[str]:
    return {one.kind for one in check(written, extract_facts(said)) if one.level == "stop"}


@pytest.mark.parametrize(
    "said",
    [
        "I have no allergies except penicillin.",
        "No known allergies apart from penicillin.",
        "No allergies, other than penicillin.",
        "I am not allergic to anything but penicillin.",
        "I have no food allergies and am allergic to penicillin.",
        "Allergies: penicillin",
        "Allergies: sulfa drugs, penicillin",
        "Penicillin gives me a rash",
        "I came out in hives after penicillin",
        "除青霉素外无药物过敏史",
        "除了青霉素没有其他药物过敏",
        "除了青霉素，没有其他药物过敏",
        "除了青霉素，对花粉也过敏",
        "没有食物过敏只对青霉素过敏",
        "过敏史：青霉素",
        "吃青霉素会起皮疹",
    ],
)
def test_an_allergy_is_read_however_it_is_worded_and_is_no_medicine_taken(said: str) -> None:
    assert "allergy" in stopped_for(said, "amoxicillin 阿莫西林")
    assert extract_facts(said).medicines == {}


@pytest.mark.parametrize(
    "said",
    [
        "I have no allergies.",
        "I am not allergic to penicillin.",
        "No penicillin allergy, but hay fever.",
        "Allergies: none. I took penicillin last week",
        "对青霉素不过敏",
        "没有青霉素过敏史",
        "除了花粉没有过敏，吃过青霉素",
        "青霉素皮试阴性",
        "Penicillin for my rash",
        "起皮疹吃了青霉素好了",
        "吃青霉素会休克吗",
    ],
)
def test_an_allergy_that_is_denied_or_another_thing_is_none(said: str) -> None:
    assert extract_facts(said).allergies == frozenset()


def test_who_has_no_allergies_may_still_take_a_medicine() -> None:
    assert set(extract_facts("I have no allergies and take warfarin").medicines) == {"warfarin"}
    assert set(extract_facts("I only take warfarin and have no allergies").medicines) == {"warfarin"}
    assert set(extract_facts("没有过敏史在吃华法林").medicines) == {"warfarin"}


@pytest.mark.parametrize(
    ("said", "age"),
    [
        ("I am 35 years old. My daughter is 3 years old and has a fever.", 3),
        ("I am 35 years old. My daughter is 3 years old. She has a fever.", 3),
        ("我今年30岁。宝宝2岁发烧", 2),
        ("我30岁，宝宝8个月，咳嗽", 8 / 12),
        ("My son is 9 years old and my daughter is 4 years old, both have a fever", 4),
        ("I am 35 years old and have a fever. My daughter is 3 years old.", 35),
        ("我30岁，发烧两天，家里宝宝2岁，很健康", 30),
        ("I am 40 years old and had asthma when I was 5 years old", 40),
        ("我40岁，5岁时得过哮喘", 40),
        ("I am 35 years old. My mother is 70 years old.", 35),
    ],
)
def test_the_age_is_that_of_the_child_who_is_ill(said: str, age: float) -> None:
    assert extract_facts(said).age_years == pytest.approx(age)


def test_a_child_in_an_early_piece_of_a_long_text_still_counts() -> None:
    assert extract_facts("宝宝2岁发烧。" + "今天天气很好。" * 500 + "我今年30岁").age_years == 2
