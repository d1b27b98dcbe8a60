from __future__ import annotations

from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Independent, Normal, kl_divergence

from vrbot.probability import DiagonalGaussian

quick = settings(max_examples=60, deadline=None)


def random_gaussian(seed: int, sessions: int = 3, size: int = 4) -> DiagonalGaussian:
    generator = torch.Generator().manual_seed(seed)
    mean, log_variance = torch.randn(2, sessions, size, generator=generator, dtype=torch.float64)
    return DiagonalGaussian(mean, 2 * log_variance)


def reference(gaussian: DiagonalGaussian) -> Any:
    return Independent(Normal(gaussian.mean, (0.5 * gaussian.log_variance).exp()), 1)


@quick
@given(st.integers(0, 10_000))
def test_divergence_and_density_are_those_of_torch(seed: int):
    posterior, prior = random_gaussian(seed), random_gaussian(seed + 1)
    value = prior.rsample(torch.Generator().manual_seed(seed))
    torch.testing.assert_close(posterior.kl(prior), kl_divergence(reference(posterior), reference(prior)))
    torch.testing.assert_close(posterior.log_prob(value), reference(posterior).log_prob(value))
    assert (posterior.kl(prior) > 0).all()
    assert (posterior.kl(posterior) == 0).all()


def test_samples_have_the_mean_and_the_variance_they_were_asked_for_and_carry_gradients():
    mean = torch.tensor([[1.0, -2.0]]).expand(50_000, 2).requires_grad_()
    log_variance = torch.tensor([[0.0, 2.0]]).expand(50_000, 2).requires_grad_()
    draws = DiagonalGaussian(mean, log_variance).rsample(torch.Generator().manual_seed(1))
    torch.testing.assert_close(draws.mean(0), mean[0], atol=0.05, rtol=0)
    torch.testing.assert_close(draws.var(0).log(), log_variance[0], atol=0.05, rtol=0)
    gradients = torch.autograd.grad(draws.square().sum(), (mean, log_variance))
    assert all((gradient != 0).any() for gradient in gradients)
    again = DiagonalGaussian(mean, log_variance).rsample(torch.Generator().manual_seed(1))
    assert torch.equal(draws, again)


def test_the_standard_normal_has_no_divergence_from_zero_mean_and_unit_variance():
    standard = DiagonalGaussian.standard(torch.empty(2, 3))
    assert (standard.kl(DiagonalGaussian(torch.zeros(2, 3), torch.zeros(2, 3))) == 0).all()
    assert not DiagonalGaussian(torch.zeros(1, 1, requires_grad=True), torch.zeros(1, 1)).detach().mean.requires_grad
