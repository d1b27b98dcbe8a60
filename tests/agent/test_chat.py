"""Laws of talking in a terminal or through a pipe."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.conftest import MakeAgent
from vrbot.agent.chat import Chat
from vrbot.agent.respond import Agent
from vrbot.cli.chat import WORDS, ReplyScreen
from vrbot.cli.main import run as run_command
from vrbot.dialogue.session import CATEGORIES


@pytest.fixture(scope="module")
def saved(make_agent: MakeAgent, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    make_agent().save_pretrained(folder)
    return folder


def talk(folder: Path, said: str, *options: str) -> tuple[int, str]:
    """The exit code and the output of a chat that is told these lines."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(said))
        patch.setattr(sys, "stdout", output)
        code = run_command(["chat", str(folder), *options])
    return code, output.getvalue()


def test_a_chat_through_a_pipe_answers_every_line(saved: Path) -> None:
    command = [sys.executable, "-c", "from vrbot.cli.main import main; main()", "chat", str(saved), "--json"]
    said = "我咳嗽三天了\n\n发烧，没有头痛\n".encode() + b"\xff\xfe\n"
    done = subprocess.run(command, input=said, capture_output=True, check=True)
    assert done.stderr == b""
    replies = [json.loads(line) for line in done.stdout.decode().splitlines()]
    agent = Agent.from_pretrained(saved)
    first = agent.respond([("我咳嗽三天了", "")])
    second = agent.respond([("我咳嗽三天了", first.text), ("发烧，没有头痛", "")])
    assert replies[:2] == [first.to_dict(), second.to_dict()]
    assert len(replies) == 3


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_chat_shows_state_action_and_reply(language: str, saved: Path) -> None:
    code, output = talk(saved, "我咳嗽三天了\n", "--language", language)
    reply = Agent.from_pretrained(saved).respond([("我咳嗽三天了", "")])
    words = WORDS[language]
    assert code == 0
    state, action, text = output.splitlines()
    assert state == f"{words['state']}: " + "  ".join(f"+{entity.name}" for entity in reply.state or ())
    assert action.startswith(f"{words['action']}: {words[reply.category or '']} ")
    assert text == f"{words['reply']}: {reply.text}"


def test_the_commands_of_a_chat_do_what_they_say(saved: Path) -> None:
    said = [
        "/state",
        "我咳嗽三天了",
        "发烧",
        "/undo",
        "/state",
        "/undo",
        "/undo",
        "乏力",
        "/new",
        "/help",
        "/quit",
        "头痛",
    ]
    code, output = talk(saved, "\n".join(said), "--language", "en")
    lines = output.splitlines()
    assert code == 0
    assert lines[0] == "state: nothing yet"
    assert sum(line.startswith("reply: ") for line in lines) == 3
    assert [line for line in lines if line.startswith("taken back")] == ["taken back: 发烧", "taken back: 我咳嗽三天了"]
    undone = lines.index("taken back: 发烧")
    assert lines[undone + 1] == lines[1]
    assert "nothing to take back" in lines
    assert lines[-2:] == ["a new conversation", WORDS["en"]["help"]]


def test_a_command_there_is_not_is_explained(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, output = talk(saved, "/stat\n", "--language", "en")
    assert (code, output) == (0, "")
    assert "/stat is not a command" in capsys.readouterr().err


def test_taking_a_turn_back_leaves_no_trace(make_agent: MakeAgent) -> None:
    agent = make_agent()
    chat = Chat(agent)
    first = chat.say("我咳嗽三天了")
    chat.say("发烧")
    assert chat.undo() == "发烧"
    again = chat.say("头痛")
    assert again == agent.respond([("我咳嗽三天了", first.text), ("头痛", "")])
    assert chat.replies == (first, again)
    chat.begin_again()
    assert chat.undo() is None
    assert chat.say("我咳嗽三天了") == first


def test_a_model_without_state_and_action_can_be_talked_to(make_agent: MakeAgent, tmp_path: Path) -> None:
    make_agent("seq2seq").save_pretrained(tmp_path / "model")
    code, output = talk(tmp_path / "model", "我咳嗽三天了\n/state\n", "--language", "en", "--search", "greedy")
    assert code == 0
    assert [line.split(":")[0] for line in output.splitlines()] == ["reply", "state"]


def test_what_would_steer_a_terminal_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ReplyScreen(WORDS["en"]).hint("taken back: \x1b[31m[red]a\x07\ud800")
    assert capsys.readouterr().out == "taken back: [31m[red]a\n"


def test_both_languages_say_the_same_things() -> None:
    assert set(WORDS["zh"]) == set(WORDS["en"]) >= set(CATEGORIES)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [(["--language", "fr"], "unknown language 'fr'"), (["--search", "x"], "'x' is not a search")],
)
def test_wrong_use_is_one_line(
    options: list[str], complaint: str, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["chat", str(saved), *options]) == 2
    assert complaint in capsys.readouterr().err
