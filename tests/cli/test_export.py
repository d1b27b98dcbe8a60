"""`vrbot export`: a folder that replies as its run does, and one clear line where there is nothing to export."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.agent.conftest import MakeAgent, make_agent, run, tiny_corpus
from vrbot.agent.respond import Agent
from vrbot.cli.main import run as vrbot
from vrbot.model.weights import model_to_bytes
from vrbot.serving.responder import responder_of

__all__ = ["make_agent", "run", "tiny_corpus"]

CONVERSATIONS = [[("我咳嗽三天了", "有没有发烧，头痛？"), ("发烧，没有头痛", "")], [("昨天腹泻，乏力", "")], [("", "")]]


def test_an_exported_model_replies_as_its_run_and_needs_no_corpus(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vrbot(["export", str(run), "--out", str(tmp_path / "models" / "first"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["model"], told["precision"]) == ("vrbot", "float32")
    (tmp_path / "models").rename(tmp_path / "elsewhere")
    names = {path.name for path in (tmp_path / "elsewhere" / "first").iterdir()}
    assert not names & {"train", "valid", "test", "run.json"}
    trained, exported = Agent.from_pretrained(run), Agent.from_pretrained(tmp_path / "elsewhere" / "first")
    assert [exported.respond(each) for each in CONVERSATIONS] == [trained.respond(each) for each in CONVERSATIONS]
    assert exported.facts == trained.facts
    assert responder_of(tmp_path / "elsewhere" / "first").fingerprint == responder_of(run).fingerprint


def test_int8_is_kept_in_the_folder_and_leaves_the_weights_as_they_are(run: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "small")
    assert vrbot(["export", str(run), "--out", out, "--int8"]) == 0
    trained, exported = Agent.from_pretrained(run), Agent.from_pretrained(out)
    assert (trained.config.decoding.precision, exported.config.decoding.precision) == ("float32", "int8")
    assert model_to_bytes(exported.pretrained.model) == model_to_bytes(trained.pretrained.model)
    assert exported.respond(CONVERSATIONS[0]).text
    assert vrbot(["export", out, "--out", str(tmp_path / "again")]) == 0
    assert Agent.from_pretrained(tmp_path / "again").config.decoding.precision == "int8"


def test_what_cannot_be_exported_is_said_in_one_line_and_nothing_is_written(
    run: Path, make_agent: MakeAgent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: str) -> str:
        assert vrbot(["export", *arguments]) == 2
        seen = capsys.readouterr().err
        assert seen.count("\n") == 1
        return seen

    out = tmp_path / "out"
    assert "nor a run" in refused(str(tmp_path / "nowhere"), "--out", str(out))
    assert "nor a run" in refused(str(tmp_path), "--out", str(out))
    young = shutil.copytree(run, tmp_path / "young")
    shutil.rmtree(young / "best")
    assert "no best model yet" in refused(str(young), "--out", str(out))
    make_agent("transformer").save_pretrained(tmp_path / "plain")
    assert "float32 only" in refused(str(tmp_path / "plain"), "--out", str(out), "--int8")
    assert not out.exists()
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    assert "--overwrite" in refused(str(run), "--out", str(out))
    assert "not a saved model" in refused(str(run), "--out", str(out), "--overwrite")
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]


def test_a_saved_model_is_replaced_only_when_told_to(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    assert vrbot(["export", str(run), "--out", str(out)]) == 0
    assert vrbot(["export", str(run), "--out", str(out), "--int8"]) == 2
    assert Agent.from_pretrained(out).config.decoding.precision == "float32"
    assert vrbot(["export", str(run), "--out", str(out), "--int8", "--overwrite"]) == 0
    assert Agent.from_pretrained(out).config.decoding.precision == "int8"
