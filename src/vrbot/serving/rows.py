"""Every row of the tables as lines of JSON, and back: no database program is needed, and either database will do."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select

from vrbot.errors import IntegrityError, UsageError
from vrbot.serving.chain import Head
from vrbot.serving.database import plain_errors, shown_address
from vrbot.serving.schema import audit_head, drafts, metadata
from vrbot.serving.store import Store, read_head
from vrbot.serving.texts import canonical_json

AT_ONCE = 500
TABLES = metadata.sorted_tables


def write_rows(store: Store, path: Path) -> Head:
    """All rows as of one moment, each line a table's name and a row; the head of the chain at that moment."""
    with store.reading() as connection, gzip.GzipFile(path, "wb", mtime=0) as file:
        for table in TABLES:
            try:
                query = connection.execute(_in_order(table), execution_options={"yield_per": AT_ONCE})
                for row in query.mappings():
                    file.write(canonical_json([table.name, dict(row)]).encode("utf-8") + b"\n")
            except UnicodeDecodeError:
                raise IntegrityError(f"a row of {table.name} is not text: run `vrbot audit verify`") from None
        return read_head(connection)


def load_rows(store: Store, path: Path, check: Callable[[Connection], None]) -> None:
    """Puts the rows into a database without any; if `check` finds fault with them, nothing was put there."""
    writing = store.engine.connect().execution_options(writing=True)
    with plain_errors(store.url), writing as connection, connection.begin():
        for table in TABLES:
            if table is not audit_head and connection.execute(select(func.count()).select_from(table)).scalar_one():
                raise UsageError(f"{shown_address(store.url)} holds data already: restore to an empty database")
        connection.execute(delete(audit_head))
        for table, rows in _read(path):
            connection.execute(insert(table), rows)
        check(connection)


def _in_order(table: Table) -> Any:
    """All rows of a table, those others refer to first."""
    query = select(table)
    return query.order_by(table.c.turn, table.c.version) if table is drafts else query.order_by(*table.primary_key)


def _read(path: Path) -> Iterator[tuple[Table, list[dict[str, Any]]]]:
    """Rows of one table at a time, a few hundred together."""
    waiting: list[dict[str, Any]] = []
    current: Table | None = None
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                name, row = json.loads(line)
                table = metadata.tables[name]
                if current is not None and (table is not current or len(waiting) >= AT_ONCE):
                    yield current, waiting
                    waiting = []
                current = table
                waiting.append(row)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(f"{path}: cannot be read ({type(error).__name__}): use another backup") from None
    if current is not None:
        yield current, waiting
