"""The annotation page: proposals, corrections that outlive a reload, files, and no word of anybody that runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serving.fakes import ANN, BOB, EVE, DeskAtWork
from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import DataError
from vrbot.serving.annotation import LabelledTurn
from vrbot.serving.console.annotation_files import take_in, write_labels
from vrbot.serving.console.annotation_view import confirmed, is_done, next_open, shown, with_name, without_name
from vrbot.serving.problems import NotFoundError
from vrbot.serving.proposals import Proposal
from vrbot.serving.store import Store


@pytest.fixture
def work(tmp_path: Path) -> DeskAtWork:
    return DeskAtWork(Store.open(tmp_path / "desk.sqlite", create=True))


def turn_with(*, physician: str = "rest", **proposals: Proposal) -> LabelledTurn:
    return LabelledTurn("t", 1, "a cough", physician, {}, proposals)


def test_a_turn_shows_the_label_given_before_the_one_proposed(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    work.desk.annotation.propose(EVE, turn.id, "state", ["cough", "fever"], 0.4)
    (before,) = work.desk.annotation.labelled_turns(EVE, turn.consultation)
    assert (shown(before, "state").value, shown(before, "state").origin) == (["cough", "fever"], "proposed")
    work.desk.annotation.label(EVE, turn.id, "state", ["cough"])
    (after,) = work.desk.annotation.labelled_turns(EVE, turn.consultation)
    assert (shown(after, "state").value, shown(after, "state").origin) == (["cough"], "saved")


def test_confirming_stores_all_that_is_shown_and_waits_for_a_category() -> None:
    state, keywords = Proposal(["cough"], 0.5, "draft"), Proposal([], None, "draft")
    assert confirmed(turn_with(state=state, keywords=keywords)) is None
    category = Proposal("diagnosis", 0.5, "draft")
    everything = turn_with(state=state, keywords=keywords, category=category)
    assert confirmed(everything) == {"state": ["cough"], "category": "diagnosis", "keywords": []}
    assert confirmed(turn_with(physician="", state=state)) == {"state": ["cough"]}
    assert not is_done(everything)


def test_a_name_is_added_once_and_removed_from_what_is_shown() -> None:
    turn = turn_with(state=Proposal(["cough"], None, "draft"))
    assert with_name(turn, "state", " fever ") == ["cough", "fever"]
    assert with_name(turn, "state", "cough") == ["cough"]
    assert without_name(turn, "state", "cough") == []


def test_dialogues_the_model_is_least_sure_of_come_first_and_finished_ones_last(work: DeskAtWork) -> None:
    turns = [work.said(work.opened(), f"cough {number}") for number in range(3)]
    for turn, sure in zip(turns, (0.9, 0.2, 0.5), strict=True):
        work.desk.annotation.propose(EVE, turn.id, "state", ["cough"], sure)
    queue = work.desk.annotation.to_label(EVE)
    assert [each.confidence for each in queue] == [0.2, 0.5, 0.9]
    work.desk.annotation.label(EVE, turns[1].id, "state", ["cough"])
    queue = work.desk.annotation.to_label(EVE)
    assert [each.consultation.id for each in queue] == [turns[place].consultation for place in (2, 0, 1)]
    assert next_open(queue, queue[0].consultation.id) == turns[0].consultation
    assert work.desk.annotation.to_label(BOB) == []


def test_what_went_out_comes_in_again_as_labels_or_as_proposals(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "I am Ann Smith, I cough")
    work.sent(work.desk.drafting.write(ANN, turn.id, "Rest."))
    session = json.loads(write_labels(work.desk.annotation, EVE))
    assert session["turns"][0]["patient"] == "I am [name], I cough"
    session["turns"][0] |= {"state": ["cough"], "action": {"category": CATEGORIES[1], "keywords": []}}
    proposed_state = {"state": {"value": ["cough", "fever"], "confidence": 0.3, "entities": []}}
    session["annotation"] = {"split": "train", "model": "m", "copied": [], "proposals": [proposed_state]}
    content = json.dumps(session).encode()
    assert take_in(work.desk.annotation, EVE, "f", content, proposed=True).labels == 3
    (proposed,) = work.desk.annotation.labelled_turns(EVE, turn.consultation)
    assert (proposed.labels, proposed.proposals["state"].confidence) == ({}, 0.3)
    assert proposed.proposals["category"].value == CATEGORIES[1]
    assert take_in(work.desk.annotation, EVE, "f", content, proposed=False).sessions == 1
    assert is_done(work.desk.annotation.labelled_turns(EVE, turn.consultation)[0])
    assert take_in(work.desk.annotation, EVE, "f", content, proposed=False).labels == 1
    again = json.loads(write_labels(work.desk.annotation, EVE))
    assert again["turns"][0]["state"] == ["cough"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": "other"}, "id"),
        ({"turns": [{"patient": "another", "physician": "", "state": ["x"]}]}, "turns"),
        ({"annotation": {"proposals": [{"state": {"value": ["x"], "confidence": 2}}]}}, "annotation"),
        ({"annotation": {"proposals": []}}, "annotation"),
        ({"annotation": 5}, "annotation"),
    ],
)
def test_a_file_of_other_dialogues_or_texts_is_refused_whole(
    change: dict[str, object], field: str, work: DeskAtWork
) -> None:
    turn = work.said(work.opened(), "a cough")
    session = json.loads(write_labels(work.desk.annotation, EVE))
    session["turns"][0]["state"] = ["cough"]
    with pytest.raises(DataError, match=f"f:1: {field}"):
        take_in(work.desk.annotation, EVE, "f", json.dumps({**session, **change}).encode(), proposed=False)
    assert work.desk.annotation.labels_of(EVE, turn.id) == {}


def test_a_physician_sees_no_dialogue_of_another(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    with pytest.raises(NotFoundError):
        work.desk.annotation.labelled_turns(BOB, turn.consultation)
    with pytest.raises(NotFoundError):
        work.desk.annotation.propose(BOB, turn.id, "state", [])
