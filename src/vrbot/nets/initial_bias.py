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


@torch.no_grad()
def begin_with_frequencies(model: nn.Module, counts: Tensor) -> None:
    """Every part that predicts words begins as certain of each as responses are, who say it `counts` [V] times; half a
    time is added, for words of patients alone. All words together weigh what they would with biases of zero: where
    copying competes with them, the balance stays."""
    weights = counts + 0.5
    bias = (weights / weights.mean()).log()
    for part in model.modules():
        if isinstance(part, ScoresWords):
            part.word_bias.copy_(bias)
