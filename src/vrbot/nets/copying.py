"""Generate or copy under one normaliser: p(w) = (exp g_w + sum over slots j that hold w of exp c_j) / z.

Letters: N rows, Q positions, V symbols, J slots to copy from.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def merge_copies_in_place(
    generation: Tensor, copy_scores: Tensor, copy_ids: Tensor, same: Tensor | None = None
) -> Tensor:
    """Log probabilities [N, Q, V] from generation logits [N, Q, V] and copy scores [N, Q, J] of slots with ids [N, J].

    `-inf` rules a symbol or a slot out; ids of slots that are ruled out may be anything within the vocabulary.
    Every row needs at least one way to write something. Without gradient, in the memory of the generation logits: at
    a large vocabulary, passes over them are what decoding spends its time on. `same` is `same_ids(copy_ids)`, if it
    is at hand.
    """
    if copy_scores.shape[-1]:
        ids = copy_ids.unsqueeze(1).expand_as(copy_scores)
        generation.scatter_(-1, ids, _merged(generation, copy_scores, copy_ids, same))
    # The kernel finishes reading a row before it writes it.
    normalised: Tensor = torch.ops.aten._log_softmax.out(generation, -1, False, out=generation)
    return normalised


def same_ids(copy_ids: Tensor) -> Tensor:
    """Which slots hold the same symbol [N, J, J], 1 or 0."""
    return (copy_ids.unsqueeze(2) == copy_ids.unsqueeze(1)).float()


def add_copies(generation: Tensor, copy_scores: Tensor, copy_ids: Tensor) -> Tensor:
    """The same before normalisation, and with gradient: unnormalised log mass of every symbol [N, Q, V].

    Only the symbols that can be copied are touched. Slots with the same id add up; each of them writes the sum, and
    the first one alone passes gradient on.
    """
    if copy_scores.shape[-1] == 0:
        return generation
    same = copy_ids.unsqueeze(2) == copy_ids.unsqueeze(1)  # [N, J, J]
    is_first = ~same.tril(diagonal=-1).any(dim=2).unsqueeze(1)  # [N, 1, J]
    merged = _merged(generation, copy_scores, copy_ids)
    ids = copy_ids.unsqueeze(1).expand_as(copy_scores)
    return generation.scatter(-1, ids, torch.where(is_first, merged, merged.detach()))


def _merged(generation: Tensor, copy_scores: Tensor, copy_ids: Tensor, same: Tensor | None = None) -> Tensor:
    """The log mass of each slot's symbol, generated or copied from any slot that holds it [N, Q, J]."""
    same = same_ids(copy_ids) if same is None else same
    top = copy_scores.detach().amax(dim=-1, keepdim=True)
    top = torch.where(top.isfinite(), top, 0.0)
    mass = torch.bmm((copy_scores - top).exp(), same.to(copy_scores.dtype))
    copied = mass >= torch.finfo(mass.dtype).tiny  # the gradient of less would be infinite
    ids = copy_ids.unsqueeze(1).expand_as(copy_scores)
    generated = generation.gather(-1, ids)
    merged = torch.logaddexp(generated, torch.where(copied, mass, 1.0).log() + top)
    return torch.where(copied, merged, generated)


def target_log_prob(target_logit: Tensor, generation_total: Tensor, copy_scores: Tensor, copy_match: Tensor) -> Tensor:
    """Log probability of the target words [N, Q], without a distribution over all words.

    target_logit and generation_total are the generation logit of the target and the logsumexp of all generation
    logits [N, Q]; copy_match [N, Q, J] says how far each slot holds the target (0 or 1, or in between for a soft
    sample). A slot that is ruled out has the score `-inf`.
    """
    if copy_scores.shape[-1] == 0:
        return target_logit - generation_total
    total = torch.logaddexp(generation_total, copy_scores.logsumexp(dim=-1))
    fixed = total.detach()
    copied = ((copy_scores - fixed.unsqueeze(-1)).exp() * copy_match).sum(dim=-1)
    mass = (target_logit - fixed).exp() + copied
    # A probability below the smallest float is still a logarithm; one just above 0 would have an infinite gradient.
    there = mass >= torch.finfo(mass.dtype).tiny
    log_mass = torch.where(there, torch.where(there, mass, 1.0).log() + fixed, target_logit)
    return log_mass - total


def rule_out(scores: Tensor, allowed: Tensor) -> Tensor:
    """Scores with `-inf` where something is not allowed."""
    return scores.masked_fill(~allowed, -math.inf)
