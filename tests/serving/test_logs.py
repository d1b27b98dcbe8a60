"""What patients say is in the database and nowhere else."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from tests.serving.fakes import ANN, RAY, DeskAtWork, quick_accounts
from vrbot.errors import VRBotError
from vrbot.serving.actors import OPERATOR
from vrbot.serving.audit import verify
from vrbot.serving.schema import turns

CANARY = "canary-7f3a"


def test_no_log_and_no_error_repeats_what_was_said(
    work: DeskAtWork, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="sqlalchemy")  # which keeps to warnings unless told
    errors = []
    consultation = work.opened()
    for text in (
        f"{CANARY} cough",
        f"{CANARY} crash",
        f"{CANARY} broken",
        f"{CANARY} allergic to aspirin",
        f"{CANARY}\ud800",
    ):
        try:
            turn = work.said(consultation, text)
            draft = work.drafted(turn)
            own = work.desk.drafting.write(ANN, turn.id, f"{CANARY} aspirin")
            for attempt in (draft, own):
                work.sent(attempt)
        except VRBotError as error:
            errors.append(str(error))
    try:
        work.desk.consultations.receive(ANN, consultation.id, "c0", f"{CANARY} other")
    except VRBotError as error:
        errors.append(str(error))
    try:
        with work.store.writing("test", ANN) as writer:
            writer.insert(turns, consultation=consultation.id, seq=1, text=CANARY, client_turn_id="x")
    except VRBotError as error:
        errors.append(str(error))
    with suppress(VRBotError, ValueError):
        list(work.desk.annotation.export(RAY))
    quick_accounts(work.store).add(OPERATOR, "ann", f"{CANARY}-password", "physician")
    assert verify(work.store).good
    assert len(errors) >= 5
    assert caplog.text
    output = capfd.readouterr()
    for text in (*errors, caplog.text, output.out, output.err):
        assert CANARY not in text


def test_the_audit_log_repeats_no_text_either(work: DeskAtWork) -> None:
    consultation = work.opened()
    turn = work.said(consultation, f"{CANARY} allergic to aspirin")
    draft = work.desk.drafting.write(ANN, turn.id, f"{CANARY} aspirin")
    work.sent(draft, override_reason=f"{CANARY} knows")
    work.desk.annotation.label(ANN, turn.id, "state", [CANARY])
    with work.store.reading() as connection:
        stored = connection.exec_driver_sql("SELECT body FROM audit_events").all()
    assert all(CANARY.encode() not in bytes(row[0]) for row in stored)
