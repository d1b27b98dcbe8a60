"""Parts whose intermediate results are computed again in the backward pass instead of being kept for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils.checkpoint import checkpoint

ResultT = TypeVar("ResultT")


def computed_again(function: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """function(*arguments); what it keeps for its gradient is made anew when the gradient is taken.

    Worth it where little work leaves much behind. Torch's own randomness (dropout) is repeated; the function must draw
    from no other generator, and must leave its arguments as they are.
    """
    if not torch.is_grad_enabled():
        return function(*arguments)
    result: ResultT = checkpoint(function, *arguments, use_reentrant=False)
    return result
