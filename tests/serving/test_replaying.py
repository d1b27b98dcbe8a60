"""`vrbot audit replay`: drafts made as `vrbot serve` makes them come out again to the last bit, and only those."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import make_agent, run, tiny_corpus
from tests.serving.api.served import Served, serving
from tests.serving.fakes import quick_accounts
from vrbot.cli.main import run as vrbot
from vrbot.explain.abstention import Guard
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.running import Plan, open_desk

__all__ = ["make_agent", "run", "tiny_corpus"]

GUARD = Guard(temperature=1.5, unknown_words=0.5, strangeness=1e9, confidence=0.9)
SAID = ("我咳嗽三天了", "昨天腹泻，乏力 \0😷", "", "头痛 发烧 咳嗽", "有点恶心", "没有别的不舒服")


@dataclass(frozen=True)
class Past:
    """A database in which a model has drafted, and what it was served with."""

    database: Path
    model: Path
    guard: Path

    def replayed(self, *more: str, guarded: bool = True) -> int:
        how = ["--guard", str(self.guard)] if guarded else []
        return vrbot(["audit", "replay", str(self.database), str(self.model), *how, "--json", *more])

    def change(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.database)) as connection, connection:
            assert connection.execute(statement, values).rowcount == 1


def some_days_work(served: Served) -> list[str]:
    """Six consultations at once, with a second turn each, some answers sent and a what-if; the ids of all drafts."""
    made: list[str] = []

    def drafted(path: str, body: Any = None) -> dict[str, Any]:
        draft = dict(served.post(path, body).json())
        assert draft["failure"] is None, draft
        made.append(draft["id"])
        return draft

    with ThreadPoolExecutor(len(SAID)) as physicians:
        talks = [served.opened() for _ in SAID]
        first = [served.said(talk, text) for talk, text in zip(talks, SAID, strict=True)]
        answers = list(physicians.map(lambda turn: drafted(f"/turns/{turn['id']}/drafts"), first))
        for draft in answers[::2]:
            seen = {"seen_sha256": draft["text_sha256"], "seen_turn": 1, "override_reason": "a test"}
            assert served.post(f"/drafts/{draft['id']}/approve", seen).status_code == 200
        second = [served.said(talk, "还有发烧", "t2") for talk in talks]
        list(physicians.map(lambda turn: drafted(f"/turns/{turn['id']}/drafts"), second))
    drafted(f"/turns/{second[0]['id']}/what-if", {"category": "diagnosis", "state": ["咳嗽"]})
    return made


@pytest.fixture
def past(run: Path, tmp_path: Path) -> Past:
    found = Past(tmp_path / "desk.sqlite", run, tmp_path / "guard.json")
    GUARD.save(found.guard)
    desk = open_desk(Plan(run, str(found.database), AppSettings(), guard=found.guard))
    desk.accounts = quick_accounts(desk.store)
    with serving(desk) as served:
        made = some_days_work(served)
    desk.store.close()
    assert len(set(made)) == 2 * len(SAID) + 1
    return found


def test_every_draft_of_a_served_model_replays_and_a_changed_one_is_named(
    past: Past, capsys: pytest.CaptureFixture[str]
) -> None:
    assert past.replayed() == 0
    report = json.loads(capsys.readouterr().out)
    assert report == {"same": 13, "different": [], "other_model": 0, "good": True}
    with closing(sqlite3.connect(past.database)) as connection:
        drafts = connection.execute("SELECT id, reply, text FROM drafts ORDER BY made_at, id").fetchall()
    (first, reply, _), (last, _, text) = drafts[0], drafts[-1]
    other = json.dumps({**json.loads(reply), "confidence": 0.5}, ensure_ascii=False, separators=(",", ":"))
    past.change("UPDATE drafts SET reply = ? WHERE id = ?", other.encode(), first)
    past.change("UPDATE drafts SET text = ? WHERE id = ?", text + b".", last)
    assert past.replayed() == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["same"], set(report["different"])) == (11, {first, last})
    assert past.replayed("--limit", "1") == 1
    assert vrbot(["audit", "replay", str(past.database), str(past.model), "--guard", str(past.guard)]) == 1
    assert f"different: draft {first}" in capsys.readouterr().out


def test_drafts_of_another_model_or_guard_are_counted_and_not_taken_for_changed(
    past: Past, capsys: pytest.CaptureFixture[str]
) -> None:
    assert past.replayed(guarded=False) == 2
    seen = capsys.readouterr()
    assert json.loads(seen.out)["other_model"] == 13
    assert "name the model and the guard" in seen.err
