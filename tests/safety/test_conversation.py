"""What a whole conversation tells of the patient."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vrbot.safety.conversation import facts_of
from vrbot.safety.facts import extract_facts

WORDS = [
    "青霉素",
    "ibuprofen ",
    "过敏",
    "allergies",
    "?",
    "？",
    "吗",
    "没有",
    "no ",
    "yes",
    "是的",
    "，",
    ". ",
    "不要吃",
    "3",
    "take ",
]
SAID = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(WORDS), max_size=8).map("".join))


@given(st.lists(st.tuples(SAID, SAID), max_size=4), SAID)
def test_no_conversation_makes_the_reading_fail(conversation: list[tuple[str, str]], draft: str) -> None:
    assert facts_of(conversation, draft) == facts_of(conversation, draft)


@given(st.lists(st.tuples(SAID, st.just("")), max_size=4))
def test_without_a_physicians_word_it_tells_what_the_patients_words_tell(conversation: list[tuple[str, str]]) -> None:
    assert facts_of(conversation) == extract_facts("\n".join(said for said, _ in conversation))


def test_what_was_advised_is_taken_until_it_is_stopped() -> None:
    advised = [("头痛", "可以吃布洛芬"), ("好", "")]
    assert set(facts_of(advised).medicines) == {"ibuprofen"}
    assert facts_of([*advised, ("还是疼", "停用布洛芬"), ("好", "")]).medicines == {}
    assert facts_of(advised, "停用布洛芬，改用对乙酰氨基酚").medicines == {}


def test_what_the_patient_takes_is_not_ended_by_a_draft() -> None:
    assert set(facts_of([("I take warfarin", "")], "Stop warfarin and take ibuprofen.").medicines) == {"warfarin"}
