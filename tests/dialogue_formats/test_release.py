"""Laws of reading the authors' release."""

from __future__ import annotations

import json
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.dialogue_formats.examples import RELEASE, complaints_of, read_all, release_line, write_release
from vrbot.dialogue.formats import Repair
from vrbot.dialogue.importers import release
from vrbot.dialogue.session import Action, Session, Turn
from vrbot.errors import DataError

DIALOGUE = json.dumps({"dialogues": [release_line(0, "patient", "p"), release_line(1, "doctor", "d")]})


def archive_of(path: Path, *members: tuple[str, str | bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", how) as archive:
        warnings.simplefilter("ignore")  # zipfile dislikes duplicate names, which is the point of one test
        for name, content in members:
            archive.writestr(name, content)
    return path


def complaint_about(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        read_all(path, "release")
    return caught.value


def test_actions_come_from_the_physician_and_states_are_unlabelled(tmp_path: Path) -> None:
    write_release(tmp_path / "clinic_train.zip")
    sessions, report = read_all(tmp_path / "clinic_train.zip", "release")
    assert sessions == [
        Session(
            "clinic_train/0",
            (
                Turn("我咳嗽", "发烧吗", None, Action("ask_symptoms", ("发热",))),
                Turn("没有", "吃糖浆", None, Action("prescribe_medicine", ("糖浆",))),
            ),
            {"patient_keywords": [["咳嗽"], []]},
        ),
        Session("clinic_train/1", (Turn("牙疼", ""),)),
    ]
    assert report.repairs == {Repair.NO_LAST_REPLY: 1}


def test_a_folder_of_unpacked_dialogues_reads_like_its_archive(tmp_path: Path) -> None:
    write_release(tmp_path / "clinic_train.zip")
    zipfile.ZipFile(tmp_path / "clinic_train.zip").extractall(tmp_path / "clinic_train")
    unpacked, _ = read_all(tmp_path / "clinic_train", "release")
    assert unpacked == read_all(tmp_path / "clinic_train.zip", "release")[0]
    (tmp_path / "empty").mkdir()
    assert "no .json" in complaint_about(tmp_path / "empty").problem


def test_a_missing_sentence_is_put_together_from_its_tokens(tmp_path: Path) -> None:
    line = release_line(0, "patient", "")
    line.update(sentence=None, tokens=["吃", "vitamin", "C", "片"], extra=1)
    write_release(tmp_path / "a.zip", [{"dialogues": [line], "id": 7}])
    (session,), report = read_all(tmp_path / "a.zip", "release")
    assert session.turns[0].patient == "吃vitamin C片"
    assert session.extra == {"source": {"id": 7}}
    assert report.repairs[Repair.TEXT_FROM_TOKENS] == report.repairs[Repair.UNUSED_FIELD] == 1


def test_unusual_labels_are_counted(tmp_path: Path) -> None:
    lines = [release_line(3, "patient", "p", "chitchat", "x", "x"), release_line(1, "doctor", "d") | {"keywords": None}]
    write_release(tmp_path / "a.zip", [{"dialogues": lines}])
    (session,), report = read_all(tmp_path / "a.zip", "release")
    assert session.turns[0].action is None
    assert set(report.repairs) == {
        Repair.PATIENT_CATEGORY,
        Repair.REPEATED_LABEL,
        Repair.MISSING_LABELS,
        Repair.TURN_NUMBERS_DISORDERED,
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"role": "nurse"}, "role"),
        ({"role": None}, "role"),
        ({"type": "prescribed"}, "type"),
        ({"type": ["diagnosis"]}, "type"),
        ({"keywords": "fever"}, "keywords"),
        ({"keywords": [1]}, "keywords"),
        ({"sentence": 1}, "sentence"),
        ({"sentence": None, "tokens": None}, "sentence"),
        ({"sentence": None, "tokens": "text"}, "tokens"),
    ],
)
def test_a_wrong_value_is_named_with_its_member_and_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    lines = [release_line(0, "patient", "p"), release_line(1, "doctor", "d") | change]
    write_release(tmp_path / "a.zip", [*RELEASE, {"dialogues": lines}])
    error = complaint_about(tmp_path / "a.zip")
    assert error.field == f"member '2.json'.dialogues[1].{field}"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"dialogues": []}', '{"dialogues": [5]}', '{"dialogues": 5}', b"\xff"]
)
def test_a_member_without_a_dialogue_is_named(tmp_path: Path, content: str | bytes) -> None:
    path = archive_of(tmp_path / "a.zip", ("good.json", DIALOGUE), ("bad.json", content))
    assert "bad.json" in complaint_about(path).field


def test_leftovers_of_operating_systems_are_passed_over_and_counted(tmp_path: Path) -> None:
    members: list[tuple[str, str | bytes]]
    members = [("d/", ""), ("d/1.json", DIALOGUE), ("__MACOSX/d/._1.json", b"\0"), ("d/.DS_Store", b"\0")]
    (session,), report = read_all(archive_of(tmp_path / "a.zip", *members), "release")
    assert session.id == "a/d/1"
    assert report.repairs[Repair.SYSTEM_MEMBER] == 2


def test_members_that_are_no_dialogues_or_stand_twice_are_named_and_can_be_skipped(tmp_path: Path) -> None:
    members = [("1.json", DIALOGUE), ("1.json", DIALOGUE), ("readme.md", "hello"), ("../2.json", DIALOGUE)]
    errors, report = complaints_of(archive_of(tmp_path / "a.zip", *members), "release")
    assert ["twice" in error.problem or "not a .json" in error.problem for error in errors] == [True, True]
    assert (report.sessions, report.skipped) == (2, 2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.zip"]


def test_an_encrypted_member_is_named(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "a.zip", ("1.json", DIALOGUE))
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        struct.pack_into("<H", data, data.index(signature) + offset, 1)
    path.write_bytes(data)
    assert "encrypted" in complaint_about(path).problem


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unusual_compression_is_refused(tmp_path: Path, how: int) -> None:
    assert "compression" in complaint_about(archive_of(tmp_path / "a.zip", ("1.json", DIALOGUE), how=how)).problem


def test_a_member_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    bomb = b" " * (release.MAX_MEMBER_BYTES + 1)
    assert "MiB" in complaint_about(archive_of(tmp_path / "a.zip", ("1.json", bomb))).problem


def test_many_members_that_unpack_to_too_much_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "MAX_MEMBER_BYTES", 2**16)
    bombs = [(f"{index}.json", DIALOGUE + " " * 60_000) for index in range(20)]
    assert "unfolds" in complaint_about(archive_of(tmp_path / "a.zip", *bombs)).problem


def test_a_damaged_member_is_skipped_and_the_rest_is_read(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "a.zip", ("1.json", DIALOGUE), ("2.json", DIALOGUE), how=zipfile.ZIP_STORED)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"doctor", b"dictor", 1))
    errors, report = complaints_of(path, "release")
    assert ["damaged" in error.problem for error in errors] == [True]
    assert report.sessions == 1


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_a_truncated_archive_is_a_data_error(tmp_path: Path, cut: int) -> None:
    path = archive_of(tmp_path / "a.zip", ("1.json", DIALOGUE))
    path.write_bytes(path.read_bytes()[:cut])
    assert "zip" in complaint_about(path).problem
