"""The store: every change is one transaction that ends with its event in the audit chain, or did not happen.

Whoever writes holds the head of the chain first (SQLite: the write lock; PostgreSQL: the row of the head), so writers
take turns, numbers have no gaps, and the order of events is the order of commits.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL, Connection, Engine, Table, insert, select, update

from vrbot.serving.actors import Actor
from vrbot.serving.chain import START, FileWitness, Head, Witness, event_hash, raw_columns, row_digest
from vrbot.serving.database import POSTGRES, connect, parse_address, plain_errors, sqlite_file
from vrbot.serving.schema import audit_events, audit_head
from vrbot.serving.texts import ExactText, canonical_json

Clock = Callable[[], int]
"""Microseconds since 1970."""


def wall_clock() -> int:
    """The time of this machine."""
    return time.time_ns() // 1000


class Writer:
    """What one transaction may do; all it does is listed in the event that ends it."""

    def __init__(self, connection: Connection, now: int, new_id: Callable[[], str], consultation: str | None) -> None:
        self.connection, self.now, self.new_id, self.consultation = connection, now, new_id, consultation
        self.rows: list[tuple[str, str, str | None]] = []
        self.detail: dict[str, Any] = {}

    def insert(self, table: Table, **values: Any) -> dict[str, Any]:
        """A new row, whole: columns not named are NULL; an id is made if there is none."""
        row = {column.name: values.pop(column.name, None) for column in table.columns}
        if values:
            raise TypeError(f"{table.name} has no column {min(values)!r}")
        row["id"] = row["id"] or self.new_id()
        self.connection.execute(insert(table), row)
        self.rows.append((table.name, row["id"], row_digest(table.name, _raw(table, row))))
        return row

    def update(self, table: Table, key: str, **values: Any) -> None:
        """New values in a row that is there."""
        self.connection.execute(update(table).where(table.c.id == key).values(**values))
        row = self.connection.execute(select(*raw_columns(table)).where(table.c.id == key)).mappings().one()
        self.rows.append((table.name, key, row_digest(table.name, dict(row))))

    def delete(self, table: Table, key: str) -> None:
        """Removes a row."""
        self.connection.execute(table.delete().where(table.c.id == key))
        self.rows.append((table.name, key, None))


class Store:
    """An open database."""

    def __init__(
        self,
        engine: Engine,
        witness: Witness | None = None,
        clock: Clock = wall_clock,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.engine, self.witness, self.clock, self.new_id = engine, witness, clock, new_id
        on_postgres = engine.dialect.name == POSTGRES
        self._turnstile = nullcontext() if on_postgres else threading.Lock()  # threads of SQLite would wait by polling
        # In memory there is one connection only, and readers must not see what a writer has not committed.
        self._alone = threading.RLock() if not on_postgres and sqlite_file(engine.url) is None else nullcontext()

    @classmethod
    def open(
        cls,
        address: str | Path | URL,
        *,
        create: bool = False,
        witness: Path | None = None,
        clock: Clock = wall_clock,
    ) -> Self:
        """The store at a path or URL; heads go to `witness`, for SQLite by default into a file beside the database."""
        url = parse_address(address)
        place = witness or default_witness(url)
        return cls(connect(url, create=create), FileWitness(place) if place else None, clock)

    @property
    def url(self) -> URL:
        return self.engine.url

    def close(self) -> None:
        """Lets go of all connections."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One moment of the database, however long the block looks at it."""
        with plain_errors(self.url), self._alone, self.engine.connect() as connection:
            if connection.dialect.name == POSTGRES:
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self, kind: str, actor: Actor, consultation: str | None = None) -> Iterator[Writer]:
        """A transaction that ends with an event of this kind; none if nothing was written, nor `detail` filled."""
        head = None
        with plain_errors(self.url), self._turnstile, self._alone, self.engine.connect() as connection:
            connection.execution_options(writing=True)
            with connection.begin():
                before = _hold_head(connection)
                writer = Writer(connection, self.clock(), self.new_id, consultation)
                yield writer
                if writer.rows or writer.detail:
                    head = _append_event(writer, before, kind, actor)
        if head is not None and self.witness is not None:
            self.witness.note(head)

    def head(self) -> Head:
        """The last event so far."""
        with self.reading() as connection:
            return read_head(connection)


def default_witness(url: URL) -> Path | None:
    """Where heads are kept unless somebody says otherwise: beside a SQLite file."""
    path = sqlite_file(url)
    return None if path is None else path.with_name(path.name + ".witness")


def read_head(connection: Connection) -> Head:
    """The head as the database has it; the start of all chains where there is none."""
    row = connection.execute(select(audit_head.c.seq, audit_head.c.hash).where(audit_head.c.id == 1)).one_or_none()
    return START if row is None else Head(row.seq, row.hash)


def _hold_head(connection: Connection) -> Head:
    """The head, and the lock on it until the transaction ends; migrations have put the first one there."""
    query = select(audit_head.c.seq, audit_head.c.hash).where(audit_head.c.id == 1).with_for_update()
    row = connection.execute(query).one()
    return Head(row.seq, row.hash)


def _append_event(writer: Writer, before: Head, kind: str, actor: Actor) -> Head:
    seq = before.seq + 1
    body = canonical_json(
        {
            "seq": seq,
            "at": writer.now,
            "kind": kind,
            "actor": actor.id,
            "role": actor.role,
            "consultation": writer.consultation,
            "rows": writer.rows,
            "detail": writer.detail,
        }
    )
    head = Head(seq, event_hash(before.hash, body))
    values = {"seq": seq, "kind": kind, "consultation": writer.consultation, "body": body, "hash": head.hash}
    writer.connection.execute(insert(audit_events), values)
    writer.connection.execute(update(audit_head).where(audit_head.c.id == 1).values(seq=seq, hash=head.hash))
    return head


def _raw(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """A row as the driver will give it back."""
    exact = {column.name for column in table.columns if isinstance(column.type, ExactText)}
    return {
        name: value.encode("utf-8") if name in exact and value is not None else value for name, value in row.items()
    }
