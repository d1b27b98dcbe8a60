from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tests.probability.cases import Shape, holes_of, logits_of, shapes, with_holes
from vrbot.errors import ConfigError
from vrbot.probability import SpanDistribution, category, divergence, relaxed_sample, straight_through

quick = settings(max_examples=60, deadline=None)
temperatures = st.sampled_from([0.1, 0.5, 1.0, 3.0])


@quick
@given(shapes(), temperatures, st.booleans())
def test_relaxed_samples_sum_to_one_and_give_nothing_to_absent_symbols(shape: Shape, temperature: float, hard: bool):
    allowed = holes_of(shape)
    logits = logits_of(shape).requires_grad_()
    log_probs = with_holes(logits, allowed)
    weights = SpanDistribution(log_probs).relaxed_sample(temperature, shape.generator(3), hard=hard)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
    assert (weights[~allowed] == 0).all()
    (gradient,) = torch.autograd.grad((weights * logits_of(shape, 4)).sum(), logits)
    assert gradient.isfinite().all()
    assert (gradient[~allowed] == 0).all()


@quick
@given(shapes(), temperatures)
def test_a_hard_sample_is_exactly_one_hot_and_its_gradient_is_that_of_the_soft_one(shape: Shape, temperature: float):
    logits = logits_of(shape).requires_grad_()
    direction = logits_of(shape, 4)
    results = []
    for hard in (True, False):
        weights = relaxed_sample(logits.log_softmax(-1), temperature, shape.generator(3), hard=hard)
        results.append((weights, torch.autograd.grad((weights * direction).sum(), logits)[0]))
    (one_hot, hard_gradient), (soft, soft_gradient) = results
    assert torch.equal(one_hot, torch.nn.functional.one_hot(soft.argmax(-1), shape.symbols).double())
    assert torch.equal(hard_gradient, soft_gradient)


@quick
@given(shapes(), temperatures)
def test_the_same_generator_draws_the_same_sample_and_the_next_draw_differs(shape: Shape, temperature: float):
    log_probs = logits_of(shape).log_softmax(-1)
    generator = shape.generator(3)
    first, second = (relaxed_sample(log_probs, temperature, generator) for _ in range(2))
    assert torch.equal(first, relaxed_sample(log_probs, temperature, shape.generator(3)))
    assert shape.symbols == 1 or not torch.equal(first, second)


def test_a_row_without_any_mass_gives_zeros_and_finite_gradients():
    log_probs = torch.full((2, 3), -math.inf).requires_grad_()
    for hard in (False, True):
        weights = relaxed_sample(log_probs, 0.5, torch.Generator().manual_seed(0), hard=hard)
        assert (weights == 0).all()
        (gradient,) = torch.autograd.grad(weights.sum(), log_probs)
        assert (gradient == 0).all()


@pytest.mark.parametrize("temperature", [0.1, 1.0, 3.0])
def test_the_largest_weight_of_relaxed_samples_falls_as_often_as_the_probabilities_say(temperature: float):
    probabilities = torch.tensor([0.45, 0.0, 0.3, 0.15, 0.1])
    draws = 20_000
    log_probs = probabilities.log().expand(draws, -1)
    chosen = relaxed_sample(log_probs, temperature, torch.Generator().manual_seed(11)).argmax(-1)
    exact = category.sample(log_probs, torch.Generator().manual_seed(12))
    for ids in (chosen, exact):
        counts = torch.bincount(ids, minlength=5)
        assert counts[1] == 0
        present = probabilities > 0
        assert chisquare(counts[present].numpy(), (probabilities * draws)[present].double().numpy()).pvalue > 1e-3


def test_relaxed_samples_become_one_hot_as_the_temperature_falls_and_flat_as_it_rises():
    log_probs = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    cold = relaxed_sample(log_probs, 1e-4, torch.Generator().manual_seed(5))
    warm = relaxed_sample(log_probs, 1e6, torch.Generator().manual_seed(5))
    torch.testing.assert_close(cold, straight_through(cold))
    torch.testing.assert_close(warm, torch.full_like(warm, 1 / 3), atol=1e-4, rtol=0)


def test_a_temperature_of_zero_is_refused_with_a_way_out():
    with pytest.raises(ConfigError, match=r"temperature must be above 0, got 0\.0; use mode"):
        relaxed_sample(torch.zeros(1, 2), 0.0, torch.Generator())


@quick
@given(shapes())
def test_a_category_is_a_span_of_one_position(shape: Shape):
    posterior, prior = (logits_of(shape, i)[:, 0].log_softmax(-1) for i in (0, 1))
    span, other = SpanDistribution(posterior.unsqueeze(1)), SpanDistribution(prior.unsqueeze(1))
    ids = category.sample(posterior, shape.generator(5))
    torch.testing.assert_close(divergence(posterior, prior), span.kl(other))
    torch.testing.assert_close(category.entropy(posterior), span.entropy())
    torch.testing.assert_close(category.chosen_log_prob(posterior, ids), span.log_prob(ids.unsqueeze(1)))
    soft = relaxed_sample(posterior, 0.5, shape.generator(6))
    assert torch.equal(soft, span.relaxed_sample(0.5, shape.generator(6)).squeeze(1))


def test_the_mode_of_equals_is_the_lower_id():
    assert SpanDistribution(torch.full((1, 1, 40), 0.025).log()).mode().item() == 0
