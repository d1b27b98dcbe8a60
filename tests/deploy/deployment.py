"""The deployment files as the tests read them: instructions, services, settings of a unit, commands of the page."""

from __future__ import annotations

import json
import re
import shlex
from configparser import RawConfigParser
from dataclasses import dataclass
from typing import Any

import yaml

from tests.architecture.project import ROOT
from vrbot.cli.main import VERBS, load_verb

DOCKERFILE, IGNORED, COMPOSE = ROOT / "Dockerfile", ROOT / ".dockerignore", ROOT / "compose.yaml"
UNIT, SETTINGS, DATABASE = (ROOT / "deploy" / name for name in ("vrbot.service", "vrbot.env", "database.sh"))
PAGE = ROOT / "docs" / "deployment.md"
FILES = (DOCKERFILE, IGNORED, COMPOSE, UNIT, SETTINGS, DATABASE, PAGE)


@dataclass(frozen=True)
class Stage:
    """One stage of the Dockerfile: its name, what it starts from, and its instructions in order."""

    name: str
    base: str
    instructions: tuple[tuple[str, str], ...]

    def all(self, word: str) -> list[str]:
        return [rest for found, rest in self.instructions if found == word]

    def last(self, word: str) -> str:
        return self.all(word)[-1]

    def list_of(self, word: str) -> list[str]:
        """The words of the last such instruction, which is written as a list so that no shell stands in between."""
        found: list[str] = json.loads(self.last(word)[self.last(word).index("[") :])
        return found


def stages() -> dict[str, Stage]:
    """The stages by name."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    found: dict[str, Stage] = {}
    for line in lines:
        word, rest = line.split(maxsplit=1)
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = Stage(name, base, ())
        elif found:
            *_, last = found.values()
            found[last.name] = Stage(last.name, last.base, (*last.instructions, (word, rest)))
    return found


def arguments_of_build() -> dict[str, str]:
    """Every ARG that has a value of its own."""
    return dict(re.findall(r"^ARG (\w+)=(\S+)$", DOCKERFILE.read_text("utf-8"), re.MULTILINE))


def services() -> dict[str, Any]:
    """The services of the compose file, variables as they are written."""
    found: dict[str, Any] = compose()["services"]
    return found


def compose() -> dict[str, Any]:
    """The compose file."""
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))
    return found


def unit() -> RawConfigParser:
    """The systemd unit; where a setting stands more than once, the last."""
    parser = RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT, "utf-8")
    return parser


def unit_settings() -> dict[str, str]:
    """The variables of the example of an environment file."""
    return dict(re.findall(r"^(\w+)=(.*)$", SETTINGS.read_text("utf-8"), re.MULTILINE))


def with_defaults(text: str, values: dict[str, str]) -> str:
    """The text with its variables replaced: by a value given, else by the default it states, else by nothing."""

    def value(found: re.Match[str]) -> str:
        return values.get(found["name"] or found["bare"], found["default"] or "")

    return re.sub(r"\$(?:\{(?P<name>\w+)(?::-(?P<default>[^}]*)|:\?[^}]*)?\}|(?P<bare>\w+))", value, text)


def parsed(words: list[str]) -> dict[str, Any]:
    """What the real program makes of the words after `vrbot`: its parameters by name; raises where it would refuse."""
    verb, *rest = words
    command = load_verb(verb, VERBS[verb])
    while hasattr(command, "commands"):
        verb, *rest = rest
        command = command.commands[verb]
    parameters: dict[str, Any] = command.make_context(verb, rest).params
    return parameters


def page_commands() -> list[list[str]]:
    """The words after `vrbot` in every command that the page shows, in a container or on the machine."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    verbs = "|".join(VERBS)
    commands = [re.search(rf"(?:(?:^|\s|/)vrbot|run --rm application) ((?:{verbs})\b.*)", line) for line in lines]
    return [shlex.split(found[1], comments=True) for found in commands if found]
