"""`vrbot backup` and `vrbot restore`: a consistent copy of a desk's database, and the way back."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import say, say_json

DATABASE_HELP = "A SQLite file, or postgresql+psycopg://USER@HOST/NAME."
JsonOption = Annotated[bool, typer.Option("--json", help="Print the description as JSON.")]


def backup(
    database: Annotated[str, typer.Argument(help=DATABASE_HELP)],
    folder: Annotated[Path, typer.Argument(help="The folder to make; it must not be there yet.")],
    portable: Annotated[bool, typer.Option(help="Write rows that PostgreSQL can take too, not a SQLite file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy a desk's database, while it is in use or not.

    \b
    Example:
        vrbot backup desk.sqlite backups/monday
    """
    from vrbot.serving.backup import back_up
    from vrbot.serving.store import Store

    with closing(Store.open(database)) as store:
        described = back_up(store, folder, portable=portable)
    if as_json:
        say_json(asdict(described))
    else:
        say(f"{folder}: {described.size:,} bytes, {described.events:,} events, SHA-256 {described.sha256}")


def restore(
    folder: Annotated[Path, typer.Argument(help="A folder `vrbot backup` made.")],
    database: Annotated[str, typer.Argument(help=DATABASE_HELP + " Nothing may be there yet.")],
    witness: Annotated[Path | None, typer.Option(help="A new second place for heads; PATH.witness for SQLite.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Put a backup where there is nothing yet, checked by hash, event by event and row by row.

    \b
    Example:
        vrbot restore backups/monday desk.sqlite
    """
    from vrbot.serving.backup import restore as put_back

    described = put_back(folder, database, witness)
    if as_json:
        say_json(asdict(described))
    else:
        say(f"{database}: {described.events:,} events restored")
