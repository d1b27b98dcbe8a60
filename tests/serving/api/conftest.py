"""Apps for the tests of the API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving.api.served import Served, desk_of, serving
from vrbot.serving.store import Store


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """One app for all tests of a file; each has its own consultations."""
    yield from _served()


@pytest.fixture
def fresh() -> Iterator[Served]:
    """An app nobody else has used."""
    yield from _served()


def _served() -> Iterator[Served]:
    store = Store.open("sqlite://", create=True)
    with serving(desk_of(store)) as found:
        yield found
    store.close()
