"""A report's table in a document of the project, between two markers, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from vrbot.errors import UsageError
from vrbot.files import atomic_write


def markers(name: str) -> tuple[str, str]:
    """The lines between which the table of a plan stands."""
    return f"<!-- results: {name} -->", f"<!-- end of results: {name} -->"


def write_between(path: Path, name: str, text: str) -> bool:
    """Puts the text between the markers of a plan; the same text again changes nothing. Whether anything changed."""
    first, last = markers(name)
    try:
        before = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): give a document that is there") from error
    if before.count(first) != 1 or before.count(last) != 1 or before.index(first) > before.index(last):
        raise UsageError(f"{path} must hold the lines {first} and {last} once each, in this order: add them")
    head, rest = before.split(first)
    tail = rest.split(last)[1]
    after = f"{head}{first}\n\n{text.strip()}\n\n{last}{tail}"
    if after != before:
        with atomic_write(path) as file:
            file.write(after)
    return after != before
