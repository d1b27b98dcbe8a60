"""The command line's printer: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def say(text: str = "") -> None:
    """Write one result line to standard output."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Write one line about the work itself to standard error, so that results can still be piped."""
    sys.stderr.write(text + "\n")


def say_json(value: Any) -> None:
    """Write a result for machines: one JSON document, Chinese as it is written."""
    say(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def say_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table in columns; numbers stand to the right, Chinese characters count as two columns."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [all(_is_number(row[column]) for row in cells) and bool(cells) for column in range(len(header))]
    widths = [max(_columns(row[column]) for row in [list(header), *cells]) for column in range(len(header))]
    for row in [list(header), ["-" * width for width in widths], *cells]:
        padded = (
            " " * (width - _columns(text)) + text if right else text + " " * (width - _columns(text))
            for text, width, right in zip(row, widths, numeric, strict=True)
        )
        say("  ".join(padded).rstrip())


@contextmanager
def counting(what: str, total: int | None = None) -> Iterator[Callable[[int], None] | None]:
    """A bar on standard error that is told how many more are done; None where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)


def _is_number(text: str) -> bool:
    return text == "-" or text.replace(",", "").replace(".", "", 1).lstrip("-").rstrip(" %").isdigit()


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
