"""What a model proposes is kept apart from what people say."""

from __future__ import annotations

import pytest

from tests.serving.fakes import ANN, EVE, RAY, DeskAtWork
from vrbot.serving.audit import verify
from vrbot.serving.problems import InvalidInputError, RefusedError
from vrbot.serving.proposals import behind_draft


def test_a_proposal_is_no_label_and_is_not_exported(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    work.desk.annotation.propose(EVE, turn.id, "state", ["cough"], 0.5)
    assert work.desk.annotation.labels_of(EVE, turn.id) == {}
    assert [each.state for session in work.desk.annotation.export(RAY) for each in session.turns] == [None]
    work.desk.annotation.label(ANN, turn.id, "state", [])
    work.desk.annotation.propose(EVE, turn.id, "state", ["fever"], 0.6)
    (found,) = work.desk.annotation.labelled_turns(EVE, turn.consultation)
    assert (found.labels["state"].value, found.proposals["state"].value) == ([], ["fever"])
    assert [each.state for session in work.desk.annotation.export(RAY) for each in session.turns] == [()]
    assert verify(work.store).good


def test_a_label_that_goes_out_says_whose_it_is_and_what_the_labeller_had_proposed(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    work.sent(work.desk.drafting.write(ANN, turn.id, "Rest."))
    annotation = work.desk.annotation
    annotation.propose(EVE, turn.id, "state", ["fever"], 0.5, "model-1")
    annotation.label(EVE, turn.id, "state", ["cough"])
    annotation.label(ANN, turn.id, "category", "chitchat")
    (session,) = annotation.export(RAY)
    former = {"value": ["fever"], "confidence": 0.5, "model": "model-1"}
    assert session.extra["provenance"] == [
        {
            "state": {"by": "human", "annotator": "eve", "proposed": former},
            "category": {"by": "human", "annotator": "ann"},
        }
    ]
    assert session.turns[0].state == ("cough",)


def test_proposing_the_same_twice_stores_it_once(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    work.desk.annotation.propose(EVE, turn.id, "category", "diagnosis", 0.5)
    head = work.store.head()
    work.desk.annotation.propose(EVE, turn.id, "category", "diagnosis", 0.5)
    assert work.store.head() == head


def test_a_confidence_beyond_one_and_a_role_that_may_not_label_are_refused(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        work.desk.annotation.propose(EVE, turn.id, "state", [], 1.5)
    with pytest.raises(RefusedError):
        work.desk.annotation.propose(RAY, turn.id, "state", [])


def test_the_draft_speaks_where_no_auto_labeller_has(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    work.drafted(turn)
    (found,) = work.desk.annotation.labelled_turns(EVE, turn.consultation)
    assert {kind: each.value for kind, each in found.proposals.items()} == {"category": "ask_symptoms", "keywords": []}
    work.desk.annotation.propose(EVE, turn.id, "category", "chitchat")
    (found,) = work.desk.annotation.labelled_turns(EVE, turn.consultation)
    assert found.proposals["category"].source == "auto-labeller"


def test_a_reply_of_odd_shape_proposes_what_can_be_read_of_it() -> None:
    reply = {
        "state": [{"name": "cough"}, {"name": ""}, 5],
        "category": "guess",
        "keywords": [{"name": "flu", "probability": 0.25}, {"name": "cold", "probability": 0.75}],
    }
    found = behind_draft(reply)
    assert {kind: (each.value, each.confidence) for kind, each in found.items()} == {
        "state": (["cough"], None),
        "keywords": (["flu", "cold"], 0.5),
    }
    assert behind_draft({"state": "cough", "keywords": None, "category": []}) == {}


def test_a_consultation_is_done_when_every_turn_is_and_of_unanswered_ones_the_state(work: DeskAtWork) -> None:
    consultation = work.opened()
    answered, unanswered = work.said(consultation, "a cough"), work.said(consultation, "hello?")
    work.said(consultation, "")
    work.sent(work.desk.drafting.write(ANN, answered.id, "Rest."))
    (before,) = work.desk.annotation.to_label(ANN)
    assert (before.num_turns, before.wanted, before.given) == (2, 4, 0)
    for turn, kind, value in (
        (answered, "state", ["cough"]),
        (answered, "category", "chitchat"),
        (answered, "keywords", []),
        (unanswered, "state", []),
    ):
        work.desk.annotation.label(ANN, turn.id, kind, value)
    (after,) = work.desk.annotation.to_label(ANN)
    assert (after.wanted, after.given) == (4, 4)
