"""Beam search as the module docstring states it, on Python lists, one item, never stopping early."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.decoding.tables import END, START, place


def reference_beam(
    table: Tensor, max_length: int, width: int, length_penalty: float, word_reward: float = 0.0
) -> list[tuple[float, tuple[int, ...]]]:
    """(score, tokens) of everything that finished or was cut, best first.

    A reward for all words but the end, as the search rounds it: taken from the end, and given back at the end.
    """
    living: list[tuple[Tensor, tuple[int, ...]]] = [(torch.zeros(()), ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for length in range(1, max_length + 1):
        extensions = []
        for rank, (score, tokens) in enumerate(living):
            row = table[place((START, *tokens), len(table))]
            row = row - word_reward * (torch.arange(len(row)) == END)
            best = sorted(range(len(row)), key=lambda token: (-float(row[token]), token))
            extensions += [(score + row[token], rank, order, (*tokens, token)) for order, token in enumerate(best)]
        extensions = [extension for extension in extensions if float(extension[0]) > -math.inf]
        extensions.sort(key=lambda extension: (-float(extension[0]), extension[1], extension[2]))
        living = []
        for score, _, _, tokens in extensions[: width - len(finished)]:
            if tokens[-1] == END:
                finished.append(((float(score) + word_reward * length) / length**length_penalty, tokens[:-1]))
            else:
                living.append((score, tokens))
    finished += [
        ((float(score) + word_reward * max_length) / max_length**length_penalty, tokens) for score, tokens in living
    ]
    return sorted(finished, key=lambda pair: (-pair[0], pair[1]))
