"""The recurrence that reads at every step, against the same in plain steps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vrbot.nets.attention import DotAttention, Memory
from vrbot.nets.reading_gru import read_along
from vrbot.nets.recurrence import pack, spread

LENGTHS, WIDTH, HIDDEN, SIZE = torch.tensor([5, 5, 3, 1, 1]), 6, 4, 3


class Parts(nn.Module):
    """Attentions and layers with weights that are not zero anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(DotAttention(HIDDEN, HIDDEN) for _ in range(3))
        self.of_word = nn.Linear(SIZE, 3 * HIDDEN, bias=False)
        self.of_readings = nn.Linear(3 * HIDDEN, 3 * HIDDEN)
        self.of_hidden = nn.Linear(HIDDEN, 3 * HIDDEN)
        for parameter in self.parameters():
            nn.init.normal_(parameter)

    def in_plain_steps(self, words: Tensor, hidden: Tensor, memories: list[Memory]) -> Tensor:
        states = []
        for position in range(words.shape[1]):
            now = [Memory(m.values, m.mask if m.mask.dim() == 2 else m.mask[:, position]) for m in memories]
            read = [a.read(hidden.unsqueeze(1), m) for a, m in zip(self.attentions, now, strict=True)]  # type: ignore[operator]
            from_input = self.of_word(words[:, position]) + self.of_readings(torch.cat(read, dim=-1).squeeze(1))
            x, h = from_input.chunk(3, dim=-1), self.of_hidden(hidden).chunk(3, dim=-1)
            update = torch.sigmoid(x[1] + h[1])
            candidate = torch.tanh(x[2] + torch.sigmoid(x[0] + h[0]) * h[2])
            hidden = (1 - update) * candidate + update * hidden
            states.append(hidden)
        return torch.stack(states, dim=1)


def memories(*, per_position: bool) -> list[Memory]:
    random = torch.Generator().manual_seed(3)
    found = []
    for slots in (7, 2, 1):
        values = torch.randn(len(LENGTHS), slots, HIDDEN, generator=random, dtype=torch.float64).requires_grad_()
        mask = torch.rand(len(LENGTHS), slots, generator=random) > 0.3
        mask[2] = False  # nothing to read at all
        found.append(Memory(values, mask))
    if per_position:
        last = found.pop()
        varied = torch.rand(len(LENGTHS), WIDTH, 1, generator=random) > 0.5
        found.append(Memory(last.values, varied))
    return found


@pytest.mark.parametrize("per_position", [False, True])
def test_states_and_gradients_are_those_of_plain_steps(per_position: bool) -> None:
    torch.manual_seed(0)
    parts = Parts().double()
    words = torch.randn(len(LENGTHS), WIDTH, SIZE, dtype=torch.float64).requires_grad_()
    start = torch.randn(len(LENGTHS), HIDDEN, dtype=torch.float64).requires_grad_()
    readable, packing = memories(per_position=per_position), pack(LENGTHS, WIDTH)
    layers = (parts.of_word, parts.of_readings, parts.of_hidden)
    packed = words.flatten(0, 1)[packing.flat]
    attentions = [attention for attention in parts.attentions if isinstance(attention, DotAttention)]
    found = spread(read_along(attentions, layers, packed, start, packing.sizes, readable), packing, words.shape[:2])
    there = (torch.arange(WIDTH) < LENGTHS.unsqueeze(1)).unsqueeze(-1)
    expected = parts.in_plain_steps(words, start, readable) * there
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, dtype=torch.float64)
    sought = [words, start, *(memory.values for memory in readable), *parts.parameters()]
    gradients = [torch.autograd.grad((states * weights).sum(), sought) for states in (found, expected)]
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)
