"""Laws of `vrbot demo` with its console."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi import FastAPI
from fastapi.testclient import TestClient

from vrbot.baselines.catalogue import build_model
from vrbot.cli import demo
from vrbot.cli.main import run as run_command
from vrbot.dialogue.corpus import Corpus
from vrbot.serving import running
from vrbot.serving.api.settings import DEMO_PHYSICIAN
from vrbot.serving.console.samples import seed_samples
from vrbot.serving.running import Plan
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


@dataclass
class Served:
    """What the demo would have served, time after time: its plans, and the apps and desks made of them."""

    plans: list[Plan] = field(default_factory=list)
    apps: list[FastAPI] = field(default_factory=list)
    desks: list[Desk] = field(default_factory=list)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A small demo that says its console is open and ends at once."""
    kept, opened, threads = Served(), running.open_desk, torch.get_num_threads()

    def open_desk(plan: Plan) -> Desk:
        kept.desks.append(opened(plan))
        return kept.desks[-1]

    def serve(plan: Plan, listening: socket.socket, make: Any, told: Any) -> None:
        listening.close()
        kept.plans.append(plan)
        kept.apps.append(make(plan))
        told()

    monkeypatch.setattr(demo, "DIALOGUES", 12)
    monkeypatch.setattr(demo, "SETTINGS", TINY)
    monkeypatch.setattr(running, "open_desk", open_desk)
    monkeypatch.setattr(running, "serve", serve)
    yield kept
    for desk in kept.desks:
        desk.store.close()
    torch.set_num_threads(threads)


def test_the_demo_serves_sample_consultations_of_both_languages_and_does_nothing_twice(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["demo", "--cache", str(tmp_path / "cache"), "--port", str(_free_port())]
    for _ in range(2):
        assert run_command(command) == 0
    first, second = served.desks
    lines = capsys.readouterr().out
    assert lines.count("The console is open at http://127.0.0.1:") == 2
    assert {plan.host for plan in served.plans} == {"127.0.0.1"}
    assert len({plan.settings.secret for plan in served.plans}) == 1
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


def test_the_kill_switch_the_demo_tells_of_is_the_one_that_stops_its_drafts(served: Served, tmp_path: Path) -> None:
    assert run_command(["demo", "--cache", str(tmp_path / "cache"), "--port", str(_free_port())]) == 0
    (desk,), client = served.desks, TestClient(served.apps[0], base_url="http://127.0.0.1")
    assert client.get("/api/v1/safety/switch").json()["on"] is False
    assert desk.safety.drafts_stopped() is None
    switch = served.plans[0].settings.switch
    assert switch is not None
    switch.switch_on("wrong doses seen", "Ada", datetime(2030, 1, 2, tzinfo=UTC))
    assert client.get("/api/v1/safety/switch").json()["reason"] == "wrong doses seen"
    assert desk.safety.drafts_stopped() == "wrong doses seen"
    assert torch.get_num_threads() == 1


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
