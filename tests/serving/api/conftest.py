"""One app for the tests that only ask it something."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serving.api.served import Served, desk_of, serving
from vrbot.serving.store import Store


@pytest.fixture
def served() -> Iterator[Served]:
    store = Store.open("sqlite://", create=True)
    with serving(desk_of(store)) as found:
        yield found
    store.close()
