from __future__ import annotations

import math
from typing import Any

import torch
from hypothesis import given, settings
from torch.distributions import Categorical, kl_divergence

from tests.probability.cases import Shape, holes_of, logits_of, shapes, with_holes
from vrbot.probability import SpanDistribution, masked_log_softmax

quick = settings(max_examples=60, deadline=None)


@quick
@given(shapes())
def test_divergence_entropy_and_log_prob_are_those_of_torch(shape: Shape):
    posterior, prior = (SpanDistribution(logits_of(shape, i).log_softmax(-1)) for i in (0, 1))
    reference_q: Any = Categorical(logits=posterior.log_probs)
    reference_p: Any = Categorical(logits=prior.log_probs)
    span = reference_p.sample()
    torch.testing.assert_close(posterior.kl(prior), kl_divergence(reference_q, reference_p).sum(-1))
    torch.testing.assert_close(posterior.entropy(), reference_q.entropy().sum(-1))
    torch.testing.assert_close(posterior.log_prob(span), reference_q.log_prob(span).sum(-1))
    assert torch.equal(posterior.mode(), posterior.log_probs.argmax(-1))


@quick
@given(shapes())
def test_divergence_is_never_negative_and_zero_only_with_itself(shape: Shape):
    allowed = holes_of(shape)
    posterior, prior = (SpanDistribution(with_holes(logits_of(shape, i), allowed)) for i in (0, 1))
    assert (posterior.kl(prior) >= -1e-12).all()
    assert torch.equal(posterior.kl(posterior), torch.zeros(shape.sessions, dtype=torch.float64))
    several = (allowed.sum(-1) > 1).any(-1)
    assert (posterior.kl(prior)[several] > 0).all()


@quick
@given(shapes())
def test_symbols_without_mass_on_both_sides_change_neither_value_nor_gradient(shape: Shape):
    allowed = holes_of(shape)
    logits = [logits_of(shape, i).requires_grad_() for i in (0, 1)]
    posterior, prior = (SpanDistribution(with_holes(part, allowed)) for part in logits)
    value = posterior.kl(prior).sum()
    gradients = torch.autograd.grad(value, logits)

    # Oracle: the same positions with the absent symbols cut out.
    expected = torch.zeros((), dtype=torch.float64)
    for session in range(shape.sessions):
        for position in range(shape.positions):
            kept = allowed[session, position]
            q, p = (Categorical(logits=part[session, position][kept]) for part in logits)
            expected = expected + kl_divergence(q, p)
    torch.testing.assert_close(value, expected)
    for ours, theirs in zip(gradients, torch.autograd.grad(expected, logits), strict=True):
        torch.testing.assert_close(ours, theirs)
        assert (ours[~allowed] == 0).all()


def test_zero_mass_in_the_posterior_is_free_even_where_the_prior_has_some():
    posterior = torch.tensor([[[0.0, -math.inf]]], requires_grad=True)
    prior = torch.tensor([[[0.25, 0.75]]]).log().requires_grad_()
    value = SpanDistribution(posterior).kl(SpanDistribution(prior))
    torch.autograd.backward(value.sum())
    torch.testing.assert_close(value, torch.tensor([math.log(4)]))
    assert posterior.grad is not None
    assert prior.grad is not None
    assert posterior.grad.isfinite().all()
    assert prior.grad.isfinite().all()


def test_mass_that_the_prior_rules_out_is_infinitely_surprising_unless_a_floor_is_asked_for():
    posterior = SpanDistribution(torch.tensor([[[0.5, 0.5]]]).log())
    prior_log_probs = torch.tensor([[[0.0, -math.inf]]], requires_grad=True)
    prior = SpanDistribution(prior_log_probs)
    assert posterior.kl(prior).item() == math.inf
    bounded = posterior.kl(prior, floor=-10.0)
    torch.testing.assert_close(bounded, torch.tensor([0.5 * 10 - math.log(2)]))
    (gradient,) = torch.autograd.grad(bounded.sum(), prior_log_probs)
    assert gradient.isfinite().all()


def test_mass_too_small_for_a_float_counts_as_none():
    posterior = torch.tensor([[[0.0, -200.0]]], requires_grad=True)
    value = SpanDistribution(posterior).kl(SpanDistribution(torch.tensor([[[0.0, -math.inf]]])))
    torch.autograd.backward(value.sum())
    assert value.item() == 0
    assert posterior.grad is not None
    assert posterior.grad.isfinite().all()


@quick
@given(shapes())
def test_positions_that_do_not_exist_add_nothing_whatever_they_hold(shape: Shape):
    real = torch.rand(shape.sessions, shape.positions, generator=shape.generator(7)) < 0.5
    clean = [logits_of(shape, i).log_softmax(-1) for i in (0, 1)]
    dirty = [part.masked_fill(~real.unsqueeze(-1), math.nan).requires_grad_() for part in clean]
    span = torch.randint(0, shape.symbols, real.shape, generator=shape.generator(8)).masked_fill(~real, -100)
    posterior, prior = (SpanDistribution(part, real) for part in dirty)
    weights = posterior.relaxed_sample(0.7, shape.generator(9))

    per_position = kl_divergence(*(Categorical(logits=part) for part in clean))
    torch.testing.assert_close(posterior.kl(prior), (per_position * real).sum(-1))
    torch.testing.assert_close(posterior.log_prob(span), SpanDistribution(clean[0]).log_prob(span.clamp_min(0), real))
    assert posterior.entropy().isfinite().all()
    assert (weights[~real] == 0).all()
    total = posterior.kl(prior).sum() + posterior.entropy().sum() + posterior.log_prob(span).sum() + weights.sum()
    for gradient in torch.autograd.grad(total, dirty):
        assert gradient.isfinite().all()
        assert (gradient[~real] == 0).all()


@quick
@given(shapes())
def test_a_masked_softmax_is_the_softmax_of_what_is_left(shape: Shape):
    allowed = holes_of(shape)
    allowed[0, 0] = False
    logits = logits_of(shape).requires_grad_()
    log_probs = masked_log_softmax(logits, allowed)
    mass = log_probs.exp()
    assert torch.equal(log_probs == -math.inf, ~allowed)
    torch.testing.assert_close(mass.sum(-1), allowed.any(-1).double())
    expected = with_holes(logits, allowed)[allowed.any(-1)]
    torch.testing.assert_close(log_probs[allowed.any(-1)], expected)
    (gradient,) = torch.autograd.grad((mass * torch.arange(shape.symbols)).sum(), logits)
    assert gradient.isfinite().all()
    assert (gradient[~allowed] == 0).all()


@quick
@given(shapes(max_symbols=5))
def test_divergence_has_the_gradient_that_finite_differences_find(shape: Shape):
    logits = tuple(logits_of(shape, i, scale=1.0).requires_grad_() for i in (0, 1))

    def value(q: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        return SpanDistribution(q.log_softmax(-1)).kl(SpanDistribution(p.log_softmax(-1)))

    assert torch.autograd.gradcheck(value, logits)


def test_a_detached_posterior_sends_no_gradient_but_the_prior_still_learns():
    logits = [torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(i)).requires_grad_() for i in (0, 1)]
    posterior, prior = (SpanDistribution(part.log_softmax(-1)) for part in logits)
    torch.autograd.backward(posterior.detach().kl(prior).sum())
    assert logits[0].grad is None
    assert logits[1].grad is not None
    assert (logits[1].grad != 0).any()
