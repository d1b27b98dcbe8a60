"""Laws of reading MedDialog, raw and processed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dialogue_formats.examples import RAW, complaints_of, read_all, texts_of, write_processed, write_raw
from vrbot.dialogue.formats import Repair
from vrbot.dialogue.session import Session, Turn
from vrbot.errors import DataError


def raw_file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def complaint_about(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        read_all(path, "meddialog")
    return caught.value


def test_a_block_is_a_session_and_its_descriptions_are_the_patients_words(tmp_path: Path) -> None:
    write_raw(tmp_path / "train.txt")
    sessions, report = read_all(tmp_path / "train.txt", "meddialog")
    assert sessions == [
        Session(
            "train-1",
            (Turn("疾病： 咳嗽 病情描述： 咳了三天 夜里更重", "有痰吗？"), Turn("医生：您好 有一点 白色的", "")),
            {"source": "https://clinic.example/1", "diagnosis_and_suggestions": ["考虑感冒"]},
        ),
        Session(
            "train-2",
            (Turn("疾病： 头晕 昨天开始 复诊", "量血压"),),
            {"source": "https://clinic.example/2"},
        ),
    ]
    assert report.repairs == {
        Repair.DESCRIPTION_AS_UTTERANCE: 3,
        Repair.MERGED_UTTERANCE: 3,
        Repair.NO_LAST_REPLY: 1,
    }


def test_no_line_of_a_block_is_lost(tmp_path: Path) -> None:
    sessions, _ = read_all(raw_file(tmp_path / "a.txt", RAW), "meddialog")
    kept = " ".join(text for session in sessions for text in [*texts_of(session), json.dumps(session.extra)])
    kept = kept.encode().decode("unicode_escape", "ignore") + kept
    structure = ("id=", "Description", "Dialogue", "Diagnosis")
    alone = ("医生：", "病人：")
    for line in RAW.split("\n"):
        assert line.startswith(structure) or line in alone or line in kept, line


def test_english_blocks_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    text = "\ufeffid=7\r\nDescription\r\nCough\r\n\r\nDialogue\r\nPatient:\r\nI cough\r\nDoctor:\r\nRest\r\n"
    (session,), _ = read_all(raw_file(tmp_path / "a.txt", text), "meddialog")
    assert session == Session("a-7", (Turn("Cough I cough", "Rest"),))


def test_words_before_the_first_speaker_are_the_patients_and_counted(tmp_path: Path) -> None:
    text = "id=1\nDialogue\n头疼\n很久了\n医生：\n多久？\n病人：\n"
    (session,), report = read_all(raw_file(tmp_path / "a.txt", text), "meddialog")
    assert session.turns == (Turn("头疼 很久了", "多久？"),)
    assert report.repairs == {Repair.TEXT_WITHOUT_SPEAKER: 2, Repair.EMPTY_UTTERANCE: 1}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("hello\nid=1\n" + RAW, 1),
        ("\n\nno blocks at all", 3),
        ("id=1\nDialogue\n医生：你好", 1),
        ("id=1\nhttps://clinic.example\n", 1),
        (RAW + "\nid=2\nDialogue\n医生：\n你好\n", RAW.count("\n") + 2),
    ],
)
def test_a_block_that_is_no_dialogue_is_named_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    assert complaint_about(raw_file(tmp_path / "a.txt", text)).line == line


def test_a_bad_block_is_skipped_and_the_others_are_read(tmp_path: Path) -> None:
    errors, report = complaints_of(raw_file(tmp_path / "a.txt", "stray\nid=9\nDialogue\n无人\n" + RAW), "meddialog")
    assert [error.line for error in errors] == [1, 2]
    assert report.sessions == 2


def test_processed_dialogues_are_merged_into_turns(tmp_path: Path) -> None:
    write_processed(tmp_path / "train_data.json")
    sessions, report = read_all(tmp_path / "train_data.json", "meddialog")
    assert [session.id for session in sessions] == ["train_data-0", "train_data-1"]
    assert sessions[0].turns == (Turn("我头晕", "多久了？ 血压高吗？"), Turn("两天", ""))
    assert sessions[1].turns == (Turn("", "你好"), Turn("您好", "请讲"))
    assert report.repairs == {Repair.MERGED_UTTERANCE: 1, Repair.NO_LAST_REPLY: 1, Repair.PHYSICIAN_FIRST: 1}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": 1}, "file"),
        ([["病人：x"], "病人：x"], "dialogue 1"),
        ([["病人：x"], []], "dialogue 1"),
        ([["病人："]], "dialogue 0"),
        ([["病人：x", "你好"]], "dialogue 0[1]"),
        ([["护士：x"]], "dialogue 0[0]"),
        ([[None]], "dialogue 0[0]"),
    ],
)
def test_a_wrong_value_is_named_with_its_dialogue(tmp_path: Path, value: Any, field: str) -> None:
    error = complaint_about(raw_file(tmp_path / "a.json", json.dumps(value, ensure_ascii=False)))
    assert error.field == field


def test_broken_json_is_named_with_its_line(tmp_path: Path) -> None:
    assert complaint_about(raw_file(tmp_path / "a.json", '[\n["病人：x"],\n[}\n]')).line == 3
