"""The hash chain of the audit log: how a row, an event and the chain are fingerprinted, and the second place."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Table, type_coerce
from sqlalchemy.types import NullType

log = logging.getLogger(__name__)

GENESIS = "0" * 64
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


class Witness(Protocol):
    """The second place where heads are kept, out of reach of who can change the database."""

    def note(self, head: Head) -> None:
        """Keeps a head that has been committed."""
        ...

    def heads(self) -> list[Head]:
        """All that were kept, in any order; ValueError names what cannot be read."""
        ...


class FileWitness:
    """A file with a line for every head; it only grows, and several processes may write to it.

    Put it on another disk or machine than the database: who can write to both can rewrite history.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, head: Head) -> None:
        """Appends one line; that it cannot be written is logged, since what it vouches for is committed already."""
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, f"{head.seq} {head.hash}\n".encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            log.error("the audit witness cannot be written: %s", error.strerror)

    def heads(self) -> list[Head]:
        """Every line; a last one that was cut short is left out."""
        content = self.path.read_bytes()
        found = []
        for number, line in enumerate(content.split(b"\n")[:-1], start=1):
            parts = line.split(b" ")
            if len(parts) != 2 or not parts[0].isdigit() or len(parts[1]) != 64:
                raise ValueError(f"{self.path}: line {number} is not a number and a hash")
            found.append(Head(int(parts[0]), parts[1].decode("ascii", "replace")))
        return found
