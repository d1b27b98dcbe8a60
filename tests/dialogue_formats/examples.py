"""Invented dialogues, and the same written down in every format that is read."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vrbot.dialogue.formats import ImportReport, read_sessions
from vrbot.dialogue.session import Action, Session, Turn
from vrbot.errors import DataError

CANONICAL = [
    Session(
        "one",
        (
            Turn("我咳嗽三天了", "发烧吗？", ("咳嗽",), Action("ask_symptoms", ("发热",))),
            Turn("不发烧", "多喝水", ("咳嗽", "发热"), Action("chitchat", ())),
        ),
        {"department": "呼吸科", "weight": 1.5, "tags": [1, None, {"deep": ["x"]}]},
    ),
    Session("two", (Turn("", "How may I help?"), Turn("My knee hurts.", "", (), Action(None, None)))),
    Session("three", (Turn("头疼", "吃布洛芬", None, Action("prescribe_medicine", None)),)),
    Session("four", (Turn("胃痛", "可能是胃炎", ("胃痛",), Action(None, ("胃炎",))),)),
]


def release_line(turn: int, role: str, sentence: str, kind: str | None = None, *keywords: str) -> dict[str, Any]:
    """One utterance of the authors' release."""
    return {
        "turn": turn,
        "sentence": sentence,
        "role": role,
        "tokens": list(sentence),
        "type": kind,
        "keywords": list(keywords),
    }


RELEASE: list[dict[str, Any]] = [
    {
        "dialogues": [
            release_line(0, "patient", "我咳嗽", None, "咳嗽"),
            release_line(1, "doctor", "发烧吗", "ask_symptoms", "发热"),
            release_line(2, "patient", "没有"),
            release_line(3, "doctor", "吃糖浆", "prescribe", "糖浆"),
        ]
    },
    {"dialogues": [release_line(0, "patient", "牙疼")]},
]


def meddg_line(speaker: str, sentence: str, **entities: list[str]) -> dict[str, Any]:
    """One MedDG utterance; the entity types not given are empty."""
    empty: dict[str, Any] = {kind: [] for kind in ("Symptom", "Medicine", "Test", "Attribute", "Disease")}
    return {"id": speaker, "Sentence": sentence, **empty, **entities}


MEDDG = [
    [
        meddg_line("Patients", "肚子疼还拉稀", Symptom=["腹泻", "腹痛"]),
        meddg_line("Doctor", "有胃炎吗？疼多久了", Disease=["胃炎"], Attribute=["时长"]),
        meddg_line("Patients", "两天"),
        meddg_line("Patients", "也恶心", Symptom=["恶心"]),
        meddg_line("Doctor", "做胃镜", Test=["胃镜"]),
    ],
    [meddg_line("Doctor", "你好"), meddg_line("Patients", "胃胀", Symptom=["胃胀"])],
]

RAW = """
id=1
https://clinic.example/1

Description
疾病： 咳嗽
病情描述： 咳了三天
夜里更重

Dialogue
医生：
有痰吗？
病人：
医生：您好
有一点
病人：
白色的

Diagnosis and suggestions
考虑感冒

id=2
https://clinic.example/2

Description
疾病： 头晕

Dialogue
病人：
昨天开始

Description
复诊

Dialogue
医生：
量血压
"""

PROCESSED = [
    ["病人：我头晕", "医生：多久了？", "医生：血压高吗？", "病人：两天"],
    ["医生：你好", "病人：您好", "医生：请讲"],
]


def write_canonical(path: Path) -> None:
    """CANONICAL with plain json, not with the writer under test."""
    lines = []
    for session in CANONICAL:
        turns = []
        for turn in session.turns:
            action = turn.action and {"category": turn.action.category, "keywords": turn.action.keywords}
            turns.append({"patient": turn.patient, "physician": turn.physician, "state": turn.state, "action": action})
        lines.append(json.dumps({"id": session.id, **session.extra, "turns": turns}, ensure_ascii=False))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_release(path: Path, documents: list[dict[str, Any]] | None = None) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for index, document in enumerate(RELEASE if documents is None else documents):
            name = zipfile.ZipInfo(f"{index}.json", (2024, 1, 1, 0, 0, 0))  # the same bytes in every run
            archive.writestr(name, json.dumps(document, ensure_ascii=False), zipfile.ZIP_DEFLATED)


def write_meddg(path: Path, dialogues: Any = MEDDG, protocol: int = 4) -> None:
    path.write_bytes(pickle.dumps(dialogues, protocol=protocol))


def write_raw(path: Path) -> None:
    path.write_text(RAW, encoding="utf-8")


def write_processed(path: Path) -> None:
    path.write_text(json.dumps(PROCESSED, ensure_ascii=False, indent=1), encoding="utf-8")


EXAMPLES: dict[str, tuple[str, str, Callable[[Path], None], int]] = {
    "canonical": ("canonical", "train.jsonl", write_canonical, len(CANONICAL)),
    "release": ("release", "clinic_train.zip", write_release, len(RELEASE)),
    "meddg": ("meddg", "new_train.pk", write_meddg, len(MEDDG)),
    "raw": ("meddialog", "train.txt", write_raw, 2),
    "processed": ("meddialog", "train_data.json", write_processed, len(PROCESSED)),
}
"""Kind of file -> format, file name, how to write it, number of dialogues."""


def read_all(path: Path, format: str = "canonical") -> tuple[list[Session], ImportReport]:
    """All sessions of a good file, with the report."""
    report = ImportReport()
    return list(read_sessions(path, format, report=report)), report


def complaints_of(path: Path, format: str = "canonical") -> tuple[list[DataError], ImportReport]:
    """Everything that is wrong with the dialogues of a file, read to its end, with the report."""
    errors: list[DataError] = []
    report = ImportReport()
    for _ in read_sessions(path, format, on_bad=errors.append, report=report):
        pass
    return errors, report


def texts_of(session: Session) -> list[str]:
    """Everything said, in order, without the empty places."""
    return [text for turn in session.turns for text in (turn.patient, turn.physician) if text]
