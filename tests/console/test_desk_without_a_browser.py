"""What the desk shows, read off the server's own parts: no browser is needed for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
from nicegui import Client, ui
from nicegui.elements.mixins.text_element import TextElement
from nicegui.page import page
from starlette.requests import Request

from tests.console.serving import Served
from vrbot.safety.tables import NOTICE
from vrbot.serving.actors import Actor
from vrbot.serving.api.settings import DEMO_PHYSICIAN, AppSettings
from vrbot.serving.console.desk_page import DeskScreen
from vrbot.serving.console.desk_view import Trail
from vrbot.serving.console.shell import Visit
from vrbot.serving.console.words import LANGUAGES
from vrbot.serving.records import Consultation

ANNOTATOR = Actor("an-annotator", "annotator")


async def built(
    console: Served,
    consultation: Consultation,
    language: str,
    then: Callable[[DeskScreen], Awaitable[None]] | None = None,
) -> Client:
    """A physician's desk, as the server holds it, and what is done on it."""
    around = Mock(desk=console.desk, settings=AppSettings(open_demo=True), who=lambda request: DEMO_PHYSICIAN)
    visit = Visit(around, Request({"type": "http", "query_string": b""}), DEMO_PHYSICIAN, language)
    case = console.desk.consultations.case(DEMO_PHYSICIAN, consultation.id)
    with Client(page("/desk")) as client:
        screen = DeskScreen(visit, case, "a case")
        await screen.build()
        if then is not None:
            await then(screen)
    return client


def texts_in(part: str, client: Client) -> list[str]:
    """All that is written in the parts of this name."""
    around = [each for each in client.elements.values() if each.props.get("data-testid") == part]
    inside = [each for one in around for each in one.descendants()]
    return [each.text for each in inside if isinstance(each, TextElement)]


@pytest.fixture(autouse=True)
def notified(monkeypatch: pytest.MonkeyPatch) -> Mock:
    monkeypatch.setattr(ui, "timer", Mock())  # nobody waits for news here,
    monkeypatch.setattr(Client, "run_javascript", Mock())  # nor runs a script
    notify = Mock()
    monkeypatch.setattr(ui, "notify", notify)
    return notify


def on_the_desk(*arguments: Any) -> Client:
    with ThreadPoolExecutor(1) as beside:  # where a browser is open, this thread can run no other event loop
        return beside.submit(asyncio.run, built(*arguments)).result()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("answer", "found"), [("请服用阿莫西林。", True), ("请马上拨打120。", False)])
def test_flags_and_checks_stand_beside_what_the_rules_are_worth(
    answer: str, found: bool, language: str, console: Served
) -> None:
    consultation = console.opened(language)
    turn = console.said(consultation, "我青霉素过敏，胸口压榨样疼痛半个小时了，还出冷汗")
    assert bool(console.desk.drafting.write(DEMO_PHYSICIAN, turn.id, answer).checks.findings) is found
    client = on_the_desk(console, consultation, language)
    for part in ("banner", "checks"):
        assert texts_in(part, client).count(NOTICE[language]) == 1, part


def test_a_label_saved_on_the_desk_replaces_ones_own_and_nobody_elses(console: Served, notified: Mock) -> None:
    consultation = console.opened("en")
    turn = console.said(consultation, "I have a fever and a cough")
    desk, versions = console.desk, []
    for change in (None, {"state": ["fever"]}, {"state": ["cough"]}, {"state": ["cough"], "category": "diagnosis"}):
        versions.append(desk.drafting.draft(DEMO_PHYSICIAN, turn.id, change).version)

    def labels() -> dict[str, Any]:
        return {kind: label.value for kind, label in desk.annotation.labels_of(DEMO_PHYSICIAN, turn.id).items()}

    async def save(screen: DeskScreen) -> None:
        for version in versions[1:]:
            await screen.refresh(Trail(1, (versions[0], version)))
            await screen.actions.save_label()
            if version == versions[1]:
                assert labels() == {"state": ["fever"]}
            if version == versions[2]:
                assert labels() == {"state": ["cough"]}
                desk.annotation.label(ANNOTATOR, turn.id, "state", [])  # another looked closer

    on_the_desk(console, consultation, "en", save)
    assert labels() == {"state": []}
    assert [call.kwargs["type"] for call in notified.call_args_list] == ["positive", "positive", "warning"]
