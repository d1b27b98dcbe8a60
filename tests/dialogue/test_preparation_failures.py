"""Preparing a corpus when something is wrong: one clear line, and nothing half-written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.dialogue.invented import SIZES, contents
from vrbot.cli.main import run
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare, split_of
from vrbot.dialogue.session import Session, Turn
from vrbot.errors import DataError, UsageError


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_bad_input_is_one_line_and_leaves_nothing_behind(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    shutil.copytree(source, folder)
    (folder / "valid.jsonl").write_text('{"id": "x", "turns": 3}\n', encoding="utf-8")
    assert run(["prepare", str(folder), "--out", str(tmp_path / "out")]) == 1
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert "valid.jsonl:1: turns" in complaint
    assert leftovers(tmp_path) == ["in"]
    assert run(["prepare", str(folder), "--out", str(tmp_path / "out"), "--skip-bad"]) == 0
    assert Corpus.open(tmp_path / "out").split("valid").num_sessions == 0
    assert "skipped dialogues: 1" in capsys.readouterr().out


def test_an_id_may_stand_in_one_split_only(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    shutil.copytree(source, folder)
    train, test = folder / "train.jsonl", folder / "test.jsonl"
    test.write_text(test.read_text("utf-8") + train.read_text("utf-8").splitlines()[3] + "\n", "utf-8")
    assert run(["prepare", str(folder), "--out", str(out)]) == 1
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert f"{test}:8: id: 'train-3' names a dialogue of {train} too" in complaint
    assert "vrbot deidentify --prefix" in complaint
    assert leftovers(tmp_path) == ["in"]
    assert run(["prepare", str(folder), "--out", str(out), "--skip-bad"]) == 0
    assert {name: Corpus.open(out).split(name).num_sessions for name in SIZES} == SIZES


@pytest.mark.parametrize("options", [[], ["--minimum-mentions", "1"]])
def test_a_training_file_without_dialogues_is_refused_and_leaves_nothing_behind(
    source: Path, tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, train = tmp_path / "in", tmp_path / "in" / "train.jsonl"
    shutil.copytree(source, folder)
    command = ["prepare", str(folder), "--out", str(tmp_path / "out"), *options]
    for content, said in (
        ("", "holds no dialogues: "),
        ("3\n{}\n", "holds no dialogues (2 of the source skipped): "),
    ):
        train.write_text(content, encoding="utf-8")
        assert run([*command, "--skip-bad"]) == 1
        assert f"{train}: {said}" in capsys.readouterr().err.splitlines()[-1]
        assert leftovers(tmp_path) == ["in"]


def test_one_file_of_which_nothing_falls_into_training_is_refused_unless_words_come_from_a_corpus(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "all.jsonl", tmp_path / "out"
    name = next(f"d-{number}" for number in range(1000) if split_of(f"d-{number}") == "test")
    write_sessions(file, [Session(name, (Turn("你好", "好"),))])
    assert run(["prepare", str(file), "--out", str(out)]) == 1
    assert f"{file}: holds no dialogues for training: add more, or give a folder" in capsys.readouterr().err
    prepare(source, tmp_path / "corpus")
    assert run(["prepare", str(file), "--out", str(out), "--like", str(tmp_path / "corpus")]) == 0
    assert Corpus.open(out).split("test").num_sessions == 1
    file.write_text("", encoding="utf-8")
    assert run(["prepare", str(file), "--out", str(tmp_path / "none"), "--like", str(out)]) == 1
    assert f"{file}: holds no dialogues: " in capsys.readouterr().err
    assert leftovers(tmp_path) == ["all.jsonl", "corpus", "out"]


def test_names_in_labels_that_are_no_entity_are_reported_with_a_way_out(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, first = tmp_path / "in", tmp_path / "first"
    shutil.copytree(source, folder)
    turns = (Turn("你好", "好", ("怪病", "疯病")), Turn("怪", "好", ("怪病",)))
    write_sessions(folder / "train.jsonl", [Session("one", turns)])
    for split in ("valid", "test"):
        write_sessions(folder / f"{split}.jsonl", [])
    said = (
        "unlinked labels: 3 times a label uses one of 2 names that are no entity, most often 怪病 (2), 疯病 (1): "
        "they are left out of their labels: name them with --entities or --alias"
    )
    assert run(["prepare", str(folder), "--out", str(first)]) == 0
    assert said in capsys.readouterr().out.splitlines()
    assert run(["prepare", str(folder), "--out", str(tmp_path / "second"), "--like", str(first)]) == 0
    assert f"{said} when {first} is prepared" in capsys.readouterr().out.splitlines()


def test_a_failure_while_writing_leaves_nothing_behind(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    prepare(source, tmp_path / "corpus")
    before = contents(tmp_path / "corpus")
    monkeypatch.setattr("vrbot.dialogue.preparation.write_manifest", fail)
    for out in ("corpus", "other"):
        with pytest.raises(OSError, match="disk full"):
            prepare(source, tmp_path / out, overwrite=True)
    assert leftovers(tmp_path) == ["corpus"]
    assert contents(tmp_path / "corpus") == before


def test_an_existing_place_is_kept_unless_told_and_only_a_corpus_is_ever_replaced(source: Path, tmp_path: Path) -> None:
    prepare(source, tmp_path / "corpus")
    with pytest.raises(UsageError, match="--overwrite"):
        prepare(source, tmp_path / "corpus")
    report = prepare(source, tmp_path / "corpus", PreparationSettings(segmenter="spaces"), overwrite=True)
    assert Corpus.open(tmp_path / "corpus").fingerprint == report.fingerprint
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageError, match="not a prepared corpus"):
        prepare(source, precious, overwrite=True)
    assert leftovers(tmp_path) == ["corpus", "precious"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--segmenter", "knife"], 2, "unknown segmenter"),
        (["--segmenter", "pkuseg"], 2, "--segmenter-model"),
        (["--workers", "0"], 2, "at least one worker"),
        (["--workers", "2", "--dask", "tcp://127.0.0.1:9"], 2, "choose one"),
        (["--vocabulary-size", "3"], 2, "use at least"),
        (["--format", "parchment"], 2, "unknown format"),
        (["--graph", "nowhere.csv"], 1, "nowhere.csv"),
        (["--like", "nowhere"], 1, "nowhere"),
        (["--trust-aliases"], 2, "no aliases to trust"),
    ],
)
def test_wrong_use_and_missing_files_are_one_line(
    source: Path, tmp_path: Path, options: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["prepare", str(source), "--out", str(tmp_path / "out"), *options]) == code
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert words in complaint
    assert leftovers(tmp_path) == []


def test_a_source_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        prepare(tmp_path / "nowhere", tmp_path / "out")


def test_the_command_writes_its_report_as_json(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    assert run(["prepare", str(source), "--out", str(tmp_path / "out"), "--json", str(report)]) == 0
    content = json.loads(report.read_text(encoding="utf-8"))
    assert {"graph", "dialogues", "turns", "vocabulary", "coverage"} <= content.keys()
    assert content["dialogues"] == sum(SIZES.values())
    assert capsys.readouterr().out.startswith("split")
