"""Reading word vectors from files in the word2vec text or binary form, plain or gzipped."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from vrbot.errors import DataError
from vrbot.evaluation.vectors import WordVectors

_LONGEST_WORD = 10_000
_LONGEST_LINE = 1_000_000
_MOST_DIMENSIONS = 10_000
_FIX = "give a file in the word2vec text or binary form"

Row = tuple[str, NDArray[np.float32]]


@dataclass(frozen=True)
class _Header:
    num_words: int | None  # None: the file begins with its first word, as GloVe files do
    dimensions: int


def read_word2vec(path: Path | str, keep: Container[str] | None = None) -> WordVectors:
    """The vectors of a file; with `keep` only of those words, so that a very large file needs little memory.

    Of a word that comes twice the first vector stays.
    """
    path = Path(path)
    try:
        return _read(path, keep)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(path, None, "file", f"cannot be read ({error})", _FIX) from error


def _read(path: Path, keep: Container[str] | None) -> WordVectors:
    with _open(path) as file:
        header = _read_header(path, file)
        is_text = _is_vector_line(file.readline(_LONGEST_LINE), header.dimensions)
    with _open(path) as file:
        if header.num_words is not None:
            file.readline(_LONGEST_LINE)
        rows = _text_rows(path, file, header) if is_text else _binary_rows(path, file, header)
        return _collect(path, rows, header.dimensions, keep)


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _read_header(path: Path, file: BinaryIO) -> _Header:
    fields = file.readline(_LONGEST_LINE).split()
    if len(fields) > 2 and _is_vector_line(b" ".join(fields), len(fields) - 1):
        file.seek(0)
        return _Header(None, len(fields) - 1)
    try:
        num_words, dimensions = (int(field) for field in fields)
    except ValueError as error:
        raise DataError(path, 1, "header", "expected the number of words and of dimensions", _FIX) from error
    if num_words < 0 or not 1 <= dimensions <= _MOST_DIMENSIONS:
        raise DataError(path, 1, "header", f"cannot hold {num_words} words of {dimensions} dimensions", _FIX)
    return _Header(num_words, dimensions)


def _is_vector_line(line: bytes, dimensions: int) -> bool:
    """A word and its numbers as text; an empty rest of a file is read as text too."""
    try:
        fields = line.decode("utf-8").rstrip().rsplit(" ", dimensions)
        return not line or (len(fields) == dimensions + 1 and all(map(_is_number, fields[1:])))
    except UnicodeDecodeError:
        return False


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _text_rows(path: Path, file: BinaryIO, header: _Header) -> Iterator[Row]:
    num_before = 0 if header.num_words is None else 1
    number = num_before
    for number, line in enumerate(file, start=num_before + 1):
        fields = line.decode("utf-8", errors="replace").rstrip().rsplit(" ", header.dimensions)
        try:
            vector = np.array(fields[1:], dtype=np.float32)
        except ValueError as error:
            raise DataError(path, number, "vector", "holds something that is no number", _FIX) from error
        if len(vector) != header.dimensions:
            raise DataError(path, number, "vector", f"expected {header.dimensions} numbers, got {len(vector)}", _FIX)
        yield fields[0], vector
    if header.num_words is not None and number - num_before < header.num_words:
        problem = f"promises {header.num_words} words, but the file ends after {number - num_before}"
        raise DataError(path, 1, "header", problem, _FIX)


def _binary_rows(path: Path, file: BinaryIO, header: _Header) -> Iterator[Row]:
    size = 4 * header.dimensions
    for number in range(header.num_words or 0):
        word = _binary_word(path, file, number)
        data = file.read(size)
        if len(data) < size:
            raise DataError(path, None, f"word {number + 1}", f"the file ends inside the vector of {word!r}", _FIX)
        yield word, np.frombuffer(data, dtype="<f4").astype(np.float32)


def _binary_word(path: Path, file: BinaryIO, number: int) -> str:
    letters = bytearray()
    while (letter := file.read(1)) != b" ":
        if not letter or len(letters) > _LONGEST_WORD:
            raise DataError(path, None, f"word {number + 1}", "the file ends before it, or it has no end", _FIX)
        letters += letter
    return letters.decode("utf-8", errors="replace").lstrip("\n")


def _collect(path: Path, rows: Iterator[Row], dimensions: int, keep: Container[str] | None) -> WordVectors:
    index: dict[str, int] = {}
    vectors: list[NDArray[np.float32]] = []
    for word, vector in rows:
        if word in index or (keep is not None and word not in keep):
            continue
        if not np.isfinite(vector).all():
            raise DataError(path, None, f"word {word!r}", "its vector has numbers that are not finite", _FIX)
        index[word] = len(vectors)
        vectors.append(vector)
    matrix = np.array(vectors, dtype=np.float32).reshape(-1, dimensions)
    return WordVectors(index, matrix, f"read from {path.name}, {dimensions} dimensions")
