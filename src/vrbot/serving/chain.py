"""The hash chain of the audit log: how a row, an event and the chain are fingerprinted, and the second place."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Table, type_coerce
from sqlalchemy.types import NullType

log = logging.getLogger(__name__)

GENESIS = "0" * 64
_LINE = re.compile(rb"([0-9]{1,18}) ([0-9a-f]{64})")
_TAGS: dict[type, str] = {type(None): "n", int: "i", str: "s", bytes: "b", float: "f"}


@dataclass(frozen=True)
class Head:
    """The last event of a chain, and the hash that vouches for all up to it."""

    seq: int
    hash: str


START = Head(0, GENESIS)


def event_hash(previous: str, body: str | bytes) -> str:
    """SHA-256 of the hash before and the event's canonical JSON."""
    content = body.encode("utf-8") if isinstance(body, str) else body
    return hashlib.sha256(bytes.fromhex(previous) + content).hexdigest()


def row_digest(table: str, row: Mapping[str, Any]) -> str:
    """SHA-256 of a row as the database driver gives it; no two different rows are written alike."""
    digest = hashlib.sha256(table.encode())
    for name in sorted(row):
        value = row[name]
        content = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        digest.update(f"|{name}:{_TAGS.get(type(value), 'x')}{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()


def raw_columns(table: Table) -> list[ColumnElement[Any]]:
    """The columns of a table as the driver gives them: what somebody has put there is not interpreted."""
    return [type_coerce(column, NullType()).label(column.name) for column in table.columns]


@dataclass(frozen=True)
class Noted:
    """What a second place has: heads in any order, and by their numbers the lines that are none."""

    heads: tuple[Head, ...]
    unreadable: Mapping[int, bytes]


class Witness(Protocol):
    """The second place where heads are kept, out of reach of who can change the database."""

    def note(self, head: Head) -> None:
        """Keeps a head that has been committed."""
        ...

    def noted(self) -> Noted:
        """All that was kept."""
        ...


class FileWitness:
    """A file with a line for every head; it only grows, and several processes may write to it.

    Put it on another disk or machine than the database: who can write to both can rewrite history.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, head: Head) -> None:
        """Appends one line; that it cannot be written is logged, since what it vouches for is committed already.

        A line before it that was cut short (a full disk, a lost connection) stays a line of its own.
        """
        line = _line(head).encode() + b"\n"
        try:
            descriptor = self._open()
            try:
                with suppress(OSError):  # some shared folders know no locks; whole lines are written at once anyway
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                _write_all(descriptor, line if _ends_whole(descriptor) else b"\n" + line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            log.error("the audit witness cannot be written: %s", error.strerror)

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except PermissionError:  # whoever writes need not be allowed to read
            return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def noted(self) -> Noted:
        """Every line; a last one without an end may still be being written, and is left out."""
        heads: list[Head] = []
        unreadable: dict[int, bytes] = {}
        for number, line in enumerate(self.path.read_bytes().split(b"\n")[:-1], start=1):
            match = _LINE.fullmatch(line)
            if match is not None:
                heads.append(Head(int(match[1]), match[2].decode("ascii")))
            elif line:
                unreadable[number] = line
        return Noted(tuple(heads), unreadable)


def is_cut_from(line: bytes, head: Head) -> bool:
    """Whether an unreadable line of a witness is the beginning of the one for this head."""
    return _line(head).encode().startswith(line)


def _line(head: Head) -> str:
    return f"{head.seq} {head.hash}"


def _ends_whole(descriptor: int) -> bool:
    """Whether what is there ends with a whole line, as far as it can be read."""
    size = os.fstat(descriptor).st_size
    try:
        return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
    except OSError:
        return False


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
