"""Log probabilities of span symbols, generated or copied, in the memory of the generation logits.

At thousands of entities every pass over [N, Q, S] costs time and, where autograd keeps it, memory; here one such tensor
is kept for each distribution. Letters: N rows, Q positions, S symbols (the last is NONE), J slots to copy from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def symbol_log_probs(
    generation: Tensor,
    copy_scores: Tensor,
    copy_ids: Tensor,
    used: Tensor | None,
    ended: Tensor,
    *,
    bias: float = 0.0,
    ending: Tensor | None = None,
) -> Tensor:
    """Log probabilities [N, Q, S] from generation logits [N, Q, S], whose memory they take.

    Slots of ids [N, J] have scores [N, Q, J], `-inf` where they are ruled out, and add to what is generated under one
    normaliser. What is used [N, Q, S] is not generated; an ended span [N, Q] goes on with NONE for certain. To the
    logits are added a fixed `bias`, but for NONE, and for NONE `ending` [N, Q].
    """
    if bias or ending is not None:
        with torch.no_grad():  # constants: the gradient is that of the logits
            generation.detach()[..., :-1] += bias
            generation.detach()[..., -1] += 0.0 if ending is None else ending
    apply: Callable[..., Tensor] = _SymbolLogProbs.apply
    return apply(generation, copy_scores, copy_ids, used, ended)


class _SymbolLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, generation: Tensor, copy_scores: Tensor, copy_ids: Tensor, used: Tensor | None, ended: Tensor
    ) -> Tensor:
        ctx.mark_dirty(generation)
        logits = generation if used is None else generation.masked_fill_(used, -math.inf)
        ids = copy_ids.unsqueeze(1).expand_as(copy_scores)
        generated = logits.gather(-1, ids)  # [N, Q, J]
        merged = _merged(generated, copy_scores, copy_ids)
        if ids.shape[-1]:
            logits.scatter_(-1, ids, merged)
        total = logits.logsumexp(dim=-1, keepdim=True)
        log_probs = logits.sub_(total)
        log_probs.masked_fill_(ended.unsqueeze(-1), -math.inf)
        log_probs[..., -1].masked_fill_(ended, 0.0)
        ctx.save_for_backward(log_probs, generated, copy_scores, merged, copy_ids, used, ended)
        return log_probs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        log_probs, generated, copy_scores, merged, copy_ids, used, ended = ctx.saved_tensors
        total = gradients[0].sum(dim=-1, keepdim=True)
        gradient = log_probs.exp().mul_(-total).add_(gradients[0])  # of the merged logits
        gradient.masked_fill_(ended.unsqueeze(-1), 0.0)
        ids = copy_ids.unsqueeze(1).expand_as(copy_scores)
        of_merged = gradient.gather(-1, ids)
        if used is not None:
            gradient.masked_fill_(used, 0.0)
        if not ids.shape[-1]:
            return gradient, None, None, None, None
        possible = merged > -math.inf
        base = torch.where(possible, merged, 0.0)
        # No part is above the whole; rounding in the forward pass may say so of slots far below the best one.
        shares = [
            (part - base).clamp_max_(0.0).exp_().masked_fill_(~possible, 0.0) for part in (generated, copy_scores)
        ]
        gradient.scatter_(-1, ids, of_merged * shares[0])
        of_copies = of_merged * shares[1]
        return gradient, of_copies, None, None, None


def _merged(generated: Tensor, copy_scores: Tensor, copy_ids: Tensor) -> Tensor:
    """The log mass of each slot's symbol [N, Q, J]: generated, or copied from any slot that holds it."""
    if copy_scores.shape[-1] == 0:
        return generated
    same = (copy_ids.unsqueeze(2) == copy_ids.unsqueeze(1)).to(copy_scores.dtype)  # [N, J, J]
    top = copy_scores.amax(dim=-1, keepdim=True)
    top.masked_fill_(top == -math.inf, 0.0)
    copied = torch.bmm((copy_scores - top).exp_(), same).log_().add_(top)
    return torch.logaddexp(generated, copied)
