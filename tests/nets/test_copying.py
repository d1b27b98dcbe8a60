"""Generating and copying under one normaliser, against the obvious way of computing it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from vrbot.nets.copying import add_copies, merge_copies_in_place, rule_out, target_log_prob

ROWS, POSITIONS, SYMBOLS, SLOTS = 4, 3, 6, 5


def slow_mass(generation: Tensor, scores: Tensor, ids: Tensor) -> Tensor:
    """One symbol, one slot at a time, in double precision: unnormalised mass [N, Q, V]."""
    mass = generation.double().exp()
    for row in range(len(ids)):
        for slot, symbol in enumerate(ids[row].tolist()):
            mass[row, :, symbol] += scores[row, :, slot].double().exp()
    return mass


def normalised(generation: Tensor, scores: Tensor, ids: Tensor) -> Tensor:
    """The whole distribution [N, Q, V], with gradient."""
    return add_copies(generation, scores, ids).log_softmax(dim=-1)


def example(seed: int, spread: float = 3.0) -> tuple[Tensor, Tensor, Tensor]:
    """Generation logits, copy scores and ids; some symbols and slots are ruled out, never all of them."""
    random = torch.Generator().manual_seed(seed)
    generation = torch.randn(ROWS, POSITIONS, SYMBOLS, generator=random) * spread
    scores = torch.randn(ROWS, POSITIONS, SLOTS, generator=random) * spread
    generation[torch.rand(generation.shape, generator=random) < 0.3] = -math.inf
    scores[torch.rand(scores.shape, generator=random) < 0.3] = -math.inf
    generation[..., -1] = 0.0
    return generation, scores, torch.randint(0, SYMBOLS, (ROWS, SLOTS), generator=random)


def test_merged_copies_are_the_shares_of_the_obvious_sum() -> None:
    for seed in range(20):
        generation, scores, ids = example(seed)
        mass = slow_mass(generation, scores, ids)
        expected = (mass / mass.sum(dim=-1, keepdim=True)).log()
        torch.testing.assert_close(normalised(generation, scores, ids).double(), expected, atol=1e-5, rtol=1e-5)


def test_large_scores_do_not_overflow() -> None:
    generation, scores, ids = example(1)
    shifted = normalised(generation + 500.0, scores + 500.0, ids)
    torch.testing.assert_close(shifted, normalised(generation, scores, ids), atol=1e-4, rtol=1e-4)


def test_a_copy_far_below_the_best_one_leaves_what_is_generated() -> None:
    generation = torch.tensor([[[0.0, -150.0, -300.0]]])
    scores = torch.tensor([[[0.0, -200.0]]])
    log_probs = normalised(generation, scores, torch.tensor([[0, 1]]))
    torch.testing.assert_close(
        log_probs, torch.tensor([[[0.0, -150.0, -300.0]]]) - torch.tensor([0.0, math.log(2), math.log(2)])
    )


def test_nothing_to_copy_from_leaves_the_generation_alone() -> None:
    generation, scores, ids = example(2)
    assert torch.equal(add_copies(generation, scores[..., :0], ids[:, :0]), generation)
    everything_ruled_out = torch.full_like(scores, -math.inf)
    torch.testing.assert_close(normalised(generation, everything_ruled_out, ids), generation.log_softmax(dim=-1))


def test_the_probability_of_a_target_is_that_of_the_whole_distribution() -> None:
    for seed in range(20):
        generation, scores, ids = example(seed)
        whole = normalised(generation, scores, ids)
        for target in range(SYMBOLS):
            match = (ids == target).float().unsqueeze(1).expand(-1, POSITIONS, -1)
            found = target_log_prob(generation[..., target], generation.logsumexp(dim=-1), scores, match)
            torch.testing.assert_close(found, whole[..., target], atol=1e-5, rtol=1e-5)


def test_a_slot_that_half_holds_the_target_gives_half_its_mass() -> None:
    logit, total, scores = torch.tensor([[-math.inf]]), torch.tensor([[0.0]]), torch.tensor([[[0.0]]])
    found = target_log_prob(logit, total, scores, torch.tensor([[[0.5]]]))
    torch.testing.assert_close(found.exp(), torch.tensor([[0.25]]))


def test_a_target_less_probable_than_the_smallest_float_still_has_a_logarithm_and_a_gradient() -> None:
    logit = torch.tensor([[-400.0]], requires_grad=True)
    found = target_log_prob(logit, torch.tensor([[0.0]]), torch.tensor([[[-500.0]]]), torch.tensor([[[0.0]]]))
    torch.testing.assert_close(found, torch.tensor([[-400.0]]))
    found.sum().backward()
    assert logit.grad is not None
    torch.testing.assert_close(logit.grad, torch.ones(1, 1))


def test_however_improbable_a_target_is_its_gradient_is_finite() -> None:
    """Between the smallest float and zero lie numbers whose inverse is infinite."""
    for gap in torch.arange(80.0, 110.0, 0.25).tolist():
        logit = torch.full((1, 1), -gap, requires_grad=True)
        scores = torch.tensor([[[0.0, -math.inf, -gap - 1]]], requires_grad=True)
        found = target_log_prob(logit, torch.full((1, 1), -5.0), scores, torch.tensor([[[0.0, 0.0, 1.0]]]))
        found.sum().backward()
        assert found.item() == pytest.approx(-gap, abs=0.4)
        assert logit.grad is not None
        assert scores.grad is not None
        assert logit.grad.isfinite().all()
        assert scores.grad.isfinite().all()


def test_however_far_a_copy_lies_below_the_best_one_the_gradient_is_finite() -> None:
    for gap in torch.arange(80.0, 110.0, 0.25).tolist():
        generation = torch.tensor([[[0.0, -math.inf, 0.0]]], requires_grad=True)
        scores = torch.tensor([[[0.0, -gap]]], requires_grad=True)
        normalised(generation, scores, torch.tensor([[0, 1]]))[..., :2].sum().backward()
        assert generation.grad is not None
        assert scores.grad is not None
        assert generation.grad.isfinite().all()
        assert scores.grad.isfinite().all()


def test_gradients_are_finite_and_equal_to_those_of_the_whole_distribution() -> None:
    generation, scores, ids = (
        tensor.requires_grad_() if tensor.is_floating_point() else tensor for tensor in example(5)
    )
    match = (ids == SYMBOLS - 1).float().unsqueeze(1).expand(-1, POSITIONS, -1)
    short = target_log_prob(generation[..., -1], generation.logsumexp(dim=-1), scores, match).sum()
    whole = normalised(generation, scores, ids)[..., -1].sum()
    for found, expected in zip(
        torch.autograd.grad(short, (generation, scores)), torch.autograd.grad(whole, (generation, scores)), strict=True
    ):
        assert bool(found.isfinite().all())
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_what_is_ruled_out_is_exactly_minus_infinity() -> None:
    scores = torch.tensor([1.0, 2.0])
    assert rule_out(scores, torch.tensor([True, False])).tolist() == [1.0, -math.inf]


def test_merging_in_place_gives_the_same_and_uses_the_memory_it_was_given() -> None:
    torch.manual_seed(3)
    generation, scores, ids = torch.randn(2, 3, 7), torch.randn(2, 3, 5), torch.randint(0, 7, (2, 5))
    scores[0, 1, 2] = -torch.inf
    generation[1, :, 4] = -torch.inf
    expected = normalised(generation.clone(), scores, ids)
    merged = merge_copies_in_place(generation, scores, ids)
    torch.testing.assert_close(merged, expected)
    assert merged.data_ptr() == generation.data_ptr()
