"""Packed recurrence gives what `nn.GRU` gives, and the same gradients, whether gates are kept or computed again."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vrbot.nets import recurrence
from vrbot.nets.recurrence import gru_along, gru_over, gru_step, pack, spread

LENGTHS = torch.tensor([5, 2, 0, 1, 4, 2])


def network() -> nn.GRU:
    torch.manual_seed(0)
    return nn.GRU(3, 4, batch_first=True).double()


def example() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    inputs = torch.randn(len(LENGTHS), 6, 3, generator=random, dtype=torch.float64)
    start = torch.randn(len(LENGTHS), 4, generator=random, dtype=torch.float64)
    return inputs.requires_grad_(), start.requires_grad_()


@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_states_and_gradients_are_those_of_the_padded_net_at_real_positions(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurrence, "GATES_KEPT", kept)
    gru, (inputs, start), packing = network(), example(), pack(LENGTHS, 6)
    packed = gru_along(gru, inputs.flatten(0, 1)[packing.flat], packing.sizes, start[packing.order])
    found = spread(packed, packing, inputs.shape[:2])
    there = (torch.arange(6) < LENGTHS.unsqueeze(1)).unsqueeze(-1)
    expected = gru(inputs, start.unsqueeze(0))[0] * there
    torch.testing.assert_close(found, expected)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    sought = [inputs, start, *gru.parameters()]
    gradients = [torch.autograd.grad((states * weights).sum(), sought) for states in (found, expected)]
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_the_mirror_of_a_position_is_as_far_from_the_end_as_it_from_the_start() -> None:
    packing = pack(LENGTHS, 6)
    row, position = packing.flat // 6, packing.flat % 6
    assert torch.equal(row[packing.turned], row)
    assert torch.equal(position[packing.turned], LENGTHS[row] - 1 - position)
    assert torch.equal(position[packing.last], LENGTHS[packing.order] - 1)
    assert torch.equal(row[packing.last], packing.order)


def test_rows_that_are_all_real_run_as_in_the_net_itself() -> None:
    gru, (inputs, start) = network(), example()
    torch.testing.assert_close(gru_over(gru, inputs, start), gru(inputs, start.unsqueeze(0))[0])
    torch.testing.assert_close(gru_over(gru, inputs), gru(inputs)[0])
    torch.testing.assert_close(gru_step(gru, inputs[:, 0], start), gru(inputs[:, :1], start.unsqueeze(0))[0][:, 0])


def test_no_rows_and_no_positions_give_nothing() -> None:
    gru, (inputs, _) = network(), example()
    assert gru_over(gru, inputs[:0]).shape == (0, 6, 4)
    assert gru_over(gru, inputs[:, :0]).shape == (6, 0, 4)
    assert pack(torch.zeros(3, dtype=torch.long), 4).sizes == ()
