"""What every dialogue model offers: a loss for training, and replies from what a deployed system has.

Letters: N rows (turns), B sessions, C categories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from vrbot.decoding.step import Selectable, StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout


@dataclass(frozen=True)
class Moment:
    """Where training stands; all randomness of a step comes from the generator (and torch's own for dropout)."""

    step: int
    stage: int  # 1 or 2, see `training.progress`
    generator: torch.Generator


@dataclass(frozen=True, eq=False)
class BatchLoss:
    """What one batch costs. `total` is a sum over turns, to be divided by the turns of the whole step."""

    total: Tensor
    num_turns: int
    terms: Mapping[str, Tensor]  # sums over turns, without gradient, for the log
    per_session: Tensor  # [B], without gradient: names the dialogue when something is not finite


@dataclass(frozen=True, eq=False)
class Perception:
    """What a model makes of each turn before it replies; a model without a part leaves it None."""

    state: Tensor | None  # [N, L] entity ids, -1 where there is none
    category: Tensor | None  # [N, C] log probabilities
    keywords: Tensor | None  # [N, L] entity ids, -1 where there is none
    conditions: Any  # the model's own: what its reply is written from


class DialogueModel(Protocol):
    """The contract; `torch.nn.Module` besides.

    A model that learns only from turns with labels of some kinds names them in `needed_labels`: batches are then made
    of dialogues that have them, and without any it is refused.
    """

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """The objective of training, with gradient."""
        ...

    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        """States and actions of all turns by the prior networks; a turn sees itself and earlier turns only."""
        ...

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[Any], Selectable]:
        """A step function and its first state, to search for the replies of these rows."""
        ...

    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        """Log probability of given responses [N, R] after what was perceived [N], in nats."""
        ...


@runtime_checkable
class Imagines(DialogueModel, Protocol):
    """What a model with latent variables offers besides: turns perceived as they might have been."""

    def imagine(
        self, inputs: TurnInputs, layout: TurnLayout, count: int, generator: torch.Generator
    ) -> Iterator[Perception]:
        """`count` perceptions with latents drawn from the prior networks, where `perceive` takes the likeliest."""
        ...


class Objective(Protocol):
    """What a model's `loss` computes; chosen when the model is assembled."""

    def __call__(self, model: Any, batch: SessionBatch, moment: Moment) -> BatchLoss: ...


@runtime_checkable
class StudiesLabels(Protocol):
    """A model or an objective that looks at all turns and their labels before training begins or goes on."""

    def study(self, model: Any, batches: Callable[[], Iterable[SessionBatch]]) -> None:
        """`batches` may be asked for more than once."""
        ...
