"""Laws of `vrbot models` and `vrbot demo`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from vrbot.baselines.catalogue import CATALOGUE, ENDPOINTS, build_model
from vrbot.cli import demo
from vrbot.cli.main import run as run_command
from vrbot.config import recipe
from vrbot.dialogue.corpus import Corpus
from vrbot.model.learned import num_learned
from vrbot.training.description import RunPlan

TINY = {
    "network.embedding_size": 8,
    "network.hidden_size": 8,
    "policy.graph_size": 8,
    "decoding.beam": 1,
    "decoding.max_length": 8,
    "training.max_epochs": 1,
}


def test_every_system_is_listed_with_what_it_can_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed] == [*CATALOGUE, *ENDPOINTS]
    assert all(set(row) == {"name", "idea", "labels", "parameters"} for row in listed)
    listed, asked = listed[: len(CATALOGUE)], listed[len(CATALOGUE) :]
    assert all(row["parameters"] is None and row["labels"] == [] for row in asked)
    for row in listed:
        assert row["parameters"] is None if CATALOGUE[row["name"]].needs_encoder else row["parameters"] > 0
    assert {row["name"]: tuple(row["labels"]) for row in listed} == {name: e.labels for name, e in CATALOGUE.items()}


def test_parameters_are_counted_for_the_given_corpus(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["models", "--json", "--corpus", str(corpus.directory)]) == 0
    listed = {row["name"]: row["parameters"] for row in json.loads(capsys.readouterr().out)}
    model = build_model("vrbot", recipe("small"), corpus)
    assert listed["vrbot"] == num_learned(model)


@pytest.fixture
def tiny_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "DIALOGUES", 12)
    monkeypatch.setattr(demo, "SETTINGS", TINY)
    monkeypatch.setattr(sys, "stdin", io.StringIO())


@pytest.mark.usefixtures("tiny_demo")
@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_demo_answers_and_does_nothing_twice(
    language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["demo", "--no-serve", "--language", language, "--cache", str(tmp_path / "cache")]
    assert run_command(command) == 0
    first = capsys.readouterr()
    assert "simulating" in first.err
    assert "training; this takes some minutes" in first.err
    assert all(text in first.out for text in demo.SAMPLES[language])
    assert "micro_f1" in first.out
    assert run_command(command) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "training" not in second.err
    assert "simulating" not in second.err
    other = RunPlan("vrbot", tmp_path / "cache" / "corpus", recipe("small"), demo.SEED)
    assert not demo._is_run_of(tmp_path / "cache" / "run", other)


@pytest.mark.usefixtures("tiny_demo")
def test_the_demo_leaves_folders_of_others_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    assert run_command(["demo", "--cache", str(tmp_path)]) == 2
    assert "is not the cache of a demo" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
