"""Changes to the log probabilities during search. What is forbidden becomes `-inf`; nothing is renormalised, so
scores stay those of the model."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vrbot.decoding.step import Adjust
from vrbot.errors import ConfigError


def no_repeat_ngram(size: int) -> Adjust:
    """Forbids every token that would complete an n-gram of `size` tokens the sequence already has."""
    if size < 1:
        raise ConfigError(f"no_repeat_ngram needs a size of at least 1, got {size}; use None to allow repeats")

    def adjust(prefix: Tensor, log_probs: Tensor) -> Tensor:
        if prefix.size(1) < size:
            return log_probs
        seen = prefix.unfold(1, size, 1)  # [R, t - size + 1, size]
        ending = prefix[:, prefix.size(1) - size + 1 :].unsqueeze(1)  # [R, 1, size - 1]
        rows, places = (seen[:, :, :-1] == ending).all(dim=2).nonzero(as_tuple=True)
        forbidden = torch.full((), -math.inf, dtype=log_probs.dtype)
        return log_probs.index_put((rows, seen[rows, places, -1]), forbidden)

    return adjust


def in_turn(*adjustments: Adjust) -> Adjust:
    """Several adjustments, one after the other."""

    def adjust(prefix: Tensor, log_probs: Tensor) -> Tensor:
        for adjustment in adjustments:
            log_probs = adjustment(prefix, log_probs)
        return log_probs

    return adjust


def adjusted(log_probs: Tensor, prefix: Tensor, adjust: Adjust | None, end: int, min_length: int) -> Tensor:
    """Log probabilities [R, V] after `prefix` [R, t]: no end before `min_length` tokens, then the caller's rules."""
    if prefix.size(1) < min_length:
        log_probs = log_probs.index_fill(1, torch.tensor([end]), -math.inf)
    return log_probs if adjust is None else adjust(prefix, log_probs)
