"""A physician's page as the server holds it, without a browser: what it does, it does as whoever signed in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import AsyncMock, patch

from nicegui import Client, ui
from nicegui.page import page
from starlette.requests import Request

from tests.serving.api.served import PASSWORD, desk_of
from vrbot.serving.accounts import User
from vrbot.serving.actors import OPERATOR
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.api.signin import COOKIE, Gate, signed_in
from vrbot.serving.console.desk_page import DeskScreen
from vrbot.serving.console.shell import Console, Visit
from vrbot.serving.records import Consultation, Draft, Turn
from vrbot.serving.service import Desk
from vrbot.serving.store import Store


@dataclass(eq=False)
class OpenPages:
    """A desk, a physician who signed in there, and the pages opened with that sign-in; `gone_to` is where they went."""

    desk: Desk
    user: User
    token: str
    gone_to: list[str]
    said_so: list[str]

    def visit(self, path: str = "/consultations", language: str = "en") -> Visit:
        """One opening of a page, with the token in its cookie."""
        settings = AppSettings()
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": b"",
            "server": ("127.0.0.1", 80),
            "headers": [(b"cookie", f"{COOKIE}={self.token}".encode())],
            "state": {"gate": Gate(self.desk, settings)},
        }
        console = Console(self.desk, settings, AsyncMock(draft=self._draft), signed_in)
        return Visit(console, Request(scope), self.user.actor, language)

    async def _draft(self, actor: Any, turn: str, change: Any = None) -> Any:
        return self.desk.drafting.draft(actor, turn, change)

    def opened(self) -> Consultation:
        """A consultation of the physician's."""
        return self.desk.consultations.open(self.user.actor, "en")

    def said(self, consultation: Consultation, text: str) -> Turn:
        """What a patient says."""
        return self.desk.consultations.receive_from_patient(consultation.id, self.desk.store.new_id(), text)

    def drafted(self, turn: Turn) -> Draft:
        """The model's draft, which a page would otherwise ask for."""
        return self.desk.drafting.draft(self.user.actor, turn.id)

    async def screen(self, consultation: Consultation) -> DeskScreen:
        """The desk page of a consultation, built."""
        visit = self.visit(f"/consultations/{consultation.id}")
        case = self.desk.consultations.case(self.user.actor, consultation.id)
        client = Client(page("/desk"))
        with client:
            screen = DeskScreen(visit, case, "a case")
            await screen.build()
        return screen

    def seen_by_patient(self, consultation: Consultation) -> list[str]:
        """The replies a patient can read."""
        return [line.text for line in self.desk.patient_view(consultation.id) if line.author == "physician"]


@contextmanager
def open_pages(store: Store) -> Iterator[OpenPages]:
    """Pages whose timers never fire by themselves, and whose messages to the browser are caught."""
    desk = desk_of(store)
    user = desk.accounts.add(OPERATOR, "ann", PASSWORD, "physician")
    token = desk.accounts.sign_in("ann", PASSWORD).token
    pages = OpenPages(desk, user, token, [], [])
    with (
        patch.object(ui, "timer"),
        patch.object(Client, "run_javascript"),
        patch.object(ui.navigate, "to", lambda target, **_: pages.gone_to.append(target)),
        patch.object(ui, "notify", lambda message, **_: pages.said_so.append(str(message))),
    ):
        yield pages


def in_a_loop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Runs it in an event loop of its own, in a thread of its own: elsewhere a browser may have one open."""
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(lambda: asyncio.run(work())).result()
