"""Drafts: stored before they are seen, made once, and failures are stored too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.serving.fakes import ANN, DeskAtWork, Parrot, PlainRules
from vrbot.serving.drafting import Question
from vrbot.serving.problems import InvalidInputError
from vrbot.serving.replay import replay
from vrbot.serving.safety_desk import Conversation
from vrbot.serving.service import Desk
from vrbot.serving.store import Store


class Saying(Parrot):
    """Says one thing, whatever it is."""

    def __init__(self, reply: Any) -> None:
        super().__init__()
        self.reply = reply

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        return self.reply  # type: ignore[no-any-return]


class Choir(Parrot):
    """Answers several at once, one after the other; those behind a crash are not answered."""

    def respond_many(self, conversations: Sequence[Conversation]) -> Iterator[Mapping[str, Any]]:
        return (self.respond(conversation) for conversation in conversations)


def _questions(work: DeskAtWork, texts: Sequence[str]) -> list[Question]:
    asked = [work.desk.drafting.prepare(ANN, work.said(work.opened(), text).id) for text in texts]
    return [question for question in asked if isinstance(question, Question)]


def test_who_stands_behind_a_crash_in_a_batch_is_answered_all_the_same(store: Store) -> None:
    work = DeskAtWork(store, parrot=Choir())
    proposals = list(work.desk.drafting.propose(_questions(work, ["a", "crash", "b", "crash", "c"])))
    assert [proposal.text for proposal in proposals] == ["You say: a", None, "You say: b", None, "You say: c"]
    assert work.parrot.calls == 1 + 1 + 4  # together up to the crash, then each alone


def test_a_switch_that_is_thrown_during_a_batch_gives_nobody_the_reply_of_another(store: Store) -> None:
    work = DeskAtWork(store, parrot=Choir())
    proposals = work.desk.drafting.propose(_questions(work, ["a", "b", "c"]))
    first = next(proposals)
    work.rules.stopped = "for now"
    second = next(proposals)
    work.rules.stopped = None
    third = next(proposals)
    assert (first.text, second.text, third.text) == ("You say: a", None, "You say: c")
    assert second.failure == "drafts are switched off: for now"


def test_what_if_among_others_is_asked_by_itself(store: Store) -> None:
    work = DeskAtWork(store, parrot=Choir())
    questions = _questions(work, ["a", "b", "c"])
    questions[1] = replace(questions[1], change={"state": []})
    assert [each.text for each in work.desk.drafting.propose(questions)] == [
        "You say: a",
        "Then: ['state']",
        "You say: c",
    ]


def test_a_failing_model_leaves_the_turn_and_a_draft_that_says_so(work: DeskAtWork) -> None:
    consultation = work.opened()
    turn = work.said(consultation, "crash please")
    draft = work.drafted(turn)
    assert (draft.text, draft.failure) == (None, "RuntimeError: cannot answer crash please")
    assert work.drafted(turn).version == 2
    assert work.desk.consultations.case(ANN, consultation.id).turns == (turn,)
    work.sent(work.desk.drafting.write(ANN, turn.id, "The physician answers."))
    assert work.seen_by_patient(consultation) == ["The physician answers."]


def test_the_desk_works_without_a_model(store: Store) -> None:
    desk = Desk(store, PlainRules())
    consultation = desk.consultations.open(ANN)
    turn = desk.consultations.receive(ANN, consultation.id, "1", "hello")
    assert desk.drafting.draft(ANN, turn.id).failure == "no model is loaded"


@pytest.mark.parametrize(
    "reply",
    [None, {}, {"text": 5}, {"text": "\ud800"}, {"text": "x", "weight": math.nan}, {"text": "x", 5: object()}, "text"],
    ids=["none", "empty", "number", "surrogate", "nan", "object", "string"],
)
def test_a_reply_that_is_none_is_a_failure(reply: Any, store: Store) -> None:
    work = DeskAtWork(store, parrot=Saying(reply))
    draft = work.drafted(work.said(work.opened(), "hello"))
    assert draft.text is None
    assert draft.failure is not None


def test_a_model_that_cannot_say_who_it_is_fails_its_draft(store: Store) -> None:
    work = DeskAtWork(store, parrot=Parrot("parrot"))
    work.parrot.fingerprint = "two words"
    assert "fingerprint" in str(work.drafted(work.said(work.opened(), "hello")).failure)


def test_asking_again_gives_the_same_draft_without_asking_the_model(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    first = work.drafted(turn)
    assert work.drafted(turn).to_json() == first.to_json()
    assert work.parrot.calls == 1


def test_another_model_makes_another_draft(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    first = work.drafted(turn)
    work.parrot.fingerprint = "parrot-2"
    assert work.drafted(turn).version == first.version + 1


def test_what_if_stands_beside_the_draft_and_says_what_was_changed(work: DeskAtWork) -> None:
    consultation = work.opened()
    turn = work.said(consultation, "a cough")
    draft = work.drafted(turn)
    other = work.desk.drafting.draft(ANN, turn.id, {"category": "diagnosis"})
    assert (other.origin, other.change, other.version) == ("what_if", {"category": "diagnosis"}, draft.version + 1)
    assert work.desk.drafting.draft(ANN, turn.id, {"category": "diagnosis"}) == other
    assert work.desk.consultations.case(ANN, consultation.id).drafts == (draft, other)


@pytest.mark.parametrize("change", [{"a": math.inf}, {"a": {1, 2}}, {"a": "\ud800"}])
def test_a_change_that_is_no_json_is_refused(change: Any, work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    with pytest.raises(InvalidInputError, match="change"):
        work.desk.drafting.draft(ANN, turn.id, change)


def test_what_nothing_supports_is_marked_but_does_not_stop(work: DeskAtWork) -> None:
    draft = work.drafted(work.said(work.opened(), "is it unicorn fever?"))
    assert [(finding["check"], finding["level"]) for finding in draft.checks.findings] == [("unsupported", "caution")]
    work.sent(draft)


def test_drafts_replay_to_the_last_bit_with_the_answers_of_their_time(work: DeskAtWork) -> None:
    consultation = work.opened()
    first, second = work.said(consultation, "a cough"), work.said(consultation, "and fever")
    early = work.drafted(first)
    work.drafted(second)
    work.sent(early)
    late = work.desk.drafting.draft(ANN, second.id)
    work.desk.drafting.draft(ANN, second.id, {"state": ["fever"]})
    assert late.version == 2
    report = replay(work.store, Parrot())
    assert (report.same, report.different, report.other_model) == (4, (), 0)
    assert replay(work.store, Parrot("another")).other_model == 4
    assert replay(work.store, Parrot(), limit=1).same == 1


def test_a_replay_that_differs_in_one_bit_is_found(work: DeskAtWork) -> None:
    draft = work.drafted(work.said(work.opened(), "a cough"))

    class Drifted(Parrot):
        def respond(self, conversation: Conversation) -> Mapping[str, Any]:
            said = super().respond(conversation)
            return {**said, "confidence": math.nextafter(said["confidence"], 9)}

    assert replay(work.store, Drifted()).different == (draft.id,)
