"""Verbs that exist only for the tests of the command line."""

from __future__ import annotations

import typer

from vrbot.cli.printing import say
from vrbot.errors import ConfigError, DataError

group = typer.Typer()


@group.command()
def inner(times: int = 1) -> None:
    """Say something from a group."""
    say("inner " * times)


def broken_data() -> None:
    """Meet a bad line."""
    raise DataError("chats.jsonl", 7, "patient", "is a number,\n not text", "write it in quotes")


def bad_setting() -> None:
    """Meet a bad setting."""
    raise ConfigError("policy.hops must be at least 1, got 0")


def fault() -> None:
    """Meet a fault of the program."""
    raise ZeroDivisionError("division by zero")


def interrupted() -> None:
    """Be stopped by the keyboard."""
    raise KeyboardInterrupt


def flood() -> None:
    """Write more than a pipe holds."""
    for _ in range(100_000):
        say("water")
