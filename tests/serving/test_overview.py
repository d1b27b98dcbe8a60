"""Whoever waits is in the list, and whoever is in danger stands at its top, however much else is there."""

from __future__ import annotations

import pytest

from tests.serving.fakes import ANN, BOB, DeskAtWork
from vrbot.serving.console import overview
from vrbot.serving.console.overview import listed


def test_a_red_flag_stays_on_top_until_it_is_answered_whatever_is_said_after_it(work: DeskAtWork) -> None:
    in_danger, other = work.opened(), work.opened()
    work.said(in_danger, "crushing chest pain")
    work.said(in_danger, "Hello?")
    work.said(other, "a cough")
    first, second = listed(work.store, ANN)
    assert (first.consultation, first.urgent, second.urgent) == (in_danger, True, False)
    last = work.said(in_danger, "Is anybody there?")
    assert listed(work.store, ANN)[0].urgent
    work.sent(work.desk.drafting.write(ANN, last.id, "Call an ambulance."))
    assert not any(line.urgent for line in listed(work.store, ANN))
    work.said(in_danger, "They are here.")
    assert not any(line.urgent for line in listed(work.store, ANN))
    work.said(in_danger, "The chest pain is back.")
    assert listed(work.store, ANN)[0].urgent


def test_a_flag_that_was_said_before_the_turn_that_was_answered_no_longer_waits(work: DeskAtWork) -> None:
    consultation = work.opened()
    work.said(consultation, "chest pain")
    work.sent(work.drafted(work.said(consultation, "Hello?")))
    work.said(consultation, "Thank you.")
    (line,) = listed(work.store, ANN)
    assert (line.status, line.urgent) == ("waiting", False)


def test_no_open_consultation_is_left_out_however_many_are_newer(
    work: DeskAtWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MOST_CLOSED", 2)
    urgent, waiting, empty = work.opened(), work.opened(), work.opened()
    work.said(urgent, "chest pain")
    work.said(waiting, "a cough")
    for number in range(6):
        newer = work.opened()
        if number % 2:
            work.desk.consultations.close(ANN, newer.id)
    work.opened(BOB)
    lines = listed(work.store, ANN)
    assert [line.consultation.id for line in lines[:2]] == [urgent.id, waiting.id]
    assert empty.id in [line.consultation.id for line in lines]
    assert [line.status for line in lines].count("closed") == 2
    assert len(lines) == 3 + 3 + 2
