"""The verbs of the command line that look after a desk's database."""

from __future__ import annotations

import io
import json
import sqlite3
from pathlib import Path

import pytest

from tests.serving.fakes import DeskAtWork
from vrbot.cli.main import run
from vrbot.serving.store import Store

PASSWORD = "a long password"


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


@pytest.fixture
def desk(tmp_path: Path) -> str:
    store = Store.open(tmp_path / "desk.sqlite", create=True)
    work = DeskAtWork(store)
    work.drafted(work.said(work.opened(), "a cough"))
    store.close()
    return str(tmp_path / "desk.sqlite")


def test_users_are_added_listed_disabled_and_given_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--database", str(tmp_path / "new.sqlite")]
    answer(monkeypatch, PASSWORD + "\n")
    assert run(["users", "add", "ann", "--role", "physician", *where]) == 0
    assert run(["users", "disable", "ann", *where]) == 0
    answer(monkeypatch, "another password\n")
    assert run(["users", "password", "ann", *where]) == 0
    capsys.readouterr()
    assert run(["users", "list", "--json", *where]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["name"], listed["role"], listed["disabled"]) == ("ann", "physician", True)
    assert run(["users", "disable", "ann", "--undo", *where]) == 0
    assert run(["users", "list", *where]) == 0
    assert "active" in capsys.readouterr().out


@pytest.mark.parametrize(("typed", "role", "code"), [("", "admin", 2), ("short\n", "admin", 2), (PASSWORD, "king", 2)])
def test_a_wrong_user_is_wrong_use(
    typed: str, role: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, typed)
    assert run(["users", "add", "ann", "--role", role, "--database", str(tmp_path / "new.sqlite")]) == code


def test_verification_fails_with_one_when_something_was_changed(desk: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "verify", desk]) == 0
    assert "0 events since" in capsys.readouterr().out
    connection = sqlite3.connect(desk)
    with connection:
        connection.execute("UPDATE turns SET received_by = 'nobody'")
    connection.close()
    assert run(["audit", "verify", desk]) == 1
    assert "was changed" in capsys.readouterr().out
    assert run(["audit", "verify", desk, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["good"] is False


def test_a_database_that_is_not_there_is_wrong_use_and_is_not_made(tmp_path: Path) -> None:
    for verb in (["audit", "verify"], ["backup"]):
        assert (
            run([*verb, str(tmp_path / "none.sqlite"), *([str(tmp_path / "copy")] if verb == ["backup"] else [])]) == 2
        )
    assert list(tmp_path.iterdir()) == []


def test_backup_and_restore_give_the_database_back(
    desk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["backup", desk, str(tmp_path / "copy")]) == 0
    assert run(["restore", str(tmp_path / "copy"), str(tmp_path / "new.sqlite"), "--json"]) == 0
    assert run(["audit", "verify", str(tmp_path / "new.sqlite")]) == 0
    assert run(["restore", str(tmp_path / "copy"), desk]) == 2
    assert "already there" in capsys.readouterr().err
