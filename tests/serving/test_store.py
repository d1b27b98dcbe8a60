"""The store: durable, private, of one revision; a change and its event are one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import insert, select, text

from tests.serving.conftest import OpenStore
from tests.serving.postgres import Server
from vrbot.errors import UsageError
from vrbot.serving import migrations
from vrbot.serving.actors import SYSTEM
from vrbot.serving.audit import verify
from vrbot.serving.chain import FileWitness, Head, Noted
from vrbot.serving.database import parse_address, shown_address
from vrbot.serving.problems import UnavailableError
from vrbot.serving.schema import audit_events, consultations, metadata, turns
from vrbot.serving.store import Store

NEW = {"owner": "ann", "language": "zh", "reference": "", "demo": 0, "opened_at": 1}


def test_sqlite_keeps_a_log_and_waits_for_the_disk(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(str(tmp_path / "new" / "desk.sqlite"), create=True)
    with store.reading() as connection:
        settings = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_postgres_waits_for_the_disk(postgres: Server, open_store: OpenStore) -> None:
    with open_store(postgres.new_database("ready")).reading() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"


def test_nobody_else_on_the_machine_can_read_the_files(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "desk.sqlite", create=True)
    with store.writing("test", SYSTEM) as writer:
        writer.insert(consultations, **NEW)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    store.close()
    assert set(modes.values()) == {0o600}
    assert {"desk.sqlite", "desk.sqlite-wal", "desk.sqlite.witness"} <= set(modes)


def test_the_migrations_lead_from_nothing_to_the_tables_of_the_schema(database: str, open_store: OpenStore) -> None:
    with open_store(database).reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_the_newest_migration_is_the_one_the_program_expects() -> None:
    folder = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert folder.get_heads() == [migrations.HEAD_REVISION]


def test_a_database_of_a_newer_program_is_refused(database: str, open_store: OpenStore) -> None:
    store = open_store(database)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(UsageError, match="9999, newer than this program"):
        open_store(database)


def test_what_is_not_there_is_made_only_on_request(tmp_path: Path, postgres: Server) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        Store.open(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
    with pytest.raises(UsageError, match="holds no consultations"):
        Store.open(postgres.new_database())


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(UnavailableError, match=r"ann:\*\*\*@127.0.0.1:1/desk") as caught:
        Store.open("postgresql+psycopg://ann:secret@127.0.0.1:1/desk")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("desk.sqlite", "sqlite:///desk.sqlite"),
        (Path("a b.sqlite"), "sqlite:///a b.sqlite"),
        ("postgresql://u:p@h/d", "postgresql+psycopg://u:***@h/d"),
        ("sqlite://", "sqlite://"),
    ],
)
def test_an_address_is_a_path_or_a_url(address: str | Path, shown: str) -> None:
    assert shown_address(parse_address(address)) == shown


@pytest.mark.parametrize("address", ["mysql://h/d", "://"])
def test_any_other_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError):
        parse_address(address)


def test_a_failed_transaction_leaves_neither_row_nor_event_nor_head(store: Store) -> None:
    head = store.head()
    with pytest.raises(ZeroDivisionError), store.writing("test", SYSTEM) as writer:
        _ = writer.insert(consultations, **NEW)["demo"] / 0
    with store.reading() as connection:
        assert connection.execute(select(consultations)).all() == []
    assert store.head() == head
    assert verify(store).good


def test_every_change_is_one_event_and_no_change_is_none(store: Store) -> None:
    with store.writing("two rows", SYSTEM) as writer:
        writer.insert(consultations, **NEW)
        writer.insert(consultations, **NEW)
    with store.writing("nothing", SYSTEM):
        pass
    with store.reading() as connection:
        assert connection.execute(select(audit_events.c.kind)).scalars().all() == ["two rows"]
    assert store.head().seq == 1


def test_a_column_that_does_not_exist_is_an_error(store: Store) -> None:
    with pytest.raises(TypeError, match="colour"), store.writing("test", SYSTEM) as writer:
        writer.insert(consultations, **NEW, colour="red")


def test_the_database_refuses_a_second_turn_with_a_number_and_says_no_values(store: Store) -> None:
    turn = {"consultation": "c", "seq": 1, "text": "canary", "text_sha256": "", "flags": "[]", "received_at": 1}
    with store.writing("test", SYSTEM) as writer:
        writer.insert(consultations, id="c", **NEW)
        writer.insert(turns, client_turn_id="a", received_by="ann", **turn)
    with pytest.raises(UnavailableError) as caught, store.writing("test", SYSTEM) as writer:
        writer.connection.execute(insert(turns), {"id": "x", "client_turn_id": "b", "received_by": "a", **turn})
    assert "canary" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_reader_sees_one_moment_while_others_write(store: Store) -> None:
    with store.reading() as connection:
        before = connection.execute(select(consultations)).all()
        with store.writing("test", SYSTEM) as writer:
            writer.insert(consultations, **NEW)
        assert connection.execute(select(consultations)).all() == before
    with store.reading() as connection:
        assert len(connection.execute(select(consultations)).all()) == 1


def test_a_witness_that_cannot_be_written_does_not_undo_what_was_stored(
    database: str, open_store: OpenStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(database, witness=tmp_path / "missing" / "witness")
    with store.writing("test", SYSTEM) as writer:
        writer.insert(consultations, **NEW)
    assert store.head().seq == 1
    assert "witness cannot be written" in caplog.text


def test_a_witness_keeps_every_head_but_half_a_line(tmp_path: Path) -> None:
    witness = FileWitness(tmp_path / "witness")
    heads = [Head(number, f"{number:064x}") for number in range(3)]
    for head in heads:
        witness.note(head)
    with witness.path.open("a") as file:
        file.write("3 00")
    assert witness.noted() == Noted(tuple(heads), {})
    witness.note(Head(4, f"{4:064x}"))
    assert witness.noted() == Noted((*heads, Head(4, f"{4:064x}")), {4: b"3 00"})
    assert witness.path.read_bytes().endswith(b"\n3 00\n4 " + b"4".rjust(64, b"0") + b"\n")


def test_a_disk_that_takes_a_line_in_pieces_gets_it_whole_and_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, synced = os.write, []
    monkeypatch.setattr(os, "write", lambda place, content: write(place, content[:7]))
    monkeypatch.setattr(os, "fsync", lambda place: synced.append(place))
    witness = FileWitness(tmp_path / "witness")
    heads = tuple(Head(number, f"{number:064x}") for number in (1, 2))
    for head in heads:
        witness.note(head)
    assert (witness.noted().heads, len(synced)) == (heads, 2)
