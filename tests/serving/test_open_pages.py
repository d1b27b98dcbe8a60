"""An open page may do what its sign-in may, and only for as long as that lasts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.real_data import REPOSITORY
from tests.serving.api.served import PASSWORD
from tests.serving.open_pages import OpenPages, in_a_loop
from vrbot.serving.actors import OPERATOR
from vrbot.serving.console.desk_actions import Seen
from vrbot.serving.safety_desk import findings_sha256

CONSOLE = REPOSITORY / "src/vrbot/serving/console"
WITHOUT_PATIENTS = ("shell.py", "parts.py", "card_page.py", "experiments_page.py")
"""What anybody who is signed in may read, and the one place where the sign-in is looked at."""


ENDINGS: dict[str, Callable[[OpenPages], object]] = {
    "signed out": lambda pages: pages.desk.accounts.sign_out(pages.token),
    "disabled": lambda pages: pages.desk.accounts.set_disabled(OPERATOR, "ann"),
    "new password": lambda pages: pages.desk.accounts.set_password(OPERATOR, "ann", PASSWORD + "!"),
    "expired": lambda pages: setattr(pages.desk.store, "clock", lambda: 10**16),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_page_does_nothing_more_once_its_sign_in_has_ended(ending: str, pages: OpenPages) -> None:
    consultation = pages.opened()
    pages.drafted(pages.said(consultation, "a cough"))

    async def work() -> None:
        screen = await pages.screen(consultation)
        draft = screen.actions.view.current  # type: ignore[union-attr]
        assert draft is not None
        ENDINGS[ending](pages)
        events = pages.desk.store.head().seq
        assert not await screen.actions.approve(Seen(draft, draft.text or "", 1))
        assert not await screen.actions.edit(draft, "Rest.")
        assert not await screen.actions.write(draft.turn, "Rest.")
        assert not await screen.actions.note_down("more", "n1")
        await screen.actions.reject(draft)
        await screen.actions.ask_again()
        await screen.actions.end()
        assert pages.desk.store.head().seq == events

    in_a_loop(work)
    assert pages.seen_by_patient(consultation) == []
    assert set(pages.gone_to) == {f"/sign-in?next=/consultations/{consultation.id}"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_page_left_open_shows_nothing_new_and_goes_to_sign_in_by_itself(ending: str, pages: OpenPages) -> None:
    consultation = pages.opened()
    pages.drafted(pages.said(consultation, "a cough"))

    async def work() -> None:
        screen = await pages.screen(consultation)
        ENDINGS[ending](pages)
        pages.said(consultation, "and something private")
        before = screen.shown
        await screen._look()
        assert screen.shown is before
        assert pages.gone_to
        assert not await screen.visit.goes_on()

    in_a_loop(work)


def test_while_the_sign_in_lasts_the_page_works(pages: OpenPages) -> None:
    consultation = pages.opened()
    pages.drafted(pages.said(consultation, "a cough"))

    async def work() -> None:
        screen = await pages.screen(consultation)
        draft = screen.actions.view.current  # type: ignore[union-attr]
        assert draft is not None
        assert await screen.visit.goes_on()
        assert await screen.actions.approve(Seen(draft, draft.text or "", 1))

    in_a_loop(work)
    assert pages.seen_by_patient(consultation) == ["You say: a cough"]
    assert pages.gone_to == []


def test_a_reason_written_while_the_patient_said_more_sends_nothing(pages: OpenPages) -> None:
    consultation = pages.opened()
    turn = pages.said(consultation, "I am allergic to aspirin")
    draft = pages.desk.drafting.write(pages.user.actor, turn.id, "Take aspirin.")
    asked: list[tuple[Seen, tuple[dict[str, Any], ...]]] = []

    async def work() -> None:
        screen = await pages.screen(consultation)
        screen.actions.ask_reason = lambda *about: asked.append(about)
        pressed = Mock(args={"draft": draft.id, "text": draft.text})
        await screen.draft._approve(pressed)
        pages.drafted(pages.said(consultation, "and it nearly killed me"))
        with screen.actions.client:
            await screen._look()  # the page behind the dialog moves on, the dialog does not
        assert screen.shown is not None
        assert screen.shown.view.turn is not None
        assert screen.shown.view.turn.seq == 2
        seen, findings = asked[0]
        assert not await screen.actions.approve(seen, "tolerated in 2019", findings_sha256(findings))

    in_a_loop(work)
    assert pages.seen_by_patient(consultation) == []
    assert any("more" in message for message in pages.said_so)


@pytest.mark.parametrize("module", sorted(CONSOLE.glob("*.py")), ids=lambda path: path.name)
def test_no_page_asks_the_desk_but_through_its_visit(module: Path) -> None:
    source = module.read_text(encoding="utf-8")
    assert module.name in WITHOUT_PATIENTS or "await asked(" not in source
