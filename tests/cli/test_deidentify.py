"""`vrbot deidentify`: what the rules find is gone from the file, everything else is still there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vrbot.cli.main import run as vrbot
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.formats import read_sessions, write_sessions
from vrbot.dialogue.session import Action, Session, Turn

SECRETS = ("13812345678", "zhang.wei@example.com", "王小明")
TURNS = (
    Turn(
        "医生您好，我叫王小明，电话13812345678，咳嗽三天了",
        "有没有发烧？",
        ("咳嗽",),
        Action("ask_symptoms", ("发烧",)),
    ),
    Turn("没有发烧", "报告发到 zhang.wei@example.com 就行", ("咳嗽",), Action("chitchat", ())),
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    extra = {"department": "呼吸科", "name": SECRETS[2]}
    sessions = [Session(SECRETS[0], TURNS, extra), Session("plain", (Turn("咳嗽", "多喝水"),))]
    write_sessions(tmp_path / "raw.jsonl", sessions)
    return tmp_path / "raw.jsonl"


def test_no_secret_is_left_anywhere_in_the_file_and_nothing_else_is_lost(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "clean.jsonl"
    assert vrbot(["deidentify", str(source), "--out", str(out), "--keep", "department", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [secret for secret in SECRETS if secret in out.read_text("utf-8")] == []
    first, second = read_sessions(out)
    assert (first.id, second.id) == ("raw-000001", "raw-000002")
    assert dict(first.extra) == {"department": "呼吸科"}
    assert [(turn.state, turn.action) for turn in first.turns] == [(turn.state, turn.action) for turn in TURNS]
    assert "咳嗽三天了" in first.turns[0].patient
    assert second.turns == (Turn("咳嗽", "多喝水"),)
    placeholders = sum(turn.patient.count("[") + turn.physician.count("[") for turn in first.turns)
    assert sum(report["found"].values()) == placeholders >= len(SECRETS)
    assert report["sessions"] == 2


def test_splits_that_are_cleaned_one_by_one_can_be_prepared_together(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write_sessions(tmp_path / "raw" / f"{split}.jsonl", [Session("1", TURNS)])
        cleaned = tmp_path / "clean" / f"{split}.jsonl"
        assert vrbot(["deidentify", str(tmp_path / "raw" / f"{split}.jsonl"), "--out", str(cleaned)]) == 0
    assert vrbot(["prepare", str(tmp_path / "raw"), "--out", str(tmp_path / "mixed")]) == 1
    assert vrbot(["prepare", str(tmp_path / "clean"), "--out", str(tmp_path / "corpus")]) == 0
    assert Corpus.open(tmp_path / "corpus").split("valid").session_ids == ("valid-000001",)


def test_the_new_ids_begin_as_asked_for(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "clean.jsonl"
    assert vrbot(["deidentify", str(source), "--out", str(out), "--prefix", "chat"]) == 0
    assert [session.id for session in read_sessions(out)] == ["chat-000001", "chat-000002"]


def test_ids_stay_where_that_is_asked_for(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "clean.jsonl"
    assert vrbot(["deidentify", str(source), "--out", str(out), "--keep-ids"]) == 0
    assert [session.id for session in read_sessions(out)] == [SECRETS[0], "plain"]


def test_what_cannot_be_done_is_said_in_one_line_and_nothing_is_changed(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(code: int, *arguments: str) -> str:
        assert vrbot(["deidentify", *arguments]) == code
        seen = capsys.readouterr().err
        assert seen.count("\n") == 1
        return seen

    before = source.read_bytes()
    assert "one file of it" in refused(2, str(tmp_path), "--out", str(tmp_path / "out.jsonl"))
    assert "is the source" in refused(2, str(source), "--out", str(source))
    assert "is the source" in refused(2, str(source), "--out", str(source), "--overwrite")
    assert source.read_bytes() == before
    there = tmp_path / "there.jsonl"
    there.write_text("kept\n", "utf-8")
    assert "--overwrite" in refused(2, str(source), "--out", str(there))
    assert there.read_text("utf-8") == "kept\n"
    assert "is a folder" in refused(2, str(source), "--out", str(tmp_path), "--overwrite")
    assert f"{there} is a file" in refused(2, str(source), "--out", str(there / "out.jsonl"))
    broken = tmp_path / "broken.jsonl"
    broken.write_text(source.read_text("utf-8") + "{\n", "utf-8")
    assert "broken.jsonl:3" in refused(1, str(broken), "--out", str(tmp_path / "out.jsonl"))
    assert not (tmp_path / "out.jsonl").exists()


def test_a_key_that_no_dialogue_has_is_named_and_nothing_is_written(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "clean.jsonl"
    keys = ("--keep", "department", "--keep", "departement", "--keep", "ward")
    assert vrbot(["deidentify", str(source), "--out", str(out), *keys]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert "raw.jsonl has the key 'departement', 'ward'" in complaint
    assert "department, name" in complaint
    write_sessions(tmp_path / "plain.jsonl", [Session("plain", TURNS)])
    assert vrbot(["deidentify", str(tmp_path / "plain.jsonl"), "--out", str(out), "--keep", "ward"]) == 2
    assert "leave out --keep" in capsys.readouterr().err
    assert not out.exists()


def test_a_file_without_dialogues_is_refused_and_nothing_is_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").write_text("\n", "utf-8")
    (tmp_path / "clean.jsonl").write_text("former\n", "utf-8")
    command = ["deidentify", str(tmp_path / "empty.jsonl"), "--out", str(tmp_path / "clean.jsonl"), "--overwrite"]
    for keep in ([], ["--keep", "department"]):
        assert vrbot([*command, *keep]) == 1
        complaint = capsys.readouterr().err
        assert complaint.count("\n") == 1
        assert "empty.jsonl" in complaint
        assert "holds no dialogues" in complaint
    assert (tmp_path / "clean.jsonl").read_text("utf-8") == "former\n"
