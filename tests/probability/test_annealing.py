from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vrbot.errors import ConfigError
from vrbot.probability import Constant, Exponential, Linear, Schedule, free_bits

ends = st.floats(0.01, 10.0)
counts = st.integers(1, 40_000)


def test_the_papers_temperature_falls_from_three_to_a_tenth_in_thirty_thousand_steps():
    for schedule in (Linear(3.0, 0.1, 30_000), Exponential(3.0, 0.1, 30_000)):
        assert schedule.value(0) == 3.0
        assert schedule.value(30_000) == 0.1
        assert schedule.value(1_000_000) == 0.1
    assert Linear(3.0, 0.1, 30_000).value(15_000) == pytest.approx(1.55)
    assert Exponential(3.0, 0.1, 30_000).value(15_000) == pytest.approx((3.0 * 0.1) ** 0.5)


@given(ends, ends, counts, st.integers(-10, 50_000))
def test_a_schedule_moves_one_way_and_never_leaves_its_ends(start: float, end: float, steps: int, step: int):
    schedules: list[Schedule] = [Linear(start, end, steps), Exponential(start, end, steps)]
    for schedule in schedules:
        now, later = schedule.value(step), schedule.value(step + 1)
        assert min(start, end) * (1 - 1e-9) <= now <= max(start, end) * (1 + 1e-9)
        assert (later - now) * (end - start) >= -1e-9


def test_a_constant_does_not_move():
    assert Constant(0.2).value(0) == Constant(0.2).value(10**9) == 0.2


@pytest.mark.parametrize("kind", [Linear, Exponential])
def test_a_schedule_without_steps_is_refused(kind: type[Linear] | type[Exponential]):
    with pytest.raises(ConfigError, match="at least 1 step, got 0"):
        kind(1.0, 0.5, 0)


def test_an_exponential_schedule_cannot_touch_zero():
    with pytest.raises(ConfigError, match=r"above 0, got 1\.0 and 0\.0"):
        Exponential(1.0, 0.0, 10)


def test_free_bits_hold_the_divergence_at_the_floor_without_gradient():
    divergence = torch.tensor([0.1, 2.0], requires_grad=True)
    kept = free_bits(divergence, 0.5)
    torch.autograd.backward(kept.sum())
    assert kept.tolist() == [0.5, 2.0]
    assert divergence.grad is not None
    assert divergence.grad.tolist() == [0.0, 1.0]
