"""What the desk shows, read off the server's own parts: no browser is needed for it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from nicegui import Client, ui
from nicegui.elements.mixins.text_element import TextElement
from nicegui.page import page
from starlette.requests import Request

from tests.console.serving import Served
from vrbot.safety.tables import NOTICE
from vrbot.serving.api.settings import DEMO_PHYSICIAN, AppSettings
from vrbot.serving.console.desk_page import DeskScreen
from vrbot.serving.console.shell import Visit
from vrbot.serving.console.words import LANGUAGES
from vrbot.serving.records import Consultation


async def built(console: Served, consultation: Consultation, language: str) -> Client:
    """A physician's desk, as the server holds it."""
    around = Mock(desk=console.desk, settings=AppSettings(open_demo=True), who=lambda request: DEMO_PHYSICIAN)
    visit = Visit(around, Request({"type": "http", "query_string": b""}), DEMO_PHYSICIAN, language)
    case = console.desk.consultations.case(DEMO_PHYSICIAN, consultation.id)
    with Client(page("/desk")) as client:
        await DeskScreen(visit, case, "a case").build()
    return client


def texts_in(part: str, client: Client) -> list[str]:
    """All that is written in the parts of this name."""
    around = [each for each in client.elements.values() if each.props.get("data-testid") == part]
    inside = [each for one in around for each in one.descendants()]
    return [each.text for each in inside if isinstance(each, TextElement)]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("answer", "found"), [("请服用阿莫西林。", True), ("请马上拨打120。", False)])
def test_flags_and_checks_stand_beside_what_the_rules_are_worth(
    answer: str, found: bool, language: str, console: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "timer", Mock())  # nobody waits for news here,
    monkeypatch.setattr(Client, "run_javascript", Mock())  # nor runs a script
    consultation = console.opened(language)
    turn = console.said(consultation, "我青霉素过敏，胸口压榨样疼痛半个小时了，还出冷汗")
    assert bool(console.desk.drafting.write(DEMO_PHYSICIAN, turn.id, answer).checks.findings) is found
    with ThreadPoolExecutor(1) as beside:  # where a browser is open, this thread can run no other event loop
        client = beside.submit(asyncio.run, built(console, consultation, language)).result()
    for part in ("banner", "checks"):
        assert texts_in(part, client).count(NOTICE[language]) == 1, part
