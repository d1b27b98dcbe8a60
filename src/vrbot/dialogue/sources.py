"""Bytes, lines and JSON from files nobody vouches for: whatever is wrong with them becomes a DataError."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from vrbot.errors import DataError

MAX_LINE_BYTES = 16 * 2**20
"""No dialogue is longer than this; a longer line is a file of another kind."""

MAX_DOCUMENT_BYTES = 2**30
"""The largest file that is read whole (JSON documents, pickles)."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_TO_UTF8 = "save the file as UTF-8 (for example: iconv -f GB18030 -t UTF-8)"


class Place(NamedTuple):
    """Where a value stands, so that every complaint can name it."""

    file: str | Path
    line: int | None = None
    field: str = ""

    def inside(self, step: str) -> Place:
        """The place of a part: `turns[3]` and then `action` give `turns[3].action`."""
        joint = "." if self.field and not step.startswith("[") else ""
        return Place(self.file, self.line, f"{self.field}{joint}{step}")

    def error(self, problem: str, fix: str) -> DataError:
        """The error to raise for what stands here."""
        return DataError(self.file, self.line, self.field or "file", problem, fix)


class Budget:
    """How far a source may unfold, so that a small hostile file cannot fill the memory."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.spent = 0

    def spend(self, amount: int, place: Place) -> None:
        """Count `amount` more bytes, characters or items; DataError where that is beyond belief."""
        self.spent += amount
        if self.spent > self.allowed:
            raise place.error("the file unfolds to far more than its size", "fetch the file again from its publisher")


def shown(value: object) -> str:
    """A short, printable, single-line name for any value, containers by their kind only."""
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge number"
    if value is None or isinstance(value, (str, int, float)):
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    kind = {"dict": "an object", "list": "a list"}.get(type(value).__name__)
    return kind or f"a value of type {type(value).__name__}"


def require_file(path: Path) -> None:
    """DataError unless `path` is a regular file."""
    try:
        if path.is_file():
            return
        problem = "is a folder" if path.is_dir() else "does not exist"
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    fix = "name one file, or pick its split with split_files" if problem == "is a folder" else "check the path"
    raise Place(path).error(problem, fix)


def whole_file(path: Path) -> bytes:
    """All bytes of a file of believable size."""
    require_file(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise Place(path).error(f"cannot be read ({error.strerror})", "check permissions and disk") from None
    if len(data) > MAX_DOCUMENT_BYTES:
        raise Place(path).error(f"is larger than {MAX_DOCUMENT_BYTES >> 20} MiB", "split it into smaller files")
    return data


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line with its number from 1; of a line beyond MAX_LINE_BYTES only the beginning, one byte too long."""
    require_file(path)
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                yield number, line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES + 1)
    except OSError as error:
        raise Place(path).error(f"cannot be read ({error.strerror})", "check permissions and disk") from None


def decode(data: bytes, place: Place) -> str:
    """The bytes as UTF-8, with or without a byte order mark."""
    if data.startswith(_OTHER_MARKS):
        raise place.error("is UTF-16, not UTF-8", _TO_UTF8)
    try:
        text = data.removeprefix(_BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        raise place.error(f"byte {data[error.start]:#04x} at offset {error.start} is not UTF-8", _TO_UTF8) from None
    if "\0" in text:
        raise place.error("holds a NUL character", "remove it; the file may be damaged or binary")
    return text


def parse_json(text: str, place: Place) -> Any:
    """The JSON value of `text`, with every string fit for writing and every number finite."""
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:  # only an escape can smuggle in what UTF-8 decoding has excluded
            _check_strings(value)
    except json.JSONDecodeError as error:
        line = error.lineno if place.line is None else place.line
        problem = f"is not JSON ({error.msg} at column {error.colno})"
        raise place._replace(line=line).error(problem, "correct the JSON; the file may be cut off") from None
    except RecursionError:
        raise place.error("is nested too deeply", "a dialogue has a handful of levels; correct the JSON") from None
    except ValueError as error:
        raise place.error(f"is not acceptable JSON ({error})", "correct the value") from None
    return value


def string_fault(text: str) -> str | None:
    """What makes a string unfit for a text file, if anything."""
    if "\0" in text:
        return "holds a NUL character"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "holds half a surrogate pair"
    return None


def _check_strings(value: Any) -> None:
    """ValueError if any string in the JSON value, keys included, is unfit; a stack, since nesting may be deep."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.keys()
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, str) and (fault := string_fault(part)):
            raise ValueError(f"{shown(part)} {fault}")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        (repeated, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(repeated)} stands twice in one object")
    return record


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_float=_finite, parse_constant=_no_constant)
