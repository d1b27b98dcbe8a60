"""Tables and JSON from outside, read so that whatever is wrong with them becomes one clear `DataError`."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from vrbot.errors import DataError

LONGEST_NAME = 500
"""Characters; a longer "name" is a sentence or a broken file."""


class Row(NamedTuple):
    """One row of a table: its line in the file and its fields, in the order in which the columns were asked for."""

    line: int
    fields: tuple[str, ...]


def read_text(path: Path) -> str:
    """The file as UTF-8 text, without a byte order mark."""
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(path, None, "file", f"cannot be read ({reason})", "give the path of a readable file") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        raise DataError(path, line, "text", problem, "save the file as UTF-8") from None
    if not text.strip():
        raise DataError(path, None, "file", "is empty", "give a file with at least one row")
    return text


def read_json(path: Path) -> Any:
    """The JSON value in the file; an object that repeats a key with another value is refused."""

    def without_conflicts(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if result.setdefault(key, value) != value:
                raise DataError(
                    path, None, shown_name(key), "is given twice with different values", "keep one of the two"
                )
        return result

    try:
        return json.loads(read_text(path), object_pairs_hook=without_conflicts)
    except json.JSONDecodeError as error:
        raise DataError(path, error.lineno, "json", error.msg, "repair the JSON syntax") from None
    except (ValueError, RecursionError) as error:
        raise DataError(path, None, "json", f"cannot be read ({error})", "give plain, flat JSON") from None


def read_table(path: Path, required: tuple[str, ...]) -> Iterator[Row]:
    """The rows of a CSV file whose header (in any case) holds the required columns, two or more; not blank lines."""
    text = read_text(path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [column.strip().lower() for column in next(reader)]
        missing = [column for column in required if column not in header]
        if missing:
            fix = f"start the file with a header that has {','.join(required)}"
            raise DataError(path, 1, missing[0], f"no such column in the header {shown(','.join(header))}", fix)
        wanted = itemgetter(*(header.index(column) for column in required))
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                problem = f"{len(cells)} fields instead of {len(header)}"
                raise DataError(path, reader.line_num, "row", problem, "put fields with commas between double quotes")
            yield Row(reader.line_num, wanted(cells))
    except csv.Error as error:
        raise DataError(path, reader.line_num, "csv", str(error), "repair the quoting of this line") from None


def checked_name(value: Any, path: Path, line: int | None, field: str) -> str:
    """A name without blanks around it, or the reason why this value cannot be one."""
    if not isinstance(value, str):
        raise DataError(path, line, field, f"{shown(value)} is not text", "write the name as a string")
    name = value.strip()
    if not name:
        raise DataError(path, line, field, "the name is empty", "write a name or remove the row")
    if len(name) > LONGEST_NAME:
        raise DataError(path, line, field, f"the name has {len(name)} characters", f"use at most {LONGEST_NAME}")
    if name.isprintable():  # the quick way for nearly all names
        return name
    strange = next((character for character in name if unicodedata.category(character) in ("Cc", "Cs")), None)
    if strange is not None:
        problem = f"{shown(name)} holds the control character U+{ord(strange):04X}"
        raise DataError(path, line, field, problem, "remove it")
    return name


def shown(value: Any) -> str:
    """The value as an error message shows it: quoted, escaped and not longer than a line."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def shown_name(name: str) -> str:
    """A name as the field of an error message: as it is where that is short and printable."""
    return name if name.isprintable() and len(name) <= 60 else shown(name)
