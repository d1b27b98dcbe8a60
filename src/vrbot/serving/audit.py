"""Verifying the audit log: the chain is whole, every row is as an event left it, and the second place agrees.

Found: any event or row changed, removed, added or moved; events cut off at the end (by the head in the database, and by
the witness where the head was set back too); a chain computed anew (by the witness). A line of the witness that is the
beginning of one it should have was cut short by a crash, and is noted; any other that cannot be read is a fault. Not
found, because nothing is left to find it by: a cut, a new chain, or well-formed events added after the last head the
witness has (`unwitnessed` counts them; more than a crash explains are suspect); and anything by somebody who can write
to the database and the witness both. Keep the witness where the database's administrator cannot write.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from vrbot.serving.chain import START, Head, Witness, event_hash, is_cut_from, raw_columns, row_digest
from vrbot.serving.problems import UnavailableError
from vrbot.serving.schema import AUDITED, audit_events, audit_head
from vrbot.serving.store import Store, read_head

MOST_FAULTS = 100
AT_ONCE = 500


@dataclass(frozen=True)
class Fault:
    """One thing that is not as it was written."""

    place: str
    problem: str


@dataclass(frozen=True)
class AuditReport:
    """What verification saw; the log is good if there are no faults (of which the first hundred are kept).

    `notes` are what is not as it should be and yet no sign of tampering: lines of the witness that were cut short.
    """

    events: int
    rows: int
    head: Head
    witnessed: int | None
    unwitnessed: int | None
    faults: tuple[Fault, ...]
    notes: tuple[Fault, ...] = ()

    @property
    def good(self) -> bool:
        return not self.faults


class _Log:
    """Collects faults, and what the events say the tables hold."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.expected: dict[tuple[str, str], str] = {}
        self.notes: list[Fault] = []
        self.unreadable: dict[int, bytes] = {}
        self.witness_is_missing = False

    def tell_cut_lines(self, head: Head) -> None:
        """Takes note of lines of the witness that are the beginning of the one for this head."""
        for number in [number for number, line in self.unreadable.items() if is_cut_from(line, head)]:
            del self.unreadable[number]
            self.notes.append(Fault("witness", f"line {number} was cut short, it may be of event {head.seq}"))

    def blame(self, place: str, problem: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(place, problem))


def verify(store: Store, witness: Witness | None = None) -> AuditReport:
    """Reads everything once, as of one moment; the witness is the store's own unless another is given.

    The witness is read first: what is written meanwhile makes the chain longer than it knows, which is no fault.
    """
    log = _Log()
    witnessed = _witnessed(witness or store.witness, log)
    try:
        with store.reading() as connection:
            if log.witness_is_missing and read_head(connection) != START:
                log.blame("witness", "is missing: the second place is gone")
            report = examine(connection, witnessed, log)
    except UnavailableError as error:
        log.blame("database", f"cannot be read: {error}")
        return AuditReport(0, 0, START, None, None, tuple(log.faults))
    for note in report.notes:
        logging.getLogger(__name__).warning("the audit %s: %s", note.place, note.problem)
    return report


def examine(connection: Connection, witnessed: dict[int, str] | None = None, log: _Log | None = None) -> AuditReport:
    """As `verify`, inside a transaction of the caller's."""
    log = log or _Log()
    known = None if witnessed is None else len(witnessed)
    newest = max(witnessed or {0: ""})
    head = _verify_chain(connection, witnessed, log)
    rows = sum(_verify_table(connection, table, log) for table in AUDITED)
    for table, key in log.expected:
        log.blame(f"{table} {key}", "was removed")
    unseen = None if witnessed is None else max(0, head.seq - newest)
    return AuditReport(head.seq, rows, head, known, unseen, tuple(log.faults), tuple(log.notes))


def _witnessed(witness: Witness | None, log: _Log) -> dict[int, str] | None:
    if witness is None:
        return None
    found: dict[int, str] = {}
    try:
        noted = witness.noted()
        log.unreadable = dict(noted.unreadable)
        for head in noted.heads:
            if found.setdefault(head.seq, head.hash) != head.hash:
                log.blame("witness", f"has two heads for event {head.seq}")
    except FileNotFoundError:
        log.witness_is_missing = True  # as it is before the first event
    except OSError as error:
        log.blame("witness", f"cannot be read: {error}")
    return found


def _verify_chain(connection: Connection, witnessed: dict[int, str] | None, log: _Log) -> Head:
    last = START
    for row in _rows(connection, select(*raw_columns(audit_events)).order_by(audit_events.c.seq)):
        last = _verify_event(row, last, log)
        if witnessed is not None and witnessed.pop(last.seq, last.hash) != last.hash:
            log.blame(f"event {last.seq}", "has another hash than the witness saw")
        log.tell_cut_lines(last)
    for number in log.unreadable:
        log.blame("witness", f"cannot be read: line {number} is not a number and a hash")
    heads = connection.execute(select(*raw_columns(audit_head))).all()
    if [tuple(head) for head in heads] != [(1, last.seq, last.hash)]:
        log.blame("audit_head", f"does not name event {last.seq}, the last there is")
    if witnessed and max(witnessed) > last.seq:
        log.blame("audit_events", f"end at {last.seq}, but the witness saw event {max(witnessed)}")
    return last


def _verify_event(row: dict[str, Any], last: Head, log: _Log) -> Head:
    """Checks one event against the one before; what follows is checked against what is stored, to find all faults."""
    seq = last.seq + 1
    place = f"event {seq}"
    if row["seq"] != seq:
        log.blame(place, f"is missing: event {row['seq']} follows event {last.seq}")
    body = row["body"]
    if not isinstance(body, bytes) or event_hash(last.hash, body) != row["hash"]:
        log.blame(place, "was changed, or does not follow the event before it")
    try:
        event = json.loads(body)
        if (event["seq"], event["kind"], event["consultation"]) != (row["seq"], row["kind"], row["consultation"]):
            log.blame(place, "has columns that differ from its body")
        for table, key, digest in event["rows"]:
            log.expected.pop((table, key), None)
            if digest is not None:
                log.expected[table, key] = digest
    except (ValueError, KeyError, TypeError):
        log.blame(place, "cannot be read")
    stored = row["hash"]
    good = isinstance(stored, str) and len(stored) == 64 and set(stored) <= set("0123456789abcdef")
    return Head(row["seq"] if isinstance(row["seq"], int) else seq, stored if good else START.hash)


def _verify_table(connection: Connection, table: Any, log: _Log) -> int:
    count = 0
    for row in _rows(connection, select(*raw_columns(table))):
        count += 1
        expected = log.expected.pop((table.name, row["id"]), None)
        if expected is None:
            log.blame(f"{table.name} {row['id']}", "was added, or its id was changed")
        elif row_digest(table.name, row) != expected:
            log.blame(f"{table.name} {row['id']}", "was changed")
    return count


def _rows(connection: Connection, query: Any) -> Iterator[dict[str, Any]]:
    """The rows of a query, a few hundred at a time."""
    for row in connection.execute(query, execution_options={"yield_per": AT_ONCE}).mappings():
        yield dict(row)
