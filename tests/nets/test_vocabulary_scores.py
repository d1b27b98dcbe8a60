"""The target's logit and the normaliser, without keeping the logits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vrbot.nets import vocabulary_scores
from vrbot.nets.vocabulary_scores import target_and_total


def example(dtype: torch.dtype = torch.float64, spread: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    vectors = torch.randn(5, 3, generator=random, dtype=dtype) * spread
    weight, bias = torch.randn(7, 3, generator=random, dtype=dtype), torch.randn(7, generator=random, dtype=dtype)
    return vectors.requires_grad_(), weight.requires_grad_(), bias.requires_grad_(), torch.tensor([0, 6, 3, 3, 1])


def differentiable(dtype: torch.dtype = torch.float64) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """The same, what has a gradient apart from the targets."""
    vectors, weight, bias, target = example(dtype)
    return (vectors, weight, bias), target


def obvious(vectors: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logits = vectors @ weight.T + bias
    return logits.gather(1, target.unsqueeze(1)).squeeze(1), logits.logsumexp(dim=1)


def test_values_are_those_of_gather_and_logsumexp() -> None:
    for spread in (1.0, 200.0):
        for found, expected in zip(
            target_and_total(*example(spread=spread)), obvious(*example(spread=spread)), strict=True
        ):
            torch.testing.assert_close(found, expected)


def test_gradients_agree_with_finite_differences() -> None:
    inputs, target = differentiable()
    random = torch.Generator().manual_seed(1)
    weights = torch.randn(2, len(target), generator=random, dtype=torch.float64)
    gradients = torch.autograd.grad((weights * torch.stack(target_and_total(*inputs, target))).sum(), inputs)
    for which, gradient in enumerate(gradients):
        for place in range(gradient.numel()):
            values = []
            for sign in (1.0, -1.0):
                moved = vectors, weight, bias = [tensor.detach().clone() for tensor in inputs]
                moved[which].view(-1)[place] += sign * 1e-6
                values.append((weights * torch.stack(target_and_total(vectors, weight, bias, target))).sum())
            torch.testing.assert_close(
                (values[0] - values[1]) / 2e-6, gradient.reshape(-1)[place], atol=1e-7, rtol=1e-6
            )


def test_a_second_walk_back_is_refused_because_the_first_used_up_the_logits() -> None:
    inputs, target = differentiable()
    total = target_and_total(*inputs, target)[1].sum()
    torch.autograd.grad(total, inputs, retain_graph=True)
    with pytest.raises(RuntimeError, match="inplace"):
        torch.autograd.grad(total, inputs)


def test_gradients_are_those_of_gather_and_logsumexp_in_single_precision() -> None:
    inputs, target = differentiable(torch.float32)
    gradients = []
    for function in (target_and_total, obvious):
        chosen, total = function(*inputs, target)
        gradients.append(torch.autograd.grad((chosen - 0.5 * total).square().sum(), inputs))
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kept", [7, 14, 1000])
def test_many_logits_in_blocks_give_the_same(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_scores, "LOGITS_KEPT", kept)
    inputs, target = differentiable()
    results = []
    for function in (target_and_total, obvious):
        chosen, total = function(*inputs, target)
        results.append((chosen, total, *torch.autograd.grad((chosen - 0.5 * total).square().sum(), inputs)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)


def test_one_result_alone_can_be_used() -> None:
    inputs, target = differentiable()
    for which in (0, 1):
        found = torch.autograd.grad(target_and_total(*inputs, target)[which].sum(), inputs)
        expected = torch.autograd.grad(obvious(*inputs, target)[which].sum(), inputs, allow_unused=True)
        for mine, theirs in zip(found, expected, strict=True):
            assert theirs is not None
            torch.testing.assert_close(mine, theirs)
