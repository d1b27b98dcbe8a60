"""`vrbot humaneval`: from stored replies to sheets, and from filled sheets to tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.evaluation.invented import NAMES
from tests.evaluation.invented_study import SYSTEMS, invented_field, invented_session, random_judgements
from vrbot.cli.main import run
from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.evaluation.human_sheets import write_sheets
from vrbot.evaluation.human_study import read_study
from vrbot.evaluation.reply_files import write_replies


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = []
    for system in invented_field(8).systems:
        paths.append(tmp_path / system.source.file)
        write_replies(paths[-1], system.turns, NAMES)
    return [str(path) for path in paths]


def draw(files: list[str], out: Path, *options: str) -> int:
    return run(["humaneval", "draw", *files, "--out", str(out), "--dialogues", "8", *options])


def fill(study_folder: Path, seed: int = 1, share: float = 0.9) -> None:
    study = read_study(study_folder / "study.json")
    write_sheets(study_folder / "sheets", study, random_judgements(study, seed, share))


def test_sheets_are_drawn_filled_and_scored(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert draw(files, tmp_path / "study") == 0
    seen = capsys.readouterr()
    assert "8 turns of 8 dialogues, 24 different replies of 3 systems" in seen.out
    assert "without --corpus" in seen.err
    fill(tmp_path / "study")
    assert run(["humaneval", "score", str(tmp_path / "study"), "--json", str(tmp_path / "human.json")]) == 0
    said = capsys.readouterr().out
    for words in ("Human ratings, 1 to 5", "human MEP", "Cohen's kappa", "p Wilcoxon corrected", *SYSTEMS):
        assert words in said
    found = json.loads((tmp_path / "human.json").read_text("utf-8"))
    assert set(found) == {"ratings", "explanations", "contests", "agreement", "progress"}
    assert set(found["ratings"]) == set(SYSTEMS)
    assert all(one["kappa"] is not None and one["quadratic_kappa"] is not None for one in found["agreement"])


@pytest.mark.parametrize(("form", "words"), [("markdown", "| system |"), ("latex", r"\toprule"), ("csv", "system,Flu")])
def test_tables_are_written_in_every_form(
    form: str, words: str, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert draw(files[:2], tmp_path / "study", "--raters", "2") == 0
    fill(tmp_path / "study")
    capsys.readouterr()
    assert run(["humaneval", "score", str(tmp_path / "study"), "--format", form]) == 0
    assert words in capsys.readouterr().out


def test_the_same_call_writes_the_same_bytes(files: list[str], tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert draw(files, tmp_path / name, "--seed", "6", "--raters", "4", "--judges", "2") == 0
    one, two = (sorted(path for path in (tmp_path / name).rglob("*") if path.is_file()) for name in ("one", "two"))
    assert len(one) == 15
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_with_the_corpus_raters_see_the_conversation(files: list[str], tmp_path: Path) -> None:
    write_sessions(tmp_path / "chats.jsonl", [invented_session(number) for number in range(8)])
    prepare(tmp_path / "chats.jsonl", tmp_path / "corpus", PreparationSettings())
    assert draw(files, tmp_path / "study", "--corpus", str(tmp_path / "corpus")) == 0
    for item in read_study(tmp_path / "study" / "study.json").items:
        assert item.context[-1].speaker == "patient"
        assert item.context[-1].text.startswith("患者说")


def test_the_key_may_be_kept_elsewhere(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert draw(files, tmp_path / "study") == 0
    fill(tmp_path / "study")
    (tmp_path / "study" / "key.json").rename(tmp_path / "safe.json")
    capsys.readouterr()
    assert run(["humaneval", "score", str(tmp_path / "study")]) == 1
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "key.json: file: cannot be read" in seen.err
    assert run(["humaneval", "score", str(tmp_path / "study"), "--key", str(tmp_path / "safe.json")]) == 0


def test_what_cannot_be_done_is_refused_in_one_line(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shorter = tmp_path / "shorter.jsonl"
    turns = [replace(turn, reply="") for turn in invented_field(8).systems[0].turns[:-1]]
    write_replies(shorter, turns, NAMES)
    assert draw([files[0], str(shorter)], tmp_path / "study") == 2
    assert draw(files[:1], tmp_path / "study") == 2
    assert not (tmp_path / "study").exists()
    assert draw(files, tmp_path / "study") == 0
    capsys.readouterr()
    assert draw(files, tmp_path / "study") == 2
    assert run(["humaneval", "score", str(tmp_path / "study")]) == 2
    seen = capsys.readouterr().err.splitlines()
    assert len(seen) == 2
    assert "may hold ratings" in seen[0]
    assert "nothing is filled in yet" in seen[1]


@pytest.mark.parametrize("verb", ["draw", "score"])
def test_both_verbs_explain_themselves_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["humaneval", verb, "--help"]) == 0
    assert f"vrbot humaneval {verb}" in capsys.readouterr().out.split("Example", 1)[1]
