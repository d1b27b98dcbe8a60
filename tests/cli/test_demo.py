"""Laws of `vrbot demo` with its console."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from vrbot.baselines.catalogue import build_model
from vrbot.cli import demo
from vrbot.cli.main import run as run_command
from vrbot.dialogue.corpus import Corpus
from vrbot.serving.api.settings import DEMO_PHYSICIAN
from vrbot.serving.console.samples import seed_samples
from vrbot.serving.service import Desk
from vrbot.training.checkpoints import RunFolder
from vrbot.training.runs import open_run

TINY = {
    "network.embedding_size": 8,
    "network.hidden_size": 8,
    "policy.graph_size": 8,
    "decoding.beam": 1,
    "decoding.max_length": 8,
    "training.max_epochs": 1,
}


def test_the_demo_serves_sample_consultations_of_both_languages_and_does_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "DIALOGUES", 12)
    monkeypatch.setattr(demo, "SETTINGS", TINY)
    desks: list[Desk] = []
    served: list[Any] = []
    made = demo.demo_desk

    def made_and_kept(folder: Path, agent: Any) -> Desk:
        desks.append(made(folder, agent))
        return desks[-1]

    monkeypatch.setattr(demo, "demo_desk", made_and_kept)
    monkeypatch.setattr("uvicorn.run", lambda app, **how: served.append(how))
    command = ["demo", "--cache", str(tmp_path / "cache"), "--port", str(_free_port())]
    for _ in range(2):
        assert run_command(command) == 0
    first, second = desks
    lines = capsys.readouterr().out
    assert lines.count("The console is open at http://127.0.0.1:") == 2
    assert {how["host"] for how in served} == {"127.0.0.1"}
    listed = second.consultations.all_of(DEMO_PHYSICIAN)
    assert listed == first.consultations.all_of(DEMO_PHYSICIAN)
    assert {each.language for each in listed} == {"zh", "en"}
    assert all(each.demo for each in listed)
    closed = [each for each in listed if each.closed_at is not None]
    assert {each.language for each in closed} == {"zh", "en"}
    for each in closed:
        lines_seen = second.patient_view(each.id)
        assert [line.author for line in lines_seen] == ["patient", "physician"] * (len(lines_seen) // 2)
    assert seed_samples(second, DEMO_PHYSICIAN, "zh") == 0
    assert len(list((tmp_path / "cache").glob("guard-*.json"))) == 1
    for desk in desks:
        desk.store.close()


def test_a_model_of_a_version_with_other_parts_is_trained_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "DIALOGUES", 12)
    monkeypatch.setattr(demo, "SETTINGS", TINY)
    command = ["demo", "--cache", str(tmp_path / "cache"), "--no-serve"]
    assert run_command(command) == 0
    (run,) = (tmp_path / "cache").rglob("run")
    plan = open_run(run).plan
    other = plan.config.with_settings({"objective.marks_guesses": False})
    RunFolder(run).save_best(build_model("vrbot", other, Corpus.open(plan.corpus)), {}, {})
    capsys.readouterr()
    assert run_command(command) == 0
    assert "training anew" in capsys.readouterr().err
    assert run_command(command) == 0
    assert "training" not in capsys.readouterr().err


def test_the_demo_does_not_listen_where_others_could_reach_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["demo", "--host", "0.0.0.0"]) == 2
    assert "0.0.0.0" in capsys.readouterr().err


def test_a_port_in_use_is_named_before_anything_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run_command(["demo", "--cache", str(tmp_path / "cache"), "--port", str(port)]) == 2
    assert f"port {port}" in capsys.readouterr().err
    assert not (tmp_path / "cache").exists()


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])
