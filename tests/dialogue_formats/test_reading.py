"""Laws that hold for every format: skipping, duplicate names, splits, guessing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.dialogue_formats.examples import EXAMPLES, RELEASE, read_all, write_canonical, write_meddg, write_release
from vrbot.dialogue.formats import ImportReport, Repair, guess_format, read_sessions, split_files, write_sessions
from vrbot.errors import DataError, UsageError


def example(kind: str, folder: Path) -> tuple[Path, str]:
    format, name, write, _ = EXAMPLES[kind]
    write(folder / name)
    return folder / name, format


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_format_is_guessed_and_becomes_the_canonical_one_without_loss(tmp_path: Path, kind: str) -> None:
    path, format = example(kind, tmp_path)
    assert guess_format(path) == format
    sessions, report = read_all(path, format)
    assert (len(sessions), report.sessions) == (EXAMPLES[kind][3], EXAMPLES[kind][3])
    assert report.turns == sum(len(session.turns) for session in sessions)
    write_sessions(tmp_path / "out.jsonl", sessions)
    assert read_all(tmp_path / "out.jsonl")[0] == sessions
    assert json.loads(json.dumps(report.as_dict()))["sessions"] == len(sessions)


def test_good_and_skipped_dialogues_are_all_there_are(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_canonical(path)
    good = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([good[0], "{", good[1], good[1], "5", good[2]]), encoding="utf-8")
    bad: list[DataError] = []
    report = ImportReport()
    sessions = list(read_sessions(path, on_bad=bad.append, report=report))
    assert [session.id for session in sessions] == ["one", "two", "three"]
    assert [error.line for error in bad] == [2, 4, 5]
    assert (report.sessions, report.skipped) == (3, 3)
    assert "'two'" in bad[1].problem


def test_without_a_taker_the_first_bad_dialogue_stops_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_canonical(path)
    path.write_text(path.read_text(encoding="utf-8") + "{\n", encoding="utf-8")
    reading = read_sessions(path)
    assert [next(reading).id for _ in range(4)] == ["one", "two", "three", "four"]
    with pytest.raises(DataError):
        next(reading)


def test_repairs_of_a_skipped_dialogue_are_not_counted(tmp_path: Path) -> None:
    lines = RELEASE[1]["dialogues"]
    write_release(tmp_path / "a.zip", [{"dialogues": [*lines, {**lines[0], "odd": 1}, 5]}, RELEASE[1]])
    report = ImportReport()
    assert len(list(read_sessions(tmp_path / "a.zip", "release", on_bad=lambda error: None, report=report))) == 1
    assert report.repairs == {Repair.NO_LAST_REPLY: 1}


def test_a_file_that_is_not_of_the_format_stops_the_reading_even_with_a_taker(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_text("no archive")
    with pytest.raises(DataError):
        list(read_sessions(tmp_path / "a.zip", "release", on_bad=lambda error: None))


def test_an_unknown_format_is_wrong_use_at_once() -> None:
    with pytest.raises(UsageError, match=r"'xml'.*canonical"):
        read_sessions("a.jsonl", "xml")


@pytest.mark.parametrize(
    ("format", "names"),
    [
        ("canonical", ["train.jsonl", "valid.jsonl", "test.jsonl"]),
        ("canonical", ["clinic-train.jsonl", "clinic-dev.jsonl", "clinic-test.jsonl"]),
        ("release", ["kamed_train.zip", "kamed_valid.zip", "kamed_test.zip"]),
        ("meddg", ["new_train.pk", "new_dev.pk", "new_test.pk"]),
        ("meddialog", ["train_data.json", "validate_data.json", "test_data.json"]),
        ("meddialog", ["Train.txt", "Val.txt", "Test.txt"]),
    ],
)
def test_splits_are_found_and_their_format_guessed_by_their_names(
    tmp_path: Path, format: str, names: list[str]
) -> None:
    for name in [*names, "README.md", "entities.csv", ".train.jsonl.swp"]:
        (tmp_path / name).touch()
    assert split_files(tmp_path, format) == dict(
        zip(("train", "valid", "test"), (tmp_path / name for name in names), strict=True)
    )
    assert guess_format(tmp_path) == format


def test_unpacked_splits_of_the_release_are_found_where_there_is_no_archive(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        (tmp_path / f"kamed_{split}").mkdir()
        (tmp_path / f"kamed_{split}" / "0.json").write_text(json.dumps(RELEASE[0]))
    shutil.make_archive(str(tmp_path / "kamed_test"), "zip", tmp_path / "kamed_test")
    found = split_files(tmp_path, "release")
    assert [path.name for path in found.values()] == ["kamed_train", "kamed_valid", "kamed_test.zip"]
    assert all(len(read_all(path, "release")[0]) == 1 for path in found.values())
    assert guess_format(tmp_path) == guess_format(tmp_path / "kamed_train") == "release"


def test_what_is_missing_or_doubtful_in_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").touch()
    with pytest.raises(DataError, match=r"valid, test \(found: train\)"):
        split_files(tmp_path)
    (tmp_path / "old-train.jsonl").touch()
    with pytest.raises(DataError, match=r"'old-train.jsonl', 'train.jsonl'"):
        split_files(tmp_path)
    (tmp_path / "train.pk").touch()
    with pytest.raises(DataError, match="canonical or meddg"):
        guess_format(tmp_path)
    with pytest.raises(DataError, match="not a readable folder"):
        split_files(tmp_path / "nowhere")


def test_a_format_is_guessed_by_content_first_and_by_name_where_content_is_silent(tmp_path: Path) -> None:
    write_meddg(tmp_path / "a.bin")
    assert guess_format(tmp_path / "a.bin") == "meddg"
    write_meddg(tmp_path / "b.pk", protocol=0)
    assert guess_format(tmp_path / "b.pk") == "meddg"
    (tmp_path / "c.dat").write_bytes(b"\x00\x01")
    for doubtful in ("c.dat", "missing"):
        with pytest.raises(DataError):
            guess_format(tmp_path / doubtful)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="no file is named after a split"):
        guess_format(tmp_path / "folder")
