"""The most probable token at every step."""

from __future__ import annotations

from torch import Tensor

from vrbot.decoding.ranking import best_choices
from vrbot.decoding.rollout import RollOutLimits, roll_out
from vrbot.decoding.step import Adjust, Decoded, StateT, StepFunction


def greedy(
    step: StepFunction[StateT],
    state: StateT,
    batch_size: int,
    start: int,
    end: int,
    max_length: int,
    *,
    min_length: int = 0,
    adjust: Adjust | None = None,
    pad: int = 0,
) -> Decoded:
    """Follows the best token, the lower id of equals, for at most `max_length` steps; n is 1.

    The score is the sum of log probabilities, the end symbol's included.
    """

    def choose(log_probs: Tensor, origin: Tensor) -> Tensor:
        return best_choices(log_probs, 1)[1].squeeze(1)  # less than half the time of argmax on a batch

    limits = RollOutLimits(start, end, max_length, min_length, pad)
    return roll_out(step, state, choose, limits, batch_size=batch_size, rows_per_item=1, adjust=adjust)
