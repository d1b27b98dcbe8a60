"""Tampers with a desk's database and verifies: `python -m benchmarks.tampering --tamperings 10000 [--json FILE]`.

Each tampering is made in a transaction, looked for inside it, and rolled back: values changed, rows removed, added and
swapped, events reordered, cut off at the end with and without their traces, and whole chains computed anew.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, LargeBinary, String, Table, select, text
from sqlalchemy.exc import DBAPIError
from tests.serving.fakes import ANN, EVE, SUE, DeskAtWork, quick_accounts

from vrbot.serving.audit import examine
from vrbot.serving.chain import GENESIS, event_hash, raw_columns
from vrbot.serving.database import POSTGRES
from vrbot.serving.schema import AUDITED, audit_events, audit_head
from vrbot.serving.store import Store
from vrbot.serving.texts import ExactText

TABLES = (*AUDITED, audit_events, audit_events, audit_head)
Tampering = Callable[[Connection, random.Random], bool]
"""Changes something; False if there was nothing to change."""


@dataclass(frozen=True)
class Figures:
    """How often each kind was tried, and what was not found."""

    tried: Counter[str]
    missed: tuple[str, ...]


def furnish(store: Store, consultations: int = 3) -> None:
    """Some of everything a database can hold."""
    work = DeskAtWork(store)
    accounts = quick_accounts(store)
    accounts.add(SUE, "ann", "a long password", "physician")
    accounts.sign_in("ann", "a long password")
    for number in range(consultations):
        consultation = work.opened()
        first, second = work.said(consultation, f"a cough {number}"), work.said(consultation, "crash\0")
        draft = work.drafted(first)
        edited = work.desk.signoff.edit(ANN, draft.id, draft.text_sha256 or "", f"Since when? {number}")
        work.sent(edited)
        work.drafted(second)
        work.desk.signoff.reject(ANN, work.desk.drafting.write(ANN, second.id, "Rest.").id, "no")
        work.desk.annotation.label(ANN, first.id, "state", ["cough"])
        order = work.desk.ratings.order(EVE, "pilot", f"item{number}", ["a", "b"], random.Random(number))
        work.desk.ratings.rate(EVE, order, "fluency", 0, 3)


def tampering_campaign(store: Store, tamperings: int, seed: int) -> Figures:
    """Tampers and verifies; what cannot be done (a constraint forbids it) is not counted."""
    furnish(store)
    chance = random.Random(seed)
    assert store.witness is not None
    witnessed = {head.seq: head.hash for head in store.witness.noted().heads}
    tried: Counter[str] = Counter()
    missed = []
    with store.engine.connect().execution_options(writing=True) as connection:
        _without_references(connection)
        while tried.total() < tamperings:
            kind, tamper = chance.choice(TAMPERINGS)
            with connection.begin() as transaction:
                try:
                    if tamper(connection, chance):
                        tried[kind] += 1
                        if examine(connection, dict(witnessed)).good:
                            missed.append(f"{kind} ({tried.total()})")
                except DBAPIError:
                    pass
                transaction.rollback()
    return Figures(tried, tuple(missed))


def _without_references(connection: Connection) -> None:
    """Somebody with the database in their hands is not stopped by its foreign keys."""
    postgres = connection.dialect.name == POSTGRES
    statement = "SET session_replication_role = replica" if postgres else "PRAGMA foreign_keys=OFF"
    driver: Any = connection.connection.driver_connection
    driver.execute(statement)
    if postgres:
        driver.commit()


def _pick(connection: Connection, table: Table, chance: random.Random, count: int = 1) -> list[dict[str, Any]]:
    rows = connection.execute(select(*raw_columns(table)).order_by(*table.primary_key)).mappings().all()
    return [dict(row) for row in chance.sample(rows, min(count, len(rows)))]


def _set(connection: Connection, table: Table, row: dict[str, Any], name: str, value: Any) -> bool:
    key = next(iter(table.primary_key)).name
    statement = f'UPDATE {table.name} SET "{name}" = :new WHERE {key} = :old'
    connection.execute(text(statement), {"new": value, "old": row[key]})
    return True


def _other(value: Any, kind: Any, chance: random.Random) -> Any:
    """Another value for a column."""
    if value is None:
        return b"new" if isinstance(kind, ExactText | LargeBinary) else "new" if isinstance(kind, String) else 7
    if isinstance(value, int):
        return value + chance.choice([-1, 1, 1000])
    place = chance.randrange(len(value) + 1)
    if isinstance(value, bytes):
        flipped = bytearray(value or b"\0")
        flipped[min(place, len(flipped) - 1)] ^= 1 << chance.randrange(8)
        return chance.choice([bytes(flipped), value + b"\0", value[:place] + b" " + value[place:]])
    return value[:place] + chance.choice("abc019") + value[place + 1 :]


def change_a_value(connection: Connection, chance: random.Random) -> bool:
    table = chance.choice(TABLES)
    column = chance.choice(list(table.columns))
    for row in _pick(connection, table, chance):
        value = _other(row[column.name], column.type, chance)
        return value != row[column.name] and _set(connection, table, row, column.name, value)
    return False


def remove_a_row(connection: Connection, chance: random.Random) -> bool:
    table = chance.choice(TABLES)
    for row in _pick(connection, table, chance):
        key = next(iter(table.primary_key))
        connection.execute(table.delete().where(key == row[key.name]))
        return True
    return False


def add_a_row(connection: Connection, chance: random.Random) -> bool:
    table = chance.choice(TABLES)
    for row in _pick(connection, table, chance):
        for name in ("id", "name", "client_turn_id", "item", "draft", "decision", "turn", "rating_order"):
            if name in row and table is not audit_head:
                row[name] = f"x{chance.randrange(10**9)}"
        for name in ("seq", "version", "number"):
            if name in row:
                row[name] += 1000
        row |= {"id": 2} if table is audit_head else {}
        columns = ", ".join(f'"{name}"' for name in row)
        values = ", ".join(f":{name}" for name in row)
        connection.execute(text(f"INSERT INTO {table.name} ({columns}) VALUES ({values})"), row)
        return True
    return False


def swap_values(connection: Connection, chance: random.Random) -> bool:
    table = chance.choice(TABLES)
    column = chance.choice([column for column in table.columns if not column.primary_key])
    rows = _pick(connection, table, chance, 2)
    if len(rows) < 2 or rows[0][column.name] == rows[1][column.name]:
        return False
    _set(connection, table, rows[0], column.name, rows[1][column.name])
    return _set(connection, table, rows[1], column.name, rows[0][column.name])


def reorder_events(connection: Connection, chance: random.Random) -> bool:
    one, two = _pick(connection, audit_events, chance, 2)
    move = text("UPDATE audit_events SET seq = :new WHERE seq = :old")
    for old, new in ((one["seq"], -1), (two["seq"], one["seq"]), (-1, two["seq"])):
        connection.execute(move, {"old": old, "new": new})
    return True


def cut_off_events(connection: Connection, chance: random.Random) -> bool:
    """The last events are gone; the head still knows of them."""
    last = connection.execute(select(audit_events.c.seq).order_by(audit_events.c.seq.desc())).scalars().first() or 0
    connection.execute(audit_events.delete().where(audit_events.c.seq > last - chance.randint(1, last)))
    return True


def cut_off_history(connection: Connection, chance: random.Random) -> bool:
    """The last events are gone, and so is every row they made; the head is set back: only the witness knows."""
    rows = connection.execute(select(audit_events).order_by(audit_events.c.seq)).all()
    kept = chance.randrange(1, len(rows))
    alive: dict[tuple[str, str], int] = {}
    for event in rows:
        for table, key, _ in json.loads(event.body)["rows"]:
            alive.setdefault((table, key), event.seq)
    for table in reversed(AUDITED):
        for (name, key), seq in alive.items():
            if name == table.name and seq > kept:
                connection.execute(table.delete().where(table.c.id == key))
    connection.execute(audit_events.delete().where(audit_events.c.seq > kept))
    connection.execute(audit_head.update().values(seq=kept, hash=rows[kept - 1].hash))
    return True


def rewrite_history(connection: Connection, chance: random.Random) -> bool:
    """One event is changed and all hashes are computed anew: only the witness knows."""
    rows = connection.execute(select(audit_events).order_by(audit_events.c.seq)).all()
    changed, previous = chance.randrange(len(rows)), GENESIS
    for index, event in enumerate(rows):
        body = event.body
        if index == changed:
            content = json.loads(body)
            content["at"] += chance.randint(1, 10**6)
            body = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        previous = event_hash(previous, body)
        if index >= changed:
            new = {"body": body, "hash": previous}
            connection.execute(audit_events.update().where(audit_events.c.seq == event.seq).values(**new))
    connection.execute(audit_head.update().values(hash=previous))
    return True


TAMPERINGS: list[tuple[str, Tampering]] = [
    ("value changed", change_a_value),
    ("value changed", change_a_value),
    ("value changed", change_a_value),
    ("row removed", remove_a_row),
    ("row added", add_a_row),
    ("values swapped", swap_values),
    ("events reordered", reorder_events),
    ("events cut off", cut_off_events),
    ("history cut off", cut_off_history),
    ("history rewritten", rewrite_history),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tamperings", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        store = Store.open(Path(name) / "desk.sqlite", create=True)
        found = tampering_campaign(store, args.tamperings, args.seed)
        store.close()
    figures = {
        "tamperings": found.tried.total(),
        "by_kind": dict(found.tried),
        "missed": list(found.missed),
        "seconds": round(time.perf_counter() - started, 1),
    }
    document = json.dumps(figures, indent=2)
    if args.json is not None:
        args.json.write_text(document + "\n", encoding="utf-8")
    print(document)
    sys.exit(1 if found.missed else 0)


if __name__ == "__main__":
    main()
