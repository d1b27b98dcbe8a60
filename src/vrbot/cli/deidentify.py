"""`vrbot deidentify`: dialogues without names, numbers and addresses of people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.out_file import check_out_file
from vrbot.cli.printing import counting, note, say, say_json, say_table
from vrbot.dialogue.formats import ImportReport, guess_format, read_sessions, write_sessions
from vrbot.dialogue.session import Session
from vrbot.errors import DataError, UsageError
from vrbot.safety.private_chats import deidentify_session

NOTICE = "Rules miss details: somebody must read the file before it leaves the house."
KEYS_SHOWN = 12
"""How many keys an error lists."""


def deidentify(
    source: Annotated[Path, typer.Argument(help="One file of dialogues, in any format that `prepare` reads.")],
    out: Annotated[Path, typer.Option(help="The file to write, in the canonical format (.jsonl).")],
    format: Annotated[str | None, typer.Option(help="canonical, release, meddg or meddialog; else guessed.")] = None,
    prefix: Annotated[str | None, typer.Option(help="What the new ids begin with [the source's name].")] = None,
    keep_ids: Annotated[bool, typer.Option("--keep-ids", help="Keep the ids: they tell nobody anything.")] = False,
    keep: Annotated[
        list[str] | None, typer.Option(help="A key beside the turns (department, ...) that stays; may be repeated.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Take private details out of dialogues: placeholders such as [NAME] stand for what the rules find.

    Ids are numbered anew, after the source's name so that those of two splits differ. Keys beside the turns are left
    out unless asked for: they may tell who somebody is. Labels stay. The file is written whole or not at all, and the
    source stays as it is.

    \b
    Example:
        vrbot deidentify raw/train.jsonl --out chats/train.jsonl --keep department
    """
    if source.is_dir():
        raise UsageError(f"{source} is a folder: name one file of it at a time")
    check_out_file(out, source, overwrite=overwrite)
    format = guess_format(source) if format is None else format
    prefix = source.stem if prefix is None else prefix
    report, found, keys = ImportReport(), Counter[str](), Counter[str]()

    def cleaned() -> Iterator[Session]:
        for number, session in enumerate(read_sessions(source, format, report=report), start=1):
            new_id = session.id if keep_ids else f"{prefix}-{number:06d}"
            result = deidentify_session(session, new_id, keep or ())
            found.update(result.found)
            keys.update(session.extra.keys())
            if advance is not None:
                advance(1)
            yield result.session
        _check_read(source, report, keep or (), keys)  # an error here still leaves `out` as it was

    with counting("dialogues") as advance:
        write_sessions(out, cleaned())
    if as_json:
        say_json({"out": str(out), **report.as_dict(), "found": dict(sorted(found.items())), "notice": NOTICE})
        return
    say(f"{report.sessions:,} dialogues, {report.turns:,} turns, {sum(found.values()):,} details replaced")
    say_table(("kind", "details"), sorted(found.items()))
    note(NOTICE)


def _check_read(source: Path, report: ImportReport, keep: Collection[str], keys: Collection[str]) -> None:
    """Refuses a source without dialogues, and keys to be kept that none of its dialogues has."""
    if not report.sessions:
        raise DataError(source, None, "file", "holds no dialogues", "give a file that does")
    missing = [key for key in dict.fromkeys(keep) if key not in keys]
    if missing:
        named = ", ".join(map(repr, missing))
        there = f"choose from {', '.join(sorted(keys)[:KEYS_SHOWN])}, or " if keys else ""
        raise UsageError(f"no dialogue of {source} has the key {named}: {there}leave out --keep for it")
