"""The examples of docs/metrics.md come out as they stand there."""

from __future__ import annotations

import doctest
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_every_example_of_the_document_gives_what_it_shows() -> None:
    results = doctest.testfile(str(DOCUMENT), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS)
    assert results.failed == 0
    assert results.attempted > 30
