"""`vrbot train`: what it asks for, what it says, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from benchmarks.kill_resume import digest_of

from tests.training.conftest import Train
from tests.training.fake import FakeModel
from tests.training.test_distributed import ROOT, settings
from vrbot.cli import train as train_command
from vrbot.cli.main import run
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.supervision import read_selection
from vrbot.model.contract import BatchLoss, Moment

OPTIONS = ["--state-labels", "0.5", "--action-labels", "0.5", "--seed", "3", "--threads", "1"]


@pytest.fixture(autouse=True)
def _fake_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_command, "MODELS", "tests.training.command:build")
    monkeypatch.setattr(train_command, "VALIDATION", "tests.training.command:fake_validation")
    monkeypatch.setattr(train_command, "CHOICE", "tests.training.command:fake_choice")
    monkeypatch.setattr(train_command, "MEASURE", "micro_f1")


@pytest.fixture(scope="module")
def finished_run(train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(folder)
    return folder


def new_run(corpus: Path, out: Path, model: str = "fake") -> list[str]:
    return ["train", "--model", model, "--corpus", str(corpus), "--out", str(out), *OPTIONS, *settings()]


def test_a_run_says_what_it_is_in_its_files(
    corpus_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], alone: dict[str, str]
) -> None:
    assert run(new_run(corpus_path, tmp_path / "run")) == 0
    said = capsys.readouterr()
    assert "is finished after step 18" in said.out
    assert "(best so far)" in said.err
    description = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert {key: description[key] for key in ("model", "seed", "threads")} == {"model": "fake", "seed": 3, "threads": 1}
    assert description["environment"]["version"]
    content = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text("utf-8"))
    assert content["training"]["max_epochs"] == 3
    assert len(read_selection(tmp_path / "run" / "labels.json").state) == 15
    ours = {**digest_of(tmp_path / "run"), "names": alone["names"]}
    assert ours == alone


def test_a_model_that_lives_on_labels_is_refused_where_there_are_none(
    corpus_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.training.fake.FakeModel.needed_labels", ("state", "keywords"), raising=False)
    arguments = new_run(corpus_path, tmp_path / "run")
    without = ["0" if value == "0.5" else value for value in arguments]
    assert run(without) == 2
    assert "learns only from turns whose state and keywords are labelled" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert run(arguments) == 0


def test_a_model_that_lives_on_labels_sees_only_dialogues_that_have_them_in_as_many_updates(
    corpus_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, ...]] = []
    learn = FakeModel.loss

    def watched(model: FakeModel, batch: SessionBatch, moment: Moment) -> BatchLoss:
        seen.extend([batch.session_ids] if model.training else [])
        return learn(model, batch, moment)

    monkeypatch.setattr(FakeModel, "loss", watched)
    for needed in ((), ("state", "keywords")):
        monkeypatch.setattr(FakeModel, "needed_labels", needed, raising=False)
        seen.clear()
        out = tmp_path / "-".join(("run", *needed))
        assert run(new_run(corpus_path, out)) == 0
        kept = read_selection(out / "labels.json")
        labelled = set(kept.state) & set(kept.keywords)
        met = {name for names in seen for name in names}
        assert met
        assert met <= labelled if needed else met > labelled
        assert "is finished after step 18" in capsys.readouterr().out


def test_interrupted_it_saves_says_how_to_go_on_and_ends_with_130(
    corpus_path: Path, tmp_path: Path, alone: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a run"
    command = [sys.executable, "-m", "tests.training.command", *new_run(corpus_path, out, "slow")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (out / "state").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "stopping after this step" in errors
    assert f"vrbot train --out '{out}' --resume" in errors
    assert run(["train", "--out", str(out), "--resume"]) == 0
    assert {**digest_of(out), "names": alone["names"]} == alone
    capsys.readouterr()
    assert run(["train", "--out", str(out), "--resume"]) == 0
    assert "was finished before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (["--seed", "4"], "seed is 3, not 4"),
        (["--set", "training.patience=9"], "training.patience is 20, not 9"),
        (["--state-labels", "0.1"], "state labels is 0.5, not 0.1"),
        (["--model", "other"], "model is fake, not other"),
        (["--recipe", "paper"], "network.embedding_size is 8, not 300"),
    ],
)
def test_a_resumed_run_refuses_what_it_was_not_started_with(
    finished_run: Path, capsys: pytest.CaptureFixture[str], changes: list[str], complaint: str
) -> None:
    assert run(["train", "--out", str(finished_run), "--resume", *changes]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "needs --model and --corpus"),
        (["--resume"], "is not a run"),
        (["--model", "fake", "--corpus", "nowhere"], "nowhere"),
        (["--model", "fake", "--corpus", "nowhere", "--recipe", "large"], "'large' is not a recipe"),
        (["--model", "fake", "--corpus", "nowhere", "--seed", "-1"], "seed must be 0 or more"),
    ],
)
def test_wrong_use_is_said_before_anything_is_written(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", "--out", str(tmp_path / "run"), *arguments]) in (1, 2)
    assert complaint in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_a_run_that_is_there_is_not_overwritten_but_resumed_by_the_same_words(
    corpus_path: Path, finished_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(new_run(corpus_path, finished_run)) == 2
    assert "add --resume" in capsys.readouterr().err
    assert run([*new_run(corpus_path, finished_run), "--resume"]) == 0
