"""Values that move with the training step: temperatures, weights of divergences, and the free-bits floor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from vrbot.errors import ConfigError


class Schedule(Protocol):
    """A number for every training step, counted from 0."""

    def value(self, step: int) -> float: ...


@dataclass(frozen=True)
class Constant:
    """The same number at every step."""

    level: float

    def value(self, step: int) -> float:
        return self.level


@dataclass(frozen=True)
class Linear:
    """A straight line from `start` to `end` over `steps`, then `end`."""

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        _check_steps(self.steps)

    def value(self, step: int) -> float:
        if step >= self.steps:
            return self.end
        return self.start + (self.end - self.start) * (max(step, 0) / self.steps)


@dataclass(frozen=True)
class Exponential:
    """A constant ratio per step from `start` to `end` over `steps`, then `end`."""

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        _check_steps(self.steps)
        if not (self.start > 0 and self.end > 0):
            raise ConfigError(f"an exponential schedule needs ends above 0, got {self.start} and {self.end}")

    def value(self, step: int) -> float:
        if step >= self.steps:
            return self.end
        if step <= 0:
            return self.start
        return self.start * math.exp(math.log(self.end / self.start) * step / self.steps)


def free_bits(divergence: Tensor, floor: float) -> Tensor:
    """The divergence, but never less than `floor` nats; below the floor there is no gradient to shrink it further."""
    return divergence.clamp_min(floor)


def _check_steps(steps: int) -> None:
    if steps < 1:
        raise ConfigError(f"a schedule needs at least 1 step, got {steps}; use Constant for a fixed value")
