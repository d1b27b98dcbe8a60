"""Attention reads what exists, and nothing where nothing exists."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vrbot.nets.attention import AdditiveAttention, DotAttention, Memory

HIDDEN = 4
MASK = torch.tensor([[True, True, False], [False, False, False], [True, True, True]])


def values() -> Tensor:
    return torch.randn(3, 3, HIDDEN, generator=torch.Generator().manual_seed(0))


def queries() -> Tensor:
    return torch.randn(3, 2, HIDDEN, generator=torch.Generator().manual_seed(1))


def dot() -> DotAttention:
    torch.manual_seed(2)
    attention = DotAttention(HIDDEN, HIDDEN)
    torch.nn.init.normal_(attention.null_key)
    return attention


def test_dot_attention_is_a_softmax_over_the_slots_and_a_slot_that_reads_zeros() -> None:
    attention, memory, query = dot(), values(), queries()
    found = attention.read(query, Memory(memory, MASK))
    for row in range(3):
        slots = torch.cat((memory[row][MASK[row]], attention.null_key.unsqueeze(0)))
        weights = (attention.project_query(query[row]) @ slots.T / math.sqrt(HIDDEN)).softmax(dim=-1)
        torch.testing.assert_close(found[row], weights[:, :-1] @ slots[:-1])


def test_what_stands_in_absent_slots_does_not_matter() -> None:
    other = torch.where(MASK.unsqueeze(-1), values(), torch.full_like(values(), 7.0))
    torch.testing.assert_close(
        dot().read(queries(), Memory(other, MASK)), dot().read(queries(), Memory(values(), MASK))
    )
    torch.manual_seed(3)
    additive = AdditiveAttention(HIDDEN, HIDDEN, HIDDEN)
    torch.testing.assert_close(additive(queries()[:, 0], other, MASK), additive(queries()[:, 0], values(), MASK))


def test_an_empty_memory_reads_zeros_and_sends_finite_gradients() -> None:
    torch.manual_seed(3)
    attention, additive, memory = dot(), AdditiveAttention(HIDDEN, HIDDEN, HIDDEN), values().requires_grad_()
    read = torch.cat((attention.read(queries(), Memory(memory, MASK))[:, 0], additive(queries()[:, 0], memory, MASK)))
    assert not read[[1, 4]].any()
    (gradient,) = torch.autograd.grad(read.sum(), memory)
    assert bool(gradient.isfinite().all())
    assert not gradient[1].any()
    assert not dot().read(queries(), Memory(values()[:, :0], MASK[:, :0])).any()
    assert not additive(queries()[:, 0], values()[:, :0], MASK[:, :0]).any()
