"""`vrbot bench`: figures alone on standard output, and one line where a corpus is too small to be timed on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.training.fake import write_fake_corpus
from vrbot.cli.main import run


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own speed is not measured."""
    for module in ("machine_speed", "training.speed", "agent.speed"):
        monkeypatch.setattr(f"vrbot.{module}.gemm_gflops", lambda seconds=0.0: 100.0)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("verb", ["train", "decode"])
def test_a_corpus_that_is_too_small_is_refused_and_one_of_the_size_asked_for_is_enough(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def bench(size: int) -> int:
        corpus = write_fake_corpus(tmp_path / str(size), size)
        return run(["bench", verb, "--corpus", str(corpus), "--recipe", "small", "--model", "seq2seq", "--steps", "1"])

    assert bench(6) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert "has 6 training dialogues" in complaint
    needed = re.search(r"needs? (\d+)", complaint)
    assert needed is not None
    assert bench(int(needed[1])) == 0
    assert json.loads(capsys.readouterr().out)["threads"] >= 1


def test_standard_output_holds_the_figures_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("vrbot.training.speed.measure_training", lambda *_: {"threads": 1})
    written = tmp_path / "new" / "speed.json"
    assert run(["bench", "train", "--corpus", str(tmp_path), "--json", str(written)]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == json.loads(written.read_text("utf-8"))
    assert told.err == f"written to {written}\n"
