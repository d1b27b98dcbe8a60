"""Without a guard nothing looks sure: not over the API, not at the desk, and the server says so when it starts."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from nicegui.elements.mixins.text_element import TextElement

from tests.agent.conftest import run, tiny_corpus
from tests.console.scripted import Scripted
from tests.serving.open_pages import OpenPages, in_a_loop
from tests.serving.test_replaying import GUARD
from vrbot.serving.api.explanations import explanation_of
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.console.words import desk as desk_words
from vrbot.serving.drafting import Drafting
from vrbot.serving.responder import responder_of
from vrbot.serving.running import Plan, open_desk, verified
from vrbot.serving.safety_desk import Conversation

__all__ = ["run", "tiny_corpus"]


class Unguarded(Scripted):
    """Nobody has calibrated it."""

    def what_if(self, conversation: Conversation, change: Mapping[str, Any]) -> Mapping[str, Any]:
        reply = dict(super().what_if(conversation, change))
        return {**reply, "evidence": {**reply["evidence"], "confidence": None, "abstain": None}}


def test_a_trained_model_is_sure_of_nothing_without_a_guard_and_of_something_with_one(
    run: Path, tmp_path: Path
) -> None:
    plain = explanation_of(responder_of(run).respond([("我咳嗽", "")]))
    assert plain["action"]["categories"]
    assert (plain["confidence"], plain["abstain"]) == (None, None)
    GUARD.save(tmp_path / "guard.json")
    guarded = explanation_of(responder_of(run, guard=tmp_path / "guard.json").respond([("我咳嗽", "")]))
    assert isinstance(guarded["confidence"], float)
    assert isinstance(guarded["abstain"], list)


@pytest.mark.parametrize(("reasons", "told"), [(None, None), ([], []), (["no path"], ["no path"])])
def test_no_reason_to_abstain_is_told_from_nobody_having_looked(reasons: Any, told: Any) -> None:
    assert explanation_of({"text": "x", "evidence": {"abstain": reasons}})["abstain"] == told
    assert explanation_of({"text": "x", "categories": {"diagnosis": 0.99}})["confidence"] is None


@pytest.mark.parametrize("guarded", [True, False])
def test_the_server_says_in_one_line_that_it_has_no_guard(
    guarded: bool, run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    GUARD.save(tmp_path / "guard.json")
    guard = tmp_path / "guard.json" if guarded else None
    for workers in (1, 2):
        caplog.clear()
        place = str(tmp_path / f"{workers}.sqlite")
        plan = Plan(run, place, AppSettings(console=False), guard=guard, workers=workers)
        with caplog.at_level(logging.WARNING, logger="vrbot"):
            verified(plan)
            open_desk(plan).store.close()
        lines = [record.message for record in caplog.records if "not calibrated" in record.message]
        assert len(lines) == (0 if guarded else 1)
        assert all("--guard FILE" in line and "\n" not in line for line in lines)


@pytest.mark.parametrize(("model", "shown"), [(Scripted(), False), (Unguarded(), True)], ids=["guarded", "unguarded"])
def test_the_desk_says_quietly_that_nobody_has_measured(model: Any, shown: bool, pages: OpenPages) -> None:
    pages.desk.drafting = Drafting(pages.desk.store, pages.desk.safety, model)
    consultation = pages.opened()
    pages.drafted(pages.said(consultation, "a cough"))

    async def work() -> list[str]:
        screen = await pages.screen(consultation)
        found = [
            each
            for each in screen.actions.client.elements.values()
            if each.props.get("data-testid") == "uncalibrated" and isinstance(each, TextElement)
        ]
        return [each.text for each in found]

    assert in_a_loop(work) == ([desk_words.WORDS["en"]["uncalibrated"]] if shown else [])
