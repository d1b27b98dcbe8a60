"""A backup is one moment of the database, comes back as it was, and never in the place of something else."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import select

from tests.serving.conftest import OpenStore
from tests.serving.fakes import ANN, DeskAtWork
from tests.serving.postgres import Server
from vrbot.errors import IntegrityError, UsageError
from vrbot.serving.audit import verify
from vrbot.serving.backup import DESCRIPTION, back_up, restore
from vrbot.serving.chain import raw_columns
from vrbot.serving.migrations import HEAD_REVISION
from vrbot.serving.schema import AUDITED
from vrbot.serving.store import Store


def contents(store: Store) -> dict[str, list[tuple[object, ...]]]:
    with store.reading() as connection:
        return {
            table.name: sorted(tuple(row) for row in connection.execute(select(*raw_columns(table))).all())
            for table in AUDITED
        }


@pytest.fixture
def filled(work: DeskAtWork) -> Store:
    consultation = work.opened()
    draft = work.drafted(work.said(consultation, "头痛\0 a cough"))
    work.sent(work.desk.signoff.edit(ANN, draft.id, draft.text_sha256 or "", "Since when?"))
    return work.store


@pytest.mark.parametrize("portable", [False, True])
def test_what_was_backed_up_comes_back(portable: bool, filled: Store, tmp_path: Path, open_store: OpenStore) -> None:
    described = back_up(filled, tmp_path / "copy", portable=portable)
    assert described.events == filled.head().seq
    restore(tmp_path / "copy", tmp_path / "restored.sqlite")
    restored = open_store(str(tmp_path / "restored.sqlite"), witness=None)
    assert contents(restored) == contents(filled)
    assert verify(restored).good
    assert restored.head().seq == described.events + 1


def test_rows_go_from_sqlite_to_postgres(
    filled: Store, tmp_path: Path, postgres: Server, open_store: OpenStore
) -> None:
    back_up(filled, tmp_path / "copy", portable=True)
    target = postgres.new_database()
    restore(tmp_path / "copy", target)
    assert contents(open_store(target)) == contents(filled)
    with pytest.raises(UsageError, match="holds data already"):
        restore(tmp_path / "copy", target)


def test_a_backup_made_while_others_write_is_one_moment(work: DeskAtWork, tmp_path: Path) -> None:
    consultation = work.opened()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            work.said(consultation, "more " * 100)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [back_up(work.store, tmp_path / f"copy{number}") for number in range(3)]
    finally:
        stop.set()
        writer.join()
    for number, described in enumerate(made):
        assert restore(tmp_path / f"copy{number}", tmp_path / f"{number}.sqlite") == described


def test_nothing_is_overwritten(filled: Store, tmp_path: Path) -> None:
    back_up(filled, tmp_path / "copy", portable=True)
    with pytest.raises(UsageError, match="copy is already there"):
        back_up(filled, tmp_path / "copy")
    for name, reason in (("desk.sqlite", "already there"), ("new.sqlite.witness", "witness of another")):
        (tmp_path / name).write_text("mine")
        with pytest.raises(UsageError, match=reason):
            restore(tmp_path / "copy", tmp_path / name.removesuffix(".witness"))
        assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("portable", [False, True])
def test_a_damaged_backup_is_refused_and_leaves_nothing(portable: bool, filled: Store, tmp_path: Path) -> None:
    back_up(filled, tmp_path / "copy", portable=portable)
    before = sorted(tmp_path.iterdir())
    for path in sorted((tmp_path / "copy").iterdir()):
        good = path.read_bytes()
        for damaged in (good[:-1], good + b"\n", bytes([good[0] ^ 1]) + good[1:], good[:50] + b"9" + good[51:]):
            if damaged == good:
                continue
            path.write_bytes(damaged)
            with pytest.raises(IntegrityError, match=path.name.replace(".", r"\.")):
                restore(tmp_path / "copy", tmp_path / "new.sqlite")
        path.unlink()
        with pytest.raises(IntegrityError):
            restore(tmp_path / "copy", tmp_path / "new.sqlite")
        path.write_bytes(good)
    assert sorted(tmp_path.iterdir()) == before


def test_a_backup_of_a_database_that_was_tampered_with_does_not_restore(filled: Store, tmp_path: Path) -> None:
    with filled.engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.exec_driver_sql("UPDATE turns SET received_by = 'nobody'")
    for portable in (False, True):
        folder = tmp_path / f"copy{portable}"
        back_up(filled, folder, portable=portable)
        with pytest.raises(IntegrityError, match=r"does not verify: turns .* was changed"):
            restore(folder, tmp_path / "new.sqlite")
    assert not list(tmp_path.glob("*new.sqlite*"))


def test_a_description_of_another_version_is_refused(filled: Store, tmp_path: Path) -> None:
    back_up(filled, tmp_path / "copy")
    path = tmp_path / "copy" / DESCRIPTION
    path.write_text(path.read_text().replace(f'"revision": "{HEAD_REVISION}"', '"revision": "0000"'))
    with pytest.raises(IntegrityError, match="another version"):
        restore(tmp_path / "copy", tmp_path / "new.sqlite")
