"""One choice among C: the arithmetic of categorical distributions over the last dimension, in log space.

Letters: C choices; `...` is any number of leading dimensions. Zero mass is `-inf` and stays exactly zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vrbot.errors import ConfigError


def masked_log_softmax(logits: Tensor, allowed: Tensor) -> Tensor:
    """Log probabilities over the allowed choices; exactly `-inf` elsewhere, with finite gradients throughout.

    Shapes: logits [..., C], allowed [..., C] (true where a choice exists) -> [..., C].
    A row that allows nothing is `-inf` everywhere and sends no gradient back.
    """
    filled = logits.masked_fill(~allowed, -math.inf)
    nothing = (filled.detach() == -math.inf).all(dim=-1, keepdim=True)
    log_probs = filled.masked_fill(nothing, 0.0).log_softmax(dim=-1)
    return log_probs.masked_fill(nothing, -math.inf)


def divergence(posterior: Tensor, prior: Tensor, floor: float | None = None) -> Tensor:
    """KL(posterior || prior) in nats, from log probabilities [..., C] -> [...].

    Where the posterior has no mass nothing is added and no gradient flows; mass that the prior rules out makes
    the divergence `inf`, unless `floor` bounds the prior's log probabilities from below.
    """
    mass = posterior.exp()
    bounded = prior if floor is None else prior.clamp_min(floor)
    # `-inf - -inf` in the unused branch is harmless: the gradient of a difference does not depend on its value.
    gap = torch.where(mass > 0, posterior - bounded, 0.0)
    return (mass * gap).sum(dim=-1)


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy in nats, [..., C] -> [...]; absent choices add nothing."""
    mass = log_probs.exp()
    return -(mass * torch.where(mass > 0, log_probs, 0.0)).sum(dim=-1)


def chosen_log_prob(log_probs: Tensor, choice: Tensor) -> Tensor:
    """Log probability of one choice per row: [..., C], [...] -> [...]; `-inf` for an impossible one."""
    return log_probs.gather(-1, choice.unsqueeze(-1)).squeeze(-1)


def gumbel_noise(like: Tensor, generator: torch.Generator) -> Tensor:
    """Standard Gumbel noise in the shape and type of `like`."""
    waiting_times = torch.empty_like(like).exponential_(generator=generator)
    return -waiting_times.clamp_min(torch.finfo(like.dtype).tiny).log()


def sample(log_probs: Tensor, generator: torch.Generator) -> Tensor:
    """One exact draw per row by the Gumbel-max trick: [..., C] -> ids [...]."""
    return (log_probs.detach() + gumbel_noise(log_probs.detach(), generator)).argmax(dim=-1)


def relaxed_sample(log_probs: Tensor, temperature: float, generator: torch.Generator, *, hard: bool = False) -> Tensor:
    """A Gumbel-softmax sample, [..., C] -> weights [..., C] that sum to one (paper, section 3.6).

    Choices without mass get exactly zero; a row without any mass gives zeros. With `hard` the value is exactly
    one-hot and the gradient is that of the soft sample (straight-through).
    """
    if not temperature > 0:
        raise ConfigError(f"temperature must be above 0, got {temperature}; use mode() for the limit at 0")
    perturbed = (log_probs + gumbel_noise(log_probs.detach(), generator)) / temperature
    nothing = (log_probs.detach() == -math.inf).all(dim=-1, keepdim=True)
    if bool(nothing.any()):
        soft = perturbed.masked_fill(nothing, 0.0).softmax(dim=-1).masked_fill(nothing, 0.0)
    else:
        soft = perturbed.softmax(dim=-1)
    return straight_through(soft) if hard else soft


def straight_through(soft: Tensor) -> Tensor:
    """Exactly one-hot at the largest weight (zeros stay zeros); backward is the identity onto `soft`."""
    apply: Callable[[Tensor], Tensor] = _StraightThrough.apply
    return apply(soft)


class _StraightThrough(torch.autograd.Function):
    """`hard - soft.detach() + soft` is one-hot only up to rounding; this is one-hot exactly."""

    @staticmethod
    def forward(ctx: Any, soft: Tensor) -> Tensor:
        largest, position = soft.max(dim=-1, keepdim=True)
        return torch.zeros_like(soft).scatter_(-1, position, (largest > 0).to(soft.dtype))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]
