"""Laws of turning utterances into exchanges."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrbot.dialogue.import_report import Repair, Repairs
from vrbot.dialogue.merging import Speaker, Utterance, distinct, exchanges_of, speaker_named
from vrbot.dialogue.session import CATEGORIES, Action

entities = st.none() | st.lists(st.sampled_from("abcd"), max_size=3, unique=True).map(tuple)
utterances = st.builds(
    Utterance,
    st.sampled_from(Speaker),
    st.text("好 x\n", max_size=4),
    entities,
    st.none() | st.sampled_from(CATEGORIES),
)
dialogues = st.lists(utterances, max_size=8)


def patient(text: str, *names: str) -> Utterance:
    return Utterance(Speaker.PATIENT, text, names)


def physician(text: str, *names: str, category: str | None = None) -> Utterance:
    return Utterance(Speaker.PHYSICIAN, text, names, category)


@given(dialogues)
def test_all_words_are_kept_in_their_order(dialogue: list[Utterance]) -> None:
    exchanges = exchanges_of(dialogue, Repairs())
    said = " ".join(part.text for each in exchanges for part in (each.patient, each.physician))
    assert said.split() == " ".join(utterance.text for utterance in dialogue).split()


@given(dialogues)
def test_speakers_alternate_and_only_the_two_ends_may_be_silent(dialogue: list[Utterance]) -> None:
    exchanges = exchanges_of(dialogue, Repairs())
    line = [part for each in exchanges for part in (each.patient, each.physician)]
    assert [part.speaker for part in line] == [Speaker.PATIENT, Speaker.PHYSICIAN] * len(exchanges)
    assert all(part.text for part in line[1:-1])
    spoken = [utterance for utterance in dialogue if utterance.text.strip()]
    assert sum(bool(part.text) for part in line) == len(list(groupby(spoken, key=lambda each: each.speaker)))


@given(dialogues)
def test_every_utterance_is_accounted_for(dialogue: list[Utterance]) -> None:
    repairs = Repairs()
    exchanges = exchanges_of(dialogue, repairs)
    added = repairs[Repair.PHYSICIAN_FIRST] + repairs[Repair.NO_LAST_REPLY]
    removed = repairs[Repair.EMPTY_UTTERANCE] + repairs[Repair.MERGED_UTTERANCE]
    assert 2 * len(exchanges) == len(dialogue) + added - removed


@given(dialogues)
def test_merging_what_is_merged_changes_nothing(dialogue: list[Utterance]) -> None:
    once = exchanges_of(dialogue, Repairs())
    line = [part for each in once for part in (each.patient, each.physician) if part.text]
    repairs = Repairs()
    assert exchanges_of(line, repairs) == once
    assert not repairs.keys() - {Repair.PHYSICIAN_FIRST, Repair.NO_LAST_REPLY}


def test_merged_messages_are_joined_by_one_space_and_their_entities_by_first_mention() -> None:
    repairs = Repairs()
    (exchange,) = exchanges_of([patient(" I cough", "cough"), patient("badly ", "fever", "cough")], repairs)
    assert exchange.patient == patient("I cough badly", "cough", "fever")
    assert exchange.physician == Utterance(Speaker.PHYSICIAN, "")
    assert exchange.action is None
    assert repairs == {Repair.MERGED_UTTERANCE: 1, Repair.NO_LAST_REPLY: 1}


@pytest.mark.parametrize(
    ("categories", "merged", "conflicts"),
    [
        (["chitchat", "diagnosis"], "diagnosis", 1),
        (["ask_symptoms", "chitchat", "diagnosis"], "ask_symptoms", 1),
        (["chitchat", None, "chitchat"], "chitchat", 0),
        ([None, "diagnosis"], "diagnosis", 0),
        ([None, None], None, 0),
    ],
)
def test_a_greeting_does_not_make_a_question_chitchat(
    categories: list[str | None], merged: str | None, conflicts: int
) -> None:
    repairs = Repairs()
    parts = [physician(f"m{i}", category=category) for i, category in enumerate(categories)]
    (exchange,) = exchanges_of(parts, repairs)
    assert exchange.action == Action(merged, ())
    assert repairs[Repair.CONFLICTING_CATEGORIES] == conflicts


def test_labels_of_silence_and_half_labelled_merges_are_counted() -> None:
    repairs = Repairs()
    unlabelled = Utterance(Speaker.PHYSICIAN, "b")
    exchanges = exchanges_of([patient(" ", "fever"), physician("a", "cough"), unlabelled], repairs)
    assert exchanges[0].physician.entities == ("cough",)
    assert (
        repairs[Repair.LABELS_WITHOUT_TEXT] == repairs[Repair.PARTLY_LABELLED] == repairs[Repair.EMPTY_UTTERANCE] == 1
    )


def test_repeated_and_empty_names_are_left_out_and_counted() -> None:
    repairs = Repairs()
    assert distinct(["b", "", "a", "b"], repairs) == ("b", "a")
    assert repairs == {Repair.EMPTY_LABEL: 1, Repair.REPEATED_LABEL: 1}


def test_speakers_are_known_under_the_names_of_all_formats() -> None:
    assert {speaker_named(word) for word in ("patient", "Patients", "病人", "患者")} == {Speaker.PATIENT}
    assert {speaker_named(word) for word in ("doctor", "Doctor", "医生")} == {Speaker.PHYSICIAN}
    assert speaker_named("nurse") is None
