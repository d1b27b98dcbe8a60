"""The accounts of a desk: add, list, disable, set a password.

\b
Example:
    vrbot users add ann --role physician --database desk.sqlite
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vrbot.cli.printing import say, say_json, say_table
from vrbot.errors import UsageError

if TYPE_CHECKING:
    from vrbot.serving.accounts import Accounts

users = typer.Typer(no_args_is_help=True, help=__doc__)

Name = Annotated[str, typer.Argument(help="The user's name.")]
DatabaseOption = Annotated[
    str, typer.Option("--database", help="A SQLite file, or postgresql+psycopg://USER@HOST/NAME.")
]


@users.command("add")
def users_add(
    name: Name,
    role: Annotated[str, typer.Option(help="physician, annotator, researcher or admin.")],
    database: DatabaseOption,
) -> None:
    """Add an account; the password is asked for, or read from the first line of standard input.

    \b
    Example:
        vrbot users add ann --role physician --database desk.sqlite
    """
    from vrbot.serving.actors import OPERATOR

    with _accounts(database, create=True) as accounts:
        added = accounts.add(OPERATOR, name, _password(), role)
    say(f"added {added.name} ({added.role})")


@users.command("list")
def users_list(
    database: DatabaseOption,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the accounts.

    \b
    Example:
        vrbot users list --database desk.sqlite
    """
    from vrbot.serving.actors import OPERATOR

    with _accounts(database) as accounts:
        found = accounts.everyone(OPERATOR)
    if as_json:
        say_json([asdict(user) for user in found])
        return
    rows = [(user.name, user.role, "disabled" if user.disabled else "active", _day(user.made_at)) for user in found]
    say_table(("name", "role", "state", "since"), rows)


@users.command("disable")
def users_disable(
    name: Name,
    database: DatabaseOption,
    undo: Annotated[bool, typer.Option("--undo", help="Let the account in again.")] = False,
) -> None:
    """Shut an account out and end its sign-ins; what it did stays.

    \b
    Example:
        vrbot users disable ann --database desk.sqlite
    """
    from vrbot.serving.actors import OPERATOR

    with _accounts(database) as accounts:
        changed = accounts.set_disabled(OPERATOR, name, not undo)
    say(f"{changed.name} is {'disabled' if changed.disabled else 'active'}")


@users.command("password")
def users_password(name: Name, database: DatabaseOption) -> None:
    """Set a new password and end the account's sign-ins.

    \b
    Example:
        vrbot users password ann --database desk.sqlite
    """
    from vrbot.serving.actors import OPERATOR

    with _accounts(database) as accounts:
        changed = accounts.set_password(OPERATOR, name, _password())
    say(f"{changed.name} has a new password")


@contextmanager
def _accounts(database: str, *, create: bool = False) -> Iterator[Accounts]:
    from vrbot.serving.accounts import Accounts
    from vrbot.serving.store import Store

    store = Store.open(database, create=create)
    try:
        yield Accounts(store)
    finally:
        store.close()


def _password() -> str:
    """Asked for twice on a terminal; never an argument, where every program of the machine could read it."""
    if sys.stdin.isatty():
        return str(typer.prompt("password", hide_input=True, confirmation_prompt=True, err=True))
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise UsageError("no password: type it on a terminal, or give it as the first line of standard input")
    return line


def _day(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).strftime("%Y-%m-%d")
