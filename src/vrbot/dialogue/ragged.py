"""Rows of different lengths, stored end to end with offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Offsets = NDArray[np.int64]


def offsets_of(counts: Array) -> Offsets:
    """Where each row begins, and at the end the total: int64 [rows + 1]."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


@dataclass(frozen=True)
class Places:
    """The elements of some rows, one after the other: `index` into the values, `row` they belong to, `rank` in it."""

    index: NDArray[np.int64]
    row: NDArray[np.int64]
    rank: NDArray[np.int64]


def places_between(starts: Array, ends: Array) -> Places:
    """The places from `starts[i]` up to `ends[i]` for every row i."""
    counts = np.asarray(ends) - np.asarray(starts)
    row = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    first = offsets_of(counts)[:-1]
    rank = np.arange(len(row), dtype=np.int64) - first[row]
    return Places(index=rank + np.asarray(starts)[row], row=row, rank=rank)


def pad_rows(values: Array, row: Array, num_rows: int, fill: int) -> NDArray[np.int64]:
    """Values that belong to ascending `row`s as a matrix [num_rows, widest], `fill` after the end of each row."""
    counts = np.bincount(row, minlength=num_rows)
    rank = np.arange(len(row)) - offsets_of(counts)[:-1][row]
    padded = np.full((num_rows, int(counts.max(initial=0))), fill, dtype=np.int64)
    padded[row, rank] = values
    return padded
