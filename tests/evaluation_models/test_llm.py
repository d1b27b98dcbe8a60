"""`vrbot evaluate --llm`: what reaches the endpoint, what it is told, and an evaluation that was killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.baselines.stand_in import Heard, Said, StandIn, echo, standing_in
from tests.model.tiny import sessions, write_splits
from vrbot.baselines.llm.settings import EndpointSettings
from vrbot.baselines.llm.system import open_language_model
from vrbot.cli.main import run
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.session import Action, Session, Turn
from vrbot.evaluation.language_models import measure_language_model
from vrbot.evaluation.reply_files import read_replies

NUM_TURNS = 11
CHANGED = "止咳糖浆加退热贴"


@pytest.fixture
def server() -> Iterator[StandIn]:
    with standing_in() as running:
        yield running


def command(server: StandIn, folder: Path, *more: str) -> list[str]:
    chosen = ["--llm", server.url, "--llm-set", "model=stand-in", "--llm-set", "concurrency=2"]
    return ["evaluate", *more, *chosen, "--llm-cache", str(folder / "answers")]


def requests_for(told: list[Session], like: Corpus, folder: Path, server: StandIn) -> list[list[dict[str, Any]]]:
    """The messages of every request that measuring these dialogues sends, in corpus order."""
    write_splits(folder / "source", told)
    prepare(folder / "source", folder / "corpus", PreparationSettings(like=like.directory))
    system = open_language_model(EndpointSettings(server.url, "stand-in", concurrency=1))
    first = len(server.heard)
    measure_language_model(system, Corpus.open(folder / "corpus"), "test")
    return [heard.body["messages"] for heard in server.heard[first:]]


def changed_from(session: Session, turn: int) -> Session:
    """Another reply at a turn, other labels everywhere, and everything later said otherwise."""

    def other(number: int, one: Turn) -> Turn:
        labelled = replace(one, state=("腹泻",), action=Action("chitchat", ("流感",)))
        if number < turn:
            return labelled
        return replace(labelled, physician=CHANGED, patient=one.patient if number == turn else "腹泻怎么办")

    return replace(session, turns=tuple(other(number, one) for number, one in enumerate(session.turns)))


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
def test_requests_do_not_change_with_the_reference_the_labels_or_anything_later(
    turn: int, corpus: Corpus, tmp_path: Path, server: StandIn
) -> None:
    session = sessions()[0]
    real = requests_for([session], corpus, tmp_path / "real", server)
    changed = requests_for([changed_from(session, turn)], corpus, tmp_path / "changed", server)
    assert len(real) == len(changed) == len(session.turns)
    assert real[: turn + 1] == changed[: turn + 1]
    assert CHANGED not in json.dumps(changed[: turn + 1], ensure_ascii=False)
    assert all(CHANGED in json.dumps(later, ensure_ascii=False) for later in changed[turn + 1 :])


def test_an_endpoint_is_measured_without_any_run(
    corpus: Corpus, tmp_path: Path, server: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--json", str(tmp_path / "scores.json"), "--replies", str(tmp_path / "replies.jsonl")]
    assert run(command(server, tmp_path, "--corpus", str(corpus.directory), *files)) == 0
    assert f"{NUM_TURNS} turns" in capsys.readouterr().out
    scores = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    assert scores["llm"]["num_turns"] == NUM_TURNS
    assert scores["llm"]["micro_f1"] > 0
    assert scores["llm"]["settings"]["model"] == "stand-in"
    turns = read_replies(tmp_path / "replies.jsonl", {})
    assert turns[0].reply == "您说我咳嗽三天了，有没有发烧？"
    assert len(server.heard) == NUM_TURNS


def test_a_run_is_measured_first_and_tells_the_endpoint_what_it_infers(
    run_folder: Path, tmp_path: Path, server: StandIn
) -> None:
    files = ["--json", str(tmp_path / "scores.json"), "--replies", str(tmp_path / "replies.jsonl")]
    assert run(command(server, tmp_path, str(run_folder), "--beam", "1", "--llm-informed", *files)) == 0
    assert all("患者状态：" in heard.body["messages"][0]["content"] for heard in server.heard)
    assert any("建议提到：" in heard.body["messages"][0]["content"] for heard in server.heard)
    scores = json.loads((tmp_path / "scores.json").read_text("utf-8"))
    assert scores["model"] == "vrbot"
    assert scores["llm"]["settings"]["told_by"] == str(run_folder)
    own, asked = (read_replies(tmp_path / name, {}) for name in ("replies.jsonl", "replies.llm.jsonl"))
    assert len(own) == len(asked) == NUM_TURNS
    assert asked[0].reply.startswith("您说")


def test_nothing_is_contacted_where_no_address_is_given(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("http.client.HTTPConnection.connect", lambda _: pytest.fail("a connection"))
    assert run(["evaluate", str(run_folder), "--beam", "1"]) == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--llm-informed"], "give its address with --llm URL"),
        (["--llm-set", "model=x"], "give its address with --llm URL"),
        (["--llm", "http://127.0.0.1:9/v1", "--llm-set", "model=x", "--llm-informed"], "needs the run of a VRBot"),
        (["--llm", "http://127.0.0.1:9/v1"], "--llm-set model=NAME"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(
    options: list[str], problem: str, corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", "--corpus", str(corpus.directory), *options]) == 2
    assert problem in capsys.readouterr().err


def test_an_evaluation_that_was_killed_goes_on_where_it_was_and_ends_the_same(
    corpus: Corpus, tmp_path: Path, server: StandIn
) -> None:
    enough, killed = threading.Event(), threading.Event()

    def script(heard: Heard, number: int) -> Said:
        if number < 5:
            return echo(heard, number)
        enough.set()
        return replace(echo(heard, number), waits=killed)

    server.script = script
    options = ["--corpus", str(corpus.directory), "--json", str(tmp_path / "scores.json")]
    words = command(server, tmp_path, *options)
    program = f"from vrbot.cli.main import run; raise SystemExit(run({words!r}))"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as process:
        assert enough.wait(300)
        process.send_signal(signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
    killed.set()
    assert not (tmp_path / "scores.json").exists()
    asked_before, server.script = len(server.heard), echo
    kept = len(list((tmp_path / "answers").rglob("*.json")))
    assert 3 <= kept < NUM_TURNS
    assert run(words) == 0
    assert len(server.heard) - asked_before == NUM_TURNS - kept
    resumed = (tmp_path / "scores.json").read_text("utf-8")
    assert run(command(server, tmp_path / "afresh", *options)) == 0
    afresh = (tmp_path / "scores.json").read_text("utf-8")
    assert resumed == afresh
