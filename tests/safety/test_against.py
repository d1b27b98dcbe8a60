"""Which medicines a text advises against: those alone that the words against govern."""

from __future__ import annotations

import pytest

from vrbot.safety.medication import PatientFacts, check

ALLERGIC = PatientFacts(allergies=frozenset(("ibuprofen",)))


def is_checked(text: str) -> bool:
    return any(one.kind == "allergy" and one.ingredient == "ibuprofen" for one in check(text, ALLERGIC))


@pytest.mark.parametrize(
    "text",
    [
        "If the fever does not go down take ibuprofen 400 mg.",
        "Stop aspirin and take ibuprofen instead.",
        "Avoid aspirin and take ibuprofen.",
        "Take ibuprofen and you should not drink alcohol.",
        "Do not worry and take ibuprofen.",
        "Do not forget to take ibuprofen.",
        "Do not stop ibuprofen.",
        "Do not take ibuprofen on an empty stomach.",
        "Do not take more than three ibuprofen a day.",
        "Ibuprofen should not be taken more than three times a day.",
        "Why not take ibuprofen?",
        "不用担心可以吃布洛芬",
        "布洛芬每天不能超过三次",
        "布洛芬不要空腹吃",
        "停用阿司匹林改用布洛芬",
        "不能缓解可口服布洛芬",
        "不要空腹吃布洛芬",
        "不要停用布洛芬",
        "不得不用布洛芬",
        "不要吃布洛芬超过三天",
        "布洛芬不能吃太多",
        "慎用布洛芬",
        "别忘了吃布洛芬",
    ],
)
def test_words_against_something_else_leave_the_medicine_proposed(text: str) -> None:
    assert is_checked(text)


@pytest.mark.parametrize(
    "text",
    [
        "Do not take ibuprofen.",
        "You should not be given any ibuprofen.",
        "Avoid using ibuprofen in pregnancy.",
        "Please stop taking your ibuprofen.",
        "I would not recommend ibuprofen.",
        "Do not take aspirin or ibuprofen.",
        "Avoid aspirin and ibuprofen.",
        "Ibuprofen must not be used.",
        "Ibuprofen is contraindicated for you.",
        "Ibuprofen should be avoided.",
        "不要吃布洛芬",
        "不建议您再服用布洛芬",
        "避免使用布洛芬",
        "忌用布洛芬",
        "先停布洛芬",
        "停用阿司匹林和布洛芬",
        "布洛芬不能吃",
        "布洛芬要停用",
        "布洛芬不宜使用，可以多喝水",
    ],
)
def test_a_medicine_the_words_against_govern_is_not_proposed(text: str) -> None:
    assert not is_checked(text)
