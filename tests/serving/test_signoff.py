"""Nothing reaches a patient but what a physician approved, to the letter."""

from __future__ import annotations

import pytest
from sqlalchemy import select, text

from tests.serving.fakes import ANN, BOB, DeskAtWork
from vrbot.errors import IntegrityError
from vrbot.serving.problems import ConflictError, NotFoundError, ReasonNeededError, RefusedError
from vrbot.serving.safety_desk import findings_sha256
from vrbot.serving.schema import audit_events
from vrbot.serving.store import Store
from vrbot.serving.texts import text_sha256


def test_a_draft_is_not_seen_by_the_patient_until_it_is_approved(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "a cough"))
    assert work.seen_by_patient(consultation) == []
    message = work.sent(draft)
    assert message.text == draft.text == "You say: a cough"
    assert work.seen_by_patient(consultation) == ["You say: a cough"]


@pytest.mark.parametrize("seen", ["You say: a cough ", "you say: a cough", ""])
def test_approval_of_another_text_is_a_conflict(seen: str, work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "a cough"))
    with pytest.raises(ConflictError, match="another text"):
        work.desk.signoff.approve(ANN, draft.id, text_sha256(seen))
    assert work.seen_by_patient(consultation) == []


def test_approving_twice_sends_once(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "a cough"))
    first = work.sent(draft)
    head = work.store.head()
    assert work.sent(draft) == first
    assert work.store.head() == head
    assert work.seen_by_patient(consultation) == [draft.text]


def test_an_edit_makes_a_version_that_needs_its_own_approval(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "a cough"))
    seen = draft.text_sha256 or ""
    edited = work.desk.signoff.edit(ANN, draft.id, seen, "How long have you had it?")
    assert (edited.version, edited.origin, edited.parent) == (2, "physician", draft.id)
    assert work.seen_by_patient(consultation) == []
    assert work.desk.signoff.edit(ANN, draft.id, seen, "How long have you had it?") == edited
    with pytest.raises(ConflictError, match="decided already"):
        work.desk.signoff.edit(ANN, draft.id, seen, "something else")
    with pytest.raises(ConflictError, match="decided already"):
        work.sent(draft)
    with pytest.raises(ConflictError, match="another text"):
        work.desk.signoff.approve(ANN, edited.id, seen)
    work.sent(edited)
    assert work.seen_by_patient(consultation) == ["How long have you had it?"]


def test_a_rejected_draft_can_never_be_sent_but_another_can(work: DeskAtWork) -> None:
    consultation = work.opened()
    turn = work.said(consultation, "a cough")
    draft = work.drafted(turn)
    decision = work.desk.signoff.reject(ANN, draft.id, "too short")
    assert work.desk.signoff.reject(ANN, draft.id, "too short") == decision
    with pytest.raises(ConflictError, match="reject"):
        work.sent(draft)
    again = work.drafted(turn)
    assert (again.version, again.text) == (2, draft.text)
    work.sent(again)
    assert work.seen_by_patient(consultation) == [draft.text]


def test_a_turn_is_answered_once(work: DeskAtWork) -> None:
    consultation = work.opened()
    turn = work.said(consultation, "a cough")
    one, two = work.drafted(turn), work.desk.drafting.write(ANN, turn.id, "Rest.")
    work.sent(two)
    with pytest.raises(ConflictError, match="answered already"):
        work.sent(one)
    assert work.seen_by_patient(consultation) == ["Rest."]


def test_approval_fails_when_the_patient_has_said_more_than_the_physician_saw(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "a cough"))
    work.said(consultation, "and blood in it")
    with pytest.raises(ConflictError, match="said more since turn 1"):
        work.sent(draft, seen_turn=1)
    assert work.sent(draft, seen_turn=2).text == draft.text


def test_a_check_that_says_stop_asks_for_a_reason_and_keeps_it(work: DeskAtWork) -> None:
    consultation = work.opened()
    turn = work.said(consultation, "I am allergic to aspirin")
    draft = work.desk.drafting.write(ANN, turn.id, "Take aspirin.")
    assert draft.checks.stops
    for reason in (None, "", "  \n"):
        with pytest.raises(ReasonNeededError, match="reason") as caught:
            work.sent(draft, override_reason=reason)
        assert caught.value.findings == draft.checks.stops
    message = work.sent(draft, override_reason="tolerated in 2019")
    (decision,) = work.desk.consultations.case(ANN, consultation.id).decisions
    assert (decision.reason, decision.checks) == ("tolerated in 2019", draft.checks)
    assert message.medicine_suggestion


def test_edited_text_is_checked_like_a_draft(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "I am allergic to aspirin"))
    edited = work.desk.signoff.edit(ANN, draft.id, draft.text_sha256 or "", "Take aspirin.")
    assert edited.checks.stops
    with pytest.raises(ReasonNeededError):
        work.sent(edited)


def test_checks_know_what_was_said_after_the_draft(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.desk.drafting.write(ANN, work.said(consultation, "a headache").id, "Take aspirin.")
    assert not draft.checks.stops
    work.said(consultation, "by the way, I am allergic to aspirin")
    with pytest.raises(ReasonNeededError):
        work.sent(draft)


def test_a_reason_is_for_the_stops_that_were_shown_and_no_others(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.desk.drafting.write(ANN, work.said(consultation, "a headache").id, "Take aspirin.")
    work.said(consultation, "by the way, I am allergic to aspirin")
    with pytest.raises(ReasonNeededError) as asked:
        work.sent(draft, override_reason="a rash years ago", seen_turn=2)
    shown = findings_sha256(asked.value.findings)
    with pytest.raises(ReasonNeededError):
        work.sent(draft, override_reason="a rash years ago", seen_turn=2, seen_findings="0" * 64)
    with pytest.raises(ReasonNeededError):
        work.sent(draft, seen_turn=2, seen_findings=shown)
    assert work.seen_by_patient(consultation) == []
    work.sent(draft, override_reason="tolerated it since", seen_turn=2, seen_findings=shown)
    (decision,) = work.desk.consultations.case(ANN, consultation.id).decisions
    assert (decision.reason, decision.checks.stops) == ("tolerated it since", asked.value.findings)


def test_a_check_that_fails_says_stop(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.desk.drafting.write(ANN, work.said(consultation, "my arm").id, "It is broken.")
    assert [finding["code"] for finding in draft.checks.stops] == ["check_failed"]
    with pytest.raises(ReasonNeededError):
        work.sent(draft)
    work.sent(draft, override_reason="seen on the X-ray")


def test_the_kill_switch_holds_back_the_models_words_but_not_the_physicians(work: DeskAtWork) -> None:
    consultation = work.opened()
    turn = work.said(consultation, "a cough")
    draft = work.drafted(turn)
    work.rules.stopped = "wrong doses seen"
    with pytest.raises(RefusedError, match="wrong doses seen"):
        work.sent(draft)
    refused = work.drafted(turn)
    assert (refused.text, refused.failure) == (None, "drafts are switched off: wrong doses seen")
    with pytest.raises(ConflictError, match="has no text"):
        work.desk.signoff.approve(ANN, refused.id, "")
    work.sent(work.desk.drafting.write(ANN, turn.id, "Please come in."))
    assert work.seen_by_patient(consultation) == ["Please come in."]


def test_nobody_else_can_approve_edit_or_reject(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "a cough"))
    seen = draft.text_sha256 or ""
    for attempt in (
        lambda: work.desk.signoff.approve(BOB, draft.id, seen),
        lambda: work.desk.signoff.edit(BOB, draft.id, seen, "x"),
        lambda: work.desk.signoff.reject(BOB, draft.id),
    ):
        with pytest.raises(NotFoundError):
            attempt()
    assert work.seen_by_patient(consultation) == []


def test_nothing_is_sent_in_a_closed_consultation(work: DeskAtWork) -> None:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "a cough"))
    work.desk.consultations.close(ANN, consultation.id)
    with pytest.raises(RefusedError, match="closed"):
        work.sent(draft)


def test_a_simulated_physician_needs_a_demonstration(work: DeskAtWork) -> None:
    draft = work.drafted(work.said(work.opened(), "a cough"))
    with pytest.raises(RefusedError, match="demonstration"):
        work.desk.signoff.simulate_physician(draft.id)
    with pytest.raises(RefusedError, match="no demonstration"):
        DeskAtWork(work.store, demo=True).desk.signoff.simulate_physician(draft.id)


def test_a_simulated_approval_is_marked_everywhere(store: Store) -> None:
    work = DeskAtWork(store, demo=True)
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "a cough"))
    work.desk.signoff.simulate_physician(draft.id)
    case = work.desk.consultations.case(ANN, consultation.id)
    assert case.consultation.demo
    assert [(decision.simulated, decision.made_by) for decision in case.decisions] == [(True, "simulated-physician")]
    assert [message.simulated for message in case.messages] == [True]
    with store.reading() as connection:
        bodies = connection.execute(select(audit_events.c.body).order_by(audit_events.c.seq)).scalars().all()
    assert '"demo":true' in bodies[0]
    assert '"simulated":true' in bodies[-1]
    assert '"actor":"simulated-physician"' in bodies[-1]


def test_a_simulated_physician_rejects_where_a_check_says_stop(store: Store) -> None:
    work = DeskAtWork(store, demo=True)
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "I am allergic to aspirin"))
    work.desk.signoff.simulate_physician(draft.id)
    assert work.seen_by_patient(consultation) == []


def test_a_text_changed_in_the_database_is_not_shown(work: DeskAtWork) -> None:
    consultation = work.opened()
    work.sent(work.drafted(work.said(consultation, "a cough")))
    with work.store.engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(text("UPDATE drafts SET text = :text"), {"text": b"Take ten of these."})
    with pytest.raises(IntegrityError, match="not the text that was approved"):
        work.desk.patient_view(consultation.id)


def test_a_medicine_is_marked_as_a_suggestion(work: DeskAtWork) -> None:
    consultation = work.opened()
    plain = work.drafted(work.said(consultation, "a cough"))
    medicine = work.drafted(work.said(consultation, "give me medicine"))
    work.sent(plain)
    work.sent(work.desk.signoff.edit(ANN, medicine.id, medicine.text_sha256 or "", "Perhaps a syrup."))
    lines = [line for line in work.desk.patient_view(consultation.id) if line.author == "physician"]
    assert [line.medicine_suggestion for line in lines] == [False, True]
