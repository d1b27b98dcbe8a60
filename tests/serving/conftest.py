"""Every law of the store holds on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real_data import needs_program
from tests.serving.fakes import DeskAtWork
from tests.serving.open_pages import OpenPages, open_pages
from tests.serving.postgres import Server, running_postgres
from vrbot.serving.store import Store


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server with a database called `ready` that has all tables."""
    with running_postgres(needs_program("initdb"), needs_program("postgres")) as server:
        url = server.new_database()
        with server.administer() as connection:
            connection.execute(f"ALTER DATABASE {url.rpartition('/')[2]} RENAME TO ready")
        Store.open(server.url("ready"), create=True).close()
        yield server


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A SQLite file that has all tables."""
    path = tmp_path_factory.mktemp("ready") / "desk.sqlite"
    Store.open(path, create=True).close()
    return path.read_bytes()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database with tables and nothing in them."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres").new_database("ready"))
    path = tmp_path / "desk.sqlite"
    path.write_bytes(request.getfixturevalue("empty_sqlite"))
    return str(path)


OpenStore = Callable[..., Store]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[OpenStore]:
    """Opens stores with a witness, and closes them in the end."""
    opened: list[Store] = []

    def open_one(address: str, **how: object) -> Store:
        how.setdefault("witness", tmp_path / "desk.witness")
        opened.append(Store.open(address, **how))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(database: str, open_store: OpenStore) -> Store:
    return open_store(database)


@pytest.fixture
def work(store: Store) -> DeskAtWork:
    return DeskAtWork(store)


@pytest.fixture
def pages() -> Iterator[OpenPages]:
    store = Store.open("sqlite://", create=True)
    with open_pages(store) as found:
        yield found
    store.close()
