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
def begin_with_frequencies(model: nn.Module, responses: Tensor, contexts: Tensor) -> None:
    """Every part that predicts words begins as certain of each as the training texts are that it is to write, which say
    each so many times: `responses` [V], and `contexts` [V] for what writes a context again."""
    reader = model.reader_of_context if isinstance(model, WritesContextsToo) else None
    for part in model.modules():
        if isinstance(part, ScoresWords):
            part.word_bias.copy_(log_frequencies(contexts if part is reader else responses))


def log_frequencies(counts: Tensor) -> Tensor:
    """How certain to begin of each word [V]; half a time is added, for words that were never said. All words together
    weigh what they would with biases of zero: where copying competes with them, the balance stays."""
    weights = counts + 0.5
    return (weights / weights.mean()).log()
