"""AdamW whose state goes by the names of the parameters, and the running average of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from vrbot.config import TrainingSettings
from vrbot.errors import VRBotError

_PARTS = ("step", "exp_avg", "exp_avg_sq")


def trainable(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters that learn, each once, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def rate_factors(model: torch.nn.Module) -> dict[str, float]:
    """By name, the parameters that learn at another rate: the product of the `learning_rate_factor`s of all parts that
    hold them."""
    factors: dict[str, float] = {}
    for prefix, part in model.named_modules():
        if hasattr(part, "learning_rate_factor"):
            for name, _ in part.named_parameters(prefix):
                factors[name] = factors.get(name, 1.0) * float(part.learning_rate_factor)
    return {name: factor for name, factor in factors.items() if factor != 1.0}


class Optimiser:
    """AdamW over named parameters; `factors` scale the learning rate of some of them."""

    def __init__(
        self,
        parameters: Mapping[str, torch.nn.Parameter],
        settings: TrainingSettings,
        factors: Mapping[str, float] | None = None,
    ) -> None:
        self.parameters = dict(parameters)
        groups: dict[float, list[torch.nn.Parameter]] = {}
        for name, parameter in self.parameters.items():
            groups.setdefault((factors or {}).get(name, 1.0), []).append(parameter)
        self._adam = torch.optim.AdamW(
            [{"params": members, "factor": factor} for factor, members in groups.items()],
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=True,
        )

    def step(self, learning_rate: float) -> None:
        for group in self._adam.param_groups:
            group["lr"] = learning_rate * group["factor"]
        self._adam.step()

    def tensors(self) -> dict[str, Tensor]:
        """The moments, as `part/name`; a parameter that never had a gradient has none."""
        found: dict[str, Tensor] = {}
        for name, parameter in self.parameters.items():
            for part, value in self._adam.state.get(parameter, {}).items():
                found[f"{part}/{name}"] = value
        return found

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes over saved moments."""
        known = {f"{part}/{name}" for name in self.parameters for part in _PARTS}
        if not set(tensors) <= known:
            raise VRBotError(f"the saved optimiser knows parameters this model has not: {sorted(set(tensors) - known)}")
        for name, parameter in self.parameters.items():
            parts = {part: tensors[f"{part}/{name}"] for part in _PARTS if f"{part}/{name}" in tensors}
            if parts:
                self._adam.state[parameter] = {part: value.to(parameter.device) for part, value in parts.items()}


class WeightAverage:
    """Exponential average of the parameters; its memory grows with the steps until `decay` is reached."""

    def __init__(self, parameters: Mapping[str, torch.nn.Parameter], decay: float) -> None:
        self.parameters, self.decay = dict(parameters), decay
        self.averages = {name: parameter.detach().clone() for name, parameter in parameters.items()} if decay else {}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Takes in the weights after `step` steps."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, average in self.averages.items():
            average.lerp_(self.parameters[name], 1 - decay)

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes over saved averages."""
        if set(tensors) != set(self.averages):
            raise VRBotError("the saved averages are those of another model: build it as it was")
        for name, average in self.averages.items():
            average.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the averaged weights inside the block (its own, where there is no average)."""
        own = {name: self.parameters[name].detach().clone() for name in self.averages}
        try:
            self._put(self.averages)
            yield
        finally:
            self._put(own)

    @torch.no_grad()
    def _put(self, values: Mapping[str, Tensor]) -> None:
        for name, value in values.items():
            self.parameters[name].copy_(value)
