"""Backups: a consistent copy of a running database in a folder of its own, and the way back, checked to the last row.

Of SQLite the copy is a database file (SQLite's own online backup); of PostgreSQL, or on request, it is every row as
JSON, which either database can take. Beside it stands backup.json with sizes, hashes and the head of the audit chain.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from vrbot.errors import IntegrityError, UsageError, VRBotError
from vrbot.files import sha256_of, sync_folder
from vrbot.serving.actors import OPERATOR
from vrbot.serving.audit import examine
from vrbot.serving.chain import Head
from vrbot.serving.database import connect, parse_address, shown_address, sqlite_file
from vrbot.serving.migrations import HEAD_REVISION
from vrbot.serving.rows import load_rows, write_rows
from vrbot.serving.store import Store, default_witness
from vrbot.serving.texts import canonical_json

DESCRIPTION, DATABASE, ROWS = "backup.json", "database.sqlite", "rows.jsonl.gz"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Description:
    """What a backup holds."""

    file: str
    sha256: str
    size: int
    revision: str
    events: int
    head: str
    made_at: int


def back_up(store: Store, folder: Path, *, portable: bool = False) -> Description:
    """Writes a backup folder, whole or not at all; `portable` writes rows for SQLite too."""
    if folder.exists():
        raise UsageError(f"{folder} is already there: choose another folder")
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.tmp")
    try:
        draft.mkdir(parents=True, mode=0o700)
        source = sqlite_file(store.url)
        if source is None or portable:
            path, head = draft / ROWS, write_rows(store, draft / ROWS)
        else:
            path = draft / DATABASE
            head = _copy_sqlite(source, path)
        os.chmod(path, 0o600)
        _sync_file(path)
        described = Description(
            path.name, sha256_of(path), path.stat().st_size, HEAD_REVISION, head.seq, head.hash, store.clock()
        )
        (draft / DESCRIPTION).write_text(_sealed(described), encoding="utf-8")
        _sync_file(draft / DESCRIPTION)
        sync_folder(draft)
        draft.rename(folder)
        sync_folder(folder.parent)
    except (OSError, sqlite3.Error) as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise VRBotError(f"{folder}: could not be written: {error}") from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return described


def read_description(folder: Path) -> Description:
    """What a backup says of itself, once its file is known to be the one that was written."""
    path = folder / DESCRIPTION
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
        content.pop("sha256_of_this")
        schema = content.pop("schema")
        described = Description(**content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise IntegrityError(
            f"{path}: cannot be read as the description of a backup ({type(error).__name__})"
        ) from None
    if schema != SCHEMA_VERSION or described.revision != HEAD_REVISION:
        raise IntegrityError(f"{path}: is of another version: restore it with the program that wrote it, then upgrade")
    if _sealed(described) != text or described.file not in (DATABASE, ROWS):
        raise IntegrityError(f"{path}: has been changed since it was written: use another backup")
    copy = folder / described.file
    if not copy.is_file() or copy.stat().st_size != described.size or sha256_of(copy) != described.sha256:
        raise IntegrityError(f"{copy}: is not the file that was written (SHA-256 differs): use another backup")
    return described


def restore(folder: Path, address: str | Path, witness: Path | None = None) -> Description:
    """Puts a backup where there is nothing yet; what does not verify is not put there."""
    described = read_description(folder)
    url = parse_address(address)
    target = sqlite_file(url)
    if target is not None and target.exists():
        raise UsageError(f"{target} is already there: choose another path")
    place = witness or default_witness(url)
    if place is not None and place.exists():
        raise UsageError(f"{place} is the witness of another database: keep it elsewhere as evidence, then restore")
    if target is None:
        if described.file == DATABASE:
            raise UsageError(f"{folder} is a copy of SQLite: back up with --portable to move to {shown_address(url)}")
        _restore_rows(folder / ROWS, Store(connect(url, create=True)), described)
    else:
        _restore_file(folder / described.file, target, described)
    store = Store.open(url, witness=witness)
    with store.writing("backup restored", OPERATOR) as writer:
        writer.detail |= {"sha256": described.sha256, "events": described.events}
    store.close()
    return described


def _restore_file(source: Path, target: Path, described: Description) -> None:
    """Makes the database beside its place and links it there, which fails if something has come there meanwhile."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        if described.file == DATABASE:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copyfile(source, draft)
            store = Store(connect(parse_address(draft), create=False))
            with store.reading() as connection:
                _must_verify(connection, described)
        else:
            store = Store(connect(parse_address(draft), create=True))
            _restore_rows(source, store, described)
        store.close()
        _into_one_file(draft)
        _sync_file(draft)
        os.link(draft, target)
        sync_folder(target.parent)
    except FileExistsError:
        raise UsageError(f"{target} is already there: choose another path") from None
    finally:
        for path in (draft, *(draft.with_name(draft.name + end) for end in ("-wal", "-shm"))):
            path.unlink(missing_ok=True)


def _restore_rows(source: Path, store: Store, described: Description) -> None:
    try:
        load_rows(store, source, lambda connection: _must_verify(connection, described))
    finally:
        store.close()


def _must_verify(connection: Connection, described: Description) -> None:
    report = examine(connection)
    if report.faults:
        first = report.faults[0]
        raise IntegrityError(f"the backup does not verify: {first.place}: {first.problem}: use another backup")
    if report.head != Head(described.events, described.head):
        raise IntegrityError("the backup ends at another event than its description says: use another backup")


def _copy_sqlite(source: Path, target: Path) -> Head:
    """SQLite's online backup in one step: one moment of the database, writers or not."""
    origin, copy = sqlite3.connect(source), sqlite3.connect(target)
    try:
        origin.backup(copy)
        head = Head(*copy.execute("SELECT seq, hash FROM audit_head").fetchone())
    finally:
        origin.close()
        copy.close()
    _into_one_file(target)
    return head


def _into_one_file(path: Path) -> None:
    """Moves what stands in the log beside a database into it; it is the next to open it that starts a log again."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        mode = connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
        if mode != "delete":
            raise VRBotError(f"{path}: is in use and cannot be copied whole: try again")
    finally:
        connection.close()


def _sealed(described: Description) -> str:
    content: dict[str, Any] = {"schema": SCHEMA_VERSION, **asdict(described)}
    own = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    return json.dumps({**content, "sha256_of_this": own}, indent=1, sort_keys=True) + "\n"


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
