"""A database by its address, SQLite or PostgreSQL: how durable, how private, at which revision."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import StaticPool

from vrbot.errors import UsageError
from vrbot.files import sync_folder
from vrbot.serving.migrations import HEAD_REVISION, upgrade
from vrbot.serving.problems import UnavailableError

SQLITE, POSTGRES = "sqlite", "postgresql"
WAIT_SECONDS = 30
LOGGING_NAME = "desk"
_MIGRATION_LOCK = 7_265_802_611  # any number that no other program on the same PostgreSQL uses
_migrating = threading.Lock()


def parse_address(address: str | Path | URL) -> URL:
    """The URL of a database; a plain path is a SQLite file."""
    if isinstance(address, Path) or (isinstance(address, str) and "://" not in address):
        return URL.create("sqlite", database=str(address))
    try:
        url = make_url(address)
    except ArgumentError:
        raise UsageError("the database address cannot be read: give a path, or postgresql+psycopg://...") from None
    if url.get_backend_name() == POSTGRES:
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != SQLITE:
        raise UsageError(f"{url.drivername!r} is not a database this can use: sqlite:///PATH or postgresql+psycopg://")
    return url


def sqlite_file(url: URL) -> Path | None:
    """The file of a SQLite database; None for one in memory, and for PostgreSQL."""
    named = url.get_backend_name() == SQLITE and url.database not in (None, "", ":memory:")
    return Path(str(url.database)) if named else None


def shown_address(url: URL) -> str:
    """The address without its password."""
    return url.render_as_string(hide_password=True)


def connect(url: URL, *, create: bool) -> Engine:
    """An engine whose database is at the newest revision; an empty one is set up only if `create` says so."""
    path = sqlite_file(url)
    if path is not None and not path.exists():
        if not create:
            raise UsageError(f"{path} does not exist: check the path")
        _touch_privately(path)
    engine = _engine(url)
    try:
        with plain_errors(url):
            _bring_to_head(engine, create)
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextmanager
def plain_errors(url: URL) -> Iterator[None]:
    """Errors of the database without the values it was working on: those may be what a patient said."""
    try:
        yield
    except DBAPIError as error:
        kind = type(error.orig).__name__
        reason = "is busy" if _is_busy(error) else f"refused to work ({kind})"
        raise UnavailableError(f"the database {shown_address(url)} {reason}: try again, which is safe") from None
    except PoolTimeoutError:
        raise UnavailableError("all connections to the database are in use: try again, which is safe") from None


def _is_busy(error: DBAPIError) -> bool:
    return type(error.orig).__name__ in ("LockNotAvailable", "QueryCanceled") or "locked" in str(error.orig)


def _engine(url: URL) -> Engine:
    # Patients' words stay out of messages and logs, also where somebody asks SQLAlchemy for all it does.
    logging.getLogger(f"sqlalchemy.engine.Engine.{LOGGING_NAME}").setLevel(logging.WARNING)
    settings: dict[str, Any] = {"hide_parameters": True, "logging_name": LOGGING_NAME}
    if url.get_backend_name() == POSTGRES:
        limits = f"-c synchronous_commit=on -c lock_timeout={WAIT_SECONDS * 1000} -c timezone=UTC"
        settings |= {"pool_pre_ping": True, "connect_args": {"options": limits, "connect_timeout": WAIT_SECONDS}}
    else:
        settings["connect_args"] = {"timeout": WAIT_SECONDS, "check_same_thread": False}
        if sqlite_file(url) is None:
            settings["poolclass"] = StaticPool
    try:
        engine = create_engine(url, **settings)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise UsageError(f"{error}: install the extra with `pip install vrbot[postgres]`") from None
    if url.get_backend_name() == SQLITE:
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says, not where the driver guesses
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
        connection.execute(f"PRAGMA {setting}").close()


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _bring_to_head(engine: Engine, create: bool) -> None:
    with engine.connect() as connection:
        if _revision(connection) == HEAD_REVISION:
            return
    with _migrating, engine.connect().execution_options(writing=True) as connection, connection.begin():
        if engine.dialect.name == POSTGRES:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
        found = _revision(connection)
        if found is None and not create:
            raise UsageError(f"{shown_address(engine.url)} holds no consultations: check the address")
        if found is not None and found > HEAD_REVISION:
            raise UsageError(f"{shown_address(engine.url)} is of revision {found}, newer than this program: update it")
        upgrade(connection)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


def _touch_privately(path: Path) -> None:
    """An empty file only its owner can read; SQLite gives the files beside it the same rights."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}") from None
    sync_folder(path.parent)
