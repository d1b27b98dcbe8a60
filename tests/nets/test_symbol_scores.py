"""Span symbols generated or copied in place, against the same from parts that keep everything."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vrbot.nets.copying import add_copies
from vrbot.nets.symbol_scores import symbol_log_probs

ROWS, POSITIONS, SYMBOLS, SLOTS = 3, 2, 6, 4


def example() -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Logits, copy scores, ids (one twice in a row), what is used, what has ended."""
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(ROWS, POSITIONS, SYMBOLS, generator=random, dtype=torch.float64)
    copies = torch.randn(ROWS, POSITIONS, SLOTS, generator=random, dtype=torch.float64)
    ids = torch.tensor([[1, 1, 3, 0], [2, 4, 4, 2], [0, 1, 2, 3]])
    used = torch.zeros(ROWS, POSITIONS, SYMBOLS, dtype=torch.bool)
    used[0, 1, 1] = used[1, 0, 5 - 1] = True
    copies[0, 1, :2] = copies[1, 0, 1] = -math.inf  # a used symbol, copied no more or only from one of its slots
    copies[2, 0] = -math.inf
    ended = torch.tensor([[False, False], [False, True], [False, False]])
    return logits.requires_grad_(), copies.requires_grad_(), ids, used, ended


def in_parts(logits: Tensor, copies: Tensor, ids: Tensor, used: Tensor, ended: Tensor) -> Tensor:
    merged = add_copies(logits.masked_fill(used, -math.inf), copies, ids).log_softmax(dim=-1)
    nothing_more = torch.full((SYMBOLS,), -math.inf, dtype=logits.dtype)
    nothing_more[-1] = 0.0
    return torch.where(ended.unsqueeze(-1), nothing_more, merged)


def test_values_and_gradients_are_those_of_the_parts() -> None:
    logits, copies, ids, used, ended = example()
    found = symbol_log_probs(logits * 1.0, copies, ids, used, ended)  # takes the memory of the product
    expected = in_parts(logits, copies, ids, used, ended)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gradients = [
        torch.autograd.grad((torch.where(each > -math.inf, each, 0.0) * weights).sum(), (logits, copies))
        for each in (found, expected)
    ]
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_fixed_biases_are_added_to_entities_and_to_none() -> None:
    logits, copies, ids, used, ended = (tensor.detach() for tensor in example())
    ending = torch.tensor([[1.0, 0.0], [0.5, 2.0], [0.0, -3.0]], dtype=torch.float64)
    biased = logits - 6.0
    biased[..., -1] += 6.0 + ending
    found = symbol_log_probs(logits.clone(), copies, ids, used, ended, bias=-6.0, ending=ending)
    torch.testing.assert_close(found, in_parts(biased, copies, ids, used, ended))


def test_without_slots_it_is_a_softmax() -> None:
    logits, copies, ids, _, _ = (tensor.detach() for tensor in example())
    nowhere = torch.zeros(ROWS, POSITIONS, dtype=torch.bool)
    found = symbol_log_probs(logits.clone(), copies[..., :0], ids[:, :0], None, nowhere)
    torch.testing.assert_close(found, logits.log_softmax(dim=-1))


def test_slots_far_below_the_best_one_leave_gradients_finite() -> None:
    """Their mass rounds to nothing beside the best slot's, even where what is generated is lower still."""
    generation = torch.full((1, 1, 4), -400.0, requires_grad=True)
    copy_scores = torch.tensor([[[50.0, -150.0, -math.inf]]], requires_grad=True)
    ids, ended = torch.tensor([[0, 1, 2]]), torch.zeros(1, 1, dtype=torch.bool)
    log_probs = symbol_log_probs(generation.clone(), copy_scores, ids, None, ended)
    (log_probs[0, 0, 0] + 1e-3 * log_probs[0, 0, 1]).backward()
    assert generation.grad is not None
    assert copy_scores.grad is not None
    assert bool(generation.grad.isfinite().all())
    assert bool(copy_scores.grad.isfinite().all())
