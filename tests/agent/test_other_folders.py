"""A folder of another kind than the one asked for is named as what it is, and never replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.conftest import MakeAgent
from tests.dialogue.invented import contents
from vrbot.cli.main import run as vrbot
from vrbot.dialogue.corpus import Corpus

TO_CORPUS = "not a corpus: give the folder that `vrbot prepare` wrote"
TO_RUN = "not a run: give the folder that `vrbot train` wrote"


@pytest.fixture(scope="module")
def saved(make_agent: MakeAgent, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    make_agent().save_pretrained(folder)
    return folder


def refusal(capsys: pytest.CaptureFixture[str], *command: str | Path) -> str:
    assert vrbot([str(word) for word in command]) == 2
    complaint = capsys.readouterr().err.splitlines()[-1]  # a hint on threads may stand before it
    return complaint.removeprefix("vrbot: error: ")


def test_a_run_or_a_saved_model_is_not_taken_for_a_corpus(
    run: Path, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, kind in ((run, "a run"), (saved, "a saved model")):
        said = f"{folder} is {kind}, {TO_CORPUS}"
        new = ("train", "--model", "vrbot", "--threads", "1", "--out", tmp_path / "new")
        assert refusal(capsys, *new, "--corpus", folder) == said
        assert refusal(capsys, "evaluate", run, "--corpus", folder) == said
        assert refusal(capsys, "evaluate", "--references", "--corpus", folder) == said
    assert list(tmp_path.iterdir()) == []


def test_a_saved_model_or_a_corpus_is_not_taken_for_a_run(
    saved: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, kind in ((saved, "a saved model"), (corpus.directory, "a corpus")):
        before = contents(folder)
        assert refusal(capsys, "train", "--out", folder, "--resume") == f"{folder} is {kind}, {TO_RUN}"
        new = ("train", "--model", "vrbot", "--threads", "1", "--corpus", corpus.directory, "--out", folder)
        assert refusal(capsys, *new) == f"{folder} is {kind}, not a run: give --out another folder"
        assert contents(folder) == before


def test_a_corpus_does_not_replace_a_run_or_a_saved_model(
    run: Path, saved: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    source = corpus.directory.parent / "source"
    for folder, kind in ((run, "a run"), (saved, "a saved model")):
        before = contents(folder)
        said = refusal(capsys, "prepare", source, "--out", folder, "--overwrite")
        assert said == f"{folder} is {kind}, not a prepared corpus and will not be replaced: choose another place"
        assert contents(folder) == before


def test_words_and_entities_may_be_taken_from_a_saved_model(saved: Path, corpus: Corpus, tmp_path: Path) -> None:
    source = corpus.directory.parent / "source"
    assert vrbot(["prepare", str(source), "--out", str(tmp_path / "like"), "--like", str(saved)]) == 0
    assert Corpus.open(tmp_path / "like").fingerprint == corpus.fingerprint


def test_what_is_neither_a_model_nor_a_run_and_a_corpus_that_is_gone_have_a_way_out(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    way_out = "is neither a saved model nor a run: give a folder that `vrbot train` or `vrbot export` wrote"
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert refusal(capsys, "export", folder, "--out", tmp_path / "out") == f"{folder} {way_out}"
    assert vrbot(["export", str(run), "--out", str(tmp_path / "out"), "--corpus", str(tmp_path / "nowhere")]) == 1
    assert "put it back, or say where it is now with --corpus" in capsys.readouterr().err
