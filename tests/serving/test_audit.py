"""Single tamperings, by name, and what the report says of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.serving.fakes import DeskAtWork
from vrbot.serving.audit import AuditReport, verify
from vrbot.serving.chain import FileWitness
from vrbot.serving.store import Store


def change(store: Store, statement: str, **values: Any) -> AuditReport:
    """Somebody with the database in their hands does something; what verification says then."""
    with store.engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(text(statement), values)
    return verify(store)


def faults(report: AuditReport) -> str:
    return "; ".join(f"{fault.place}: {fault.problem}" for fault in report.faults)


@pytest.fixture
def used(work: DeskAtWork) -> Store:
    consultation = work.opened()
    for number in range(3):
        work.sent(work.drafted(work.said(consultation, f"a cough {number}")))
    assert verify(work.store).good
    return work.store


def test_the_report_counts_what_it_has_seen(used: Store) -> None:
    report = verify(used)
    assert (report.events, report.rows, report.witnessed, report.unwitnessed) == (11, 13, 11, 0)
    assert report.head == used.head()


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE turns SET text = :new WHERE seq = 2", "turns .*: was changed"),
        ("UPDATE turns SET received_at = received_at + 1 WHERE seq = 2", "turns .*: was changed"),
        ("DELETE FROM messages WHERE id IN (SELECT MIN(id) FROM messages)", "messages .*: was removed"),
        ("UPDATE audit_events SET kind = 'quiet' WHERE seq = 3", "event 3: has columns that differ"),
        ("UPDATE audit_events SET body = :new WHERE seq = 3", "event 3: was changed"),
        ("DELETE FROM audit_events WHERE seq = 3", "event 3: is missing: event 4 follows event 2"),
        ("UPDATE audit_events SET seq = 99 WHERE seq = 3", "event 3: is missing"),
        ("DELETE FROM audit_events WHERE seq > 9", "audit_head: does not name event 9.*the witness saw event 11"),
        ("UPDATE audit_head SET seq = 10", "audit_head: does not name event 11"),
        ("DELETE FROM audit_head", "audit_head: does not name"),
    ],
)
def test_a_tampering_is_named_by_its_place(statement: str, found: str, used: Store) -> None:
    report = change(used, statement, **({"new": b"{}\xff"} if ":new" in statement else {}))
    assert not report.good
    assert re.search(found, faults(report))


def test_a_witness_that_disagrees_is_a_fault(used: Store, tmp_path: Path) -> None:
    assert isinstance(used.witness, FileWitness)
    lines = used.witness.path.read_text().splitlines()
    other = tmp_path / "other.witness"
    other.write_text("\n".join([*lines[:4], "5 " + "0" * 64, *lines[5:]]) + "\n")
    assert "event 5: has another hash than the witness saw" in faults(verify(used, FileWitness(other)))
    assert "is missing" in faults(verify(used, FileWitness(tmp_path / "none")))
    other.write_text("nonsense\n")
    assert "witness: cannot be read" in faults(verify(used, FileWitness(other)))


def test_a_line_of_the_witness_that_was_cut_short_is_told_and_is_no_alarm(work: DeskAtWork) -> None:
    assert isinstance(work.store.witness, FileWitness)
    path = work.store.witness.path
    consultation = work.opened()
    for number, length in enumerate((0, 1, 2, 30, 65), start=1):
        work.said(consultation, f"a cough {number}")
        *before, last = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(before) + last[:length])
    work.said(consultation, "the last")
    report = verify(work.store)
    assert (report.good, report.witnessed, report.unwitnessed) == (True, 3, 0)
    assert [note.problem.partition(",")[0] for note in report.notes] == [
        f"line {line} was cut short" for line in (3, 4, 5, 6)
    ]
    assert not change(work.store, "UPDATE turns SET received_at = 1 WHERE seq = 2").good


@pytest.mark.parametrize("line", ["nonsense", "3 zz", "3 " + "0" * 65, "99999 00"])
def test_a_line_of_the_witness_that_is_no_beginning_of_one_is_a_fault_and_the_others_still_count(
    line: str, used: Store
) -> None:
    assert isinstance(used.witness, FileWitness)
    path = used.witness.path
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    report = verify(used)
    assert [fault.problem for fault in report.faults] == ["cannot be read: line 3 is not a number and a hash"]
    assert (report.witnessed, report.notes) == (11, ())
    report = change(used, "DELETE FROM audit_events WHERE seq > 9")
    assert "the witness saw event 11" in faults(report)


def test_events_the_witness_has_not_seen_are_counted(used: Store) -> None:
    assert isinstance(used.witness, FileWitness)
    path = used.witness.path
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-2]))
    report = verify(used)
    assert report.good
    assert (report.witnessed, report.unwitnessed) == (9, 2)


def test_a_damaged_sqlite_file_is_a_fault_and_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "desk.sqlite"
    store = Store.open(path, create=True)
    work = DeskAtWork(store)
    for number in range(40):
        work.said(work.opened(), f"a cough {number} " * 50)
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 12 : 4096 * 20] = b"\xa5" * 4096 * 8
    path.write_bytes(content)
    damaged = Store.open(path)
    assert not verify(damaged).good
    damaged.close()
