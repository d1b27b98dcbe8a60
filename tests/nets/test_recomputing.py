"""What is computed again gives the gradient of what was kept, dropout included, and only large parts are."""

from __future__ import annotations

import pytest
import torch

from vrbot.nets.recomputing import WORTH_IT, computed_again


class Counted:
    """A network with dropout that knows how often it ran."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.inner, self.runs = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)), 0

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        found: torch.Tensor = self.inner(values).tanh()
        return found


def _gradient(kept: int) -> tuple[torch.Tensor, Counted]:
    network, values = Counted(), torch.arange(12.0).view(3, 4).requires_grad_()
    torch.manual_seed(1)
    computed_again(kept, network, values).square().sum().backward()
    assert values.grad is not None
    return values.grad, network


def test_the_gradient_is_the_same_to_the_last_bit_whether_results_are_kept_or_made_anew() -> None:
    (small, _), (large, _) = _gradient(0), _gradient(WORTH_IT)
    assert torch.equal(small, large)
    assert small.abs().sum() > 0


@pytest.mark.parametrize(("kept", "runs"), [(WORTH_IT - 1, 1), (WORTH_IT, 2)])
def test_only_what_would_keep_much_runs_twice(kept: int, runs: int) -> None:
    assert _gradient(kept)[1].runs == runs


def test_without_gradient_nothing_runs_twice() -> None:
    network = Counted()
    with torch.no_grad():
        computed_again(WORTH_IT, network, torch.ones(1, 4))
    assert network.runs == 1
