"""First scores of words: how often responses say them, so that no network has to learn that."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn


@runtime_checkable
class ScoresWords(Protocol):
    """A part that predicts words and adds `word_bias` [V] to what it makes of its input."""

    @property
    def word_bias(self) -> nn.Parameter: ...


@runtime_checkable
class WritesContextsToo(Protocol):
    """A model with a part that predicts other words than those of responses."""

    @property
    def reader_of_context(self) -> nn.Module | None: ...


@torch.no_grad()
def begin_with_frequencies(model: nn.Module, counts: Tensor) -> None:
    """Every part that predicts a response's words begins as certain of each as responses are, which say it `counts`
    [V] times; half a time is added, for words of patients alone. All words together weigh what they would with biases
    of zero: where copying competes with them, the balance stays. What predicts a context begins with equal ones."""
    weights = counts + 0.5
    bias = (weights / weights.mean()).log()
    others = model.reader_of_context if isinstance(model, WritesContextsToo) else None
    for part in model.modules():
        if isinstance(part, ScoresWords) and part is not others:
            part.word_bias.copy_(bias)
