"""Tokens drawn at random, from the whole distribution or from its best part."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vrbot.decoding.ranking import best_choices
from vrbot.decoding.rollout import RollOutLimits, roll_out
from vrbot.decoding.step import Adjust, Decoded, StateT, StepFunction
from vrbot.errors import ConfigError


def sampling(
    step: StepFunction[StateT],
    state: StateT,
    batch_size: int,
    start: int,
    end: int,
    max_length: int,
    *,
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    num_samples: int = 1,
    min_length: int = 0,
    adjust: Adjust | None = None,
    pad: int = 0,
) -> Decoded:
    """Draws `num_samples` sequences per item, best score first; same generator, same samples.

    `top_k` keeps the k best tokens, `top_p` then the fewest whose share reaches p. Scores are the model's own log
    probabilities, before temperature and cuts. One random number is used per row and step whether or not the row is
    over, so what one item draws does not depend on when its neighbours end.
    """
    check_sampling(temperature, top_k, top_p)
    if num_samples < 1:
        raise ConfigError(f"num_samples must be at least 1, got {num_samples}")
    num_rows = batch_size * num_samples

    def choose(log_probs: Tensor, origin: Tensor) -> Tensor:
        luck = torch.rand(num_rows, generator=generator, dtype=torch.float64)[origin]
        return _draw(log_probs, luck, temperature, top_k, top_p)

    limits = RollOutLimits(start, end, max_length, min_length, pad)
    return roll_out(step, state, choose, limits, batch_size=batch_size, rows_per_item=num_samples, adjust=adjust)


def _draw(log_probs: Tensor, luck: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """The token at which the cumulative probability passes `luck` [R], in [0, 1) -> [R]."""
    ids: Tensor | None = None
    if top_k is not None:
        log_probs, ids = best_choices(log_probs, top_k)
    elif top_p is not None:
        log_probs, ids = log_probs.sort(dim=1, descending=True, stable=True)
    highest = log_probs.amax(dim=1, keepdim=True)
    # Subtracting the highest first keeps tiny temperatures finite; a row without any mass is left to the caller.
    relative = (log_probs - highest.masked_fill(highest == -math.inf, 0.0)).double() / temperature
    reached = relative.exp().cumsum(dim=1)  # [R, V or k], not normalised
    if top_p is not None:
        mass = relative.exp()
        before = reached - mass
        reached = mass.masked_fill(before >= top_p * reached[:, -1:], 0.0).cumsum(dim=1)
    total = reached[:, -1:]
    target = torch.minimum(luck.unsqueeze(1) * total, total.nextafter(torch.zeros_like(total)))
    position = torch.searchsorted(reached, target, right=True).clamp_max(log_probs.size(1) - 1)
    if bool(highest.isnan().any()):  # points at the nan, which the caller refuses unless the row is over
        position = torch.where(highest.isnan(), log_probs.argmax(dim=1, keepdim=True), position)
    return (position if ids is None else ids.gather(1, position)).squeeze(1)


def check_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """ConfigError for values that nothing can be drawn with."""
    if not temperature > 0:
        raise ConfigError(f"temperature must be above 0, got {temperature}; use greedy for the limit at 0")
    if top_k is not None and top_k < 1:
        raise ConfigError(f"top_k must be at least 1, got {top_k}; use None to keep every token")
    if top_p is not None and not 0 < top_p <= 1:
        raise ConfigError(f"top_p must be above 0 and at most 1, got {top_p}; use None to keep every token")
