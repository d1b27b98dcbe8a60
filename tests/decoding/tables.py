"""Decoders small enough to enumerate: random tables of log probabilities, one per item."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from hypothesis import strategies as st
from torch import Tensor

START, END = 0, 1


@dataclass(frozen=True, eq=False)
class TableState:
    """Which prefix each row has (recurrent, per row) and which table each item reads (memory, per item)."""

    prefixes: tuple[tuple[int, ...], ...]
    tables: Tensor

    def select(self, rows: Tensor, items: Tensor | None) -> TableState:
        tables = self.tables if items is None else self.tables[items]
        assert len(rows) % len(tables) == 0
        return TableState(tuple(self.prefixes[row] for row in rows.tolist()), tables)


@dataclass
class TableDecoder:
    """Log probabilities that depend on the item and on the whole prefix, by hashing it into the item's table."""

    num_states: int
    calls: list[int] = field(default_factory=list)

    def start(self, tables: Tensor) -> TableState:
        return TableState(((),) * len(tables), tables)

    def __call__(self, tokens: Tensor, state: TableState) -> tuple[Tensor, TableState]:
        self.calls.append(len(tokens))
        rows_per_item = len(tokens) // len(state.tables)
        prefixes = tuple((*prefix, token) for prefix, token in zip(state.prefixes, tokens.tolist(), strict=True))
        places = [place(prefix, self.num_states) for prefix in prefixes]
        items = [row // rows_per_item for row in range(len(tokens))]
        return state.tables[items, places], TableState(prefixes, state.tables)


def place(prefix: Sequence[int], num_states: int) -> int:
    number = 7
    for token in prefix:
        number = (number * 31 + token + 1) % 1_000_003
    return number % num_states


@dataclass(frozen=True)
class Problem:
    """A batch of random decoders with V tokens and a length limit."""

    items: int
    vocabulary: int
    max_length: int
    holes: float
    seed: int
    num_states: int = 11

    def tables(self) -> Tensor:
        """Normalised log probabilities [B, states, V] in steps of 1/4 before normalising, so that ties occur."""
        generator = torch.Generator().manual_seed(self.seed)
        size = (self.items, self.num_states, self.vocabulary)
        logits = (torch.randn(size, generator=generator) * 6).round() / 4
        gone = torch.rand(size, generator=generator) < self.holes
        gone[..., END] &= ~gone.all(dim=-1)
        log_probs = logits.masked_fill(gone, -math.inf).log_softmax(-1)
        return log_probs.nan_to_num(nan=-math.inf, neginf=-math.inf)


def problems(max_items: int = 4, max_length: int = 4, max_vocabulary: int = 4) -> st.SearchStrategy[Problem]:
    return st.builds(
        Problem,
        items=st.integers(1, max_items),
        vocabulary=st.integers(2, max_vocabulary),
        max_length=st.integers(1, max_length),
        holes=st.sampled_from([0.0, 0.3, 0.6]),
        seed=st.integers(0, 100_000),
    )


def log_prob_of(table: Tensor, tokens: Sequence[int]) -> float:
    """Sum of log probabilities of a sequence (the end symbol written out), in single precision like the search."""
    total = torch.zeros(())
    prefix = [START]
    for token in tokens:
        total = total + table[place(prefix, len(table)), token]
        prefix.append(token)
    return float(total)


def every_sequence(vocabulary: int, max_length: int, min_length: int = 0) -> list[tuple[int, ...]]:
    """All that can be written in at most `max_length` steps: ended (end symbol written out) or cut."""
    words = [token for token in range(vocabulary) if token != END]
    cut = list(itertools.product(words, repeat=max_length))
    ended = [
        (*body, END) for length in range(min_length, max_length) for body in itertools.product(words, repeat=length)
    ]
    return ended + cut


def visible(tokens: Sequence[int]) -> tuple[int, ...]:
    """A written-out sequence without its end symbol."""
    return tuple(token for token in tokens if token != END)
