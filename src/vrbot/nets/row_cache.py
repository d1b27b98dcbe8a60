"""What was computed for a row of words, kept in memory up to a limit."""

from __future__ import annotations

from torch import Tensor


class RowCache:
    """Keeps the first rows it is given until it is full, and those for good.

    Training passes over the same rows again and again: whoever throws out the oldest for the newest would have
    thrown out every row by the time it comes back.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.size = capacity, 0  # in bytes
        self.hits, self.misses = 0, 0
        self._rows: dict[bytes, Tensor] = {}

    def get(self, key: bytes) -> Tensor | None:
        found = self._rows.get(key)
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def put(self, key: bytes, value: Tensor) -> None:
        """Takes the value in, unless there is no more room; it must not be a view of something larger."""
        needed = value.numel() * value.element_size() + len(key)
        if key not in self._rows and self.size + needed <= self.capacity:
            self._rows[key] = value
            self.size += needed
