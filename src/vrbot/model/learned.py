"""How many numbers a model has learnt from dialogues."""

from __future__ import annotations

from torch import Tensor, nn


def num_learned(model: nn.Module) -> int:
    """Its parameters, and what is fitted before training: the buffers a part names in `fitted`."""
    fitted: list[Tensor] = [getattr(part, name) for part in model.modules() for name in _fitted(part)]
    return sum(numbers.numel() for numbers in (*model.parameters(), *fitted))


def _fitted(part: nn.Module) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(type(part), "fitted", ())
    return names
