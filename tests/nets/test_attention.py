"""Attention reads what exists, and nothing where nothing exists."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vrbot.nets.attention import AdditiveAttention, DotAttention, FoldedMemory, LongMemory, Memory, read_folded

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


def long_memories(*lengths: int) -> tuple[Memory, LongMemory]:
    """The same rows of the given lengths, twice."""
    random = torch.Generator().manual_seed(4)
    vectors = torch.randn(len(lengths), max(lengths), HIDDEN, generator=random)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    mask[:, 1] = False  # a hole: what exists need not come first
    return Memory(vectors, mask), LongMemory(vectors, mask)


@torch.no_grad()
def test_rows_read_the_same_in_groups_of_similar_length_also_after_some_are_gone() -> None:
    plain, grouped = long_memories(2, 40, 0, 3, 5, 1, 2, 9, 4, 30)
    query = torch.randn(10, 2, HIDDEN, generator=torch.Generator().manual_seed(5))
    assert grouped._groups is not None
    torch.testing.assert_close(dot().read(query, grouped), dot().read(query, plain))
    fewer = torch.tensor([9, 8, 7, 5, 4, 3, 2, 1, 0])
    torch.testing.assert_close(dot().read(query[fewer], grouped.select(fewer)), dot().read(query, plain)[fewer])


def test_rows_of_similar_length_are_not_taken_apart() -> None:
    assert long_memories(*[7] * 20)[1]._groups is None
    assert long_memories(9)[1]._groups is None


@torch.no_grad()
def test_a_folded_memory_says_to_the_next_layer_what_reading_it_would() -> None:
    attention, query = dot(), queries()
    layer = torch.randn(5, HIDDEN, generator=torch.Generator().manual_seed(6))
    keys = values() @ attention.project_query.weight / math.sqrt(HIDDEN)
    folded = FoldedMemory(values(), MASK, keys, values() @ layer.T)
    null = attention.project_query(query) @ attention.null_key.unsqueeze(1) / math.sqrt(HIDDEN)
    expected = attention.read(query, Memory(values(), MASK)) @ layer.T
    torch.testing.assert_close(read_folded(query, null, folded), expected)
    rows = torch.tensor([2, 0])
    torch.testing.assert_close(read_folded(query[rows], null[rows], folded.select(rows)), expected[rows])


def test_the_gradient_of_additive_attention_is_that_of_its_plain_form() -> None:
    torch.manual_seed(3)
    additive, memory, query = AdditiveAttention(HIDDEN, HIDDEN, 6).double(), values().double(), queries()[:, 0].double()
    rows = torch.tensor([0, 2])  # those that can read something
    found: list[Tensor] = []
    expected: list[Tensor] = []
    for form in (found, expected):
        given = [query.clone().requires_grad_(), memory.clone().requires_grad_(), *additive.parameters()]
        if form is found:
            read = additive(given[0], given[1], MASK)[rows]
        else:
            hidden = torch.tanh(additive.project_query(given[0]).unsqueeze(1) + additive.project_key(given[1]))
            scores = additive.score(hidden).squeeze(-1).masked_fill(~MASK, -math.inf)[rows]
            read = torch.bmm(scores.softmax(dim=-1).unsqueeze(1), given[1][rows]).squeeze(1)
        form += [read, *torch.autograd.grad(read.square().sum(), given)]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
