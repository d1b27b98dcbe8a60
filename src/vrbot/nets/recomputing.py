"""Parts whose intermediate results are computed again in the backward pass instead of being kept for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils.checkpoint import checkpoint

ResultT = TypeVar("ResultT")

WORTH_IT = 8_000_000
"""So many numbers (32 MB) are too many to keep; fewer are kept, which is faster."""


def computed_again(kept: int, function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """function(*arguments); where it would keep many numbers for its gradient (about `kept`), it keeps none of them and
    makes them anew when the gradient is taken. The result is the same to the last bit.

    Worth it where little work leaves much behind. Torch's own randomness (dropout) is repeated; the function must draw
    from no other generator, and must leave its arguments as they are.
    """
    if kept < WORTH_IT or not torch.is_grad_enabled():
        return function(*arguments)
    result: ResultT = checkpoint(function, *arguments, use_reentrant=False)
    return result
