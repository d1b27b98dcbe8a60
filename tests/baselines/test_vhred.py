"""VHRED: the divergence is the closed form, its weight warms up, and replies use the prior's mean."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, Normal, kl_divergence

from tests.model.tiny import batch_of, moment, tiny_config, tiny_model
from vrbot.baselines.vhred import Vhred, kl_schedule
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import UNK
from vrbot.nets.bag_of_words import BagOfWords
from vrbot.nets.encoders import Encoded
from vrbot.probability.gaussian import DiagonalGaussian


def tiny_vhred(corpus: Corpus, **changes: Any) -> Vhred:
    model = tiny_model("vhred", tiny_config(**{"vhred__latent_size": 6, **changes}), corpus)
    assert isinstance(model, Vhred)
    return model


def normal(gaussian: DiagonalGaussian) -> Independent[Normal]:
    return Independent(Normal(gaussian.mean, (0.5 * gaussian.log_variance).exp()), 1)


def networks(model: Vhred, batch: SessionBatch) -> tuple[DiagonalGaussian, DiagonalGaussian]:
    """Prior and posterior of every turn."""
    context: Encoded = model._read(batch.inputs, batch.layout)
    return model.prior(context.summary), model.infer(context, batch.targets)


@torch.no_grad()
def test_the_divergence_of_a_batch_is_that_of_torchs_normal_distributions(corpus: Corpus) -> None:
    model, batch = tiny_vhred(corpus), batch_of(corpus)
    prior, posterior = networks(model, batch)
    expected = kl_divergence(normal(posterior), normal(prior))[batch.targets.response_lengths > 0].sum()
    found = model.loss(batch, moment()).terms["kl"]
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-4)
    assert float(found) > 0.1


@torch.no_grad()
def test_a_posterior_that_is_the_prior_costs_nothing(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = tiny_vhred(corpus), batch_of(corpus)
    monkeypatch.setattr(model, "infer", lambda context, targets: model.prior(context.summary))
    assert float(model.loss(batch, moment(step=10_000)).terms["kl"]) == 0.0


@torch.no_grad()
def test_the_posterior_hears_the_response_and_the_prior_does_not(corpus: Corpus) -> None:
    model, batch = tiny_vhred(corpus), batch_of(corpus)
    prior, posterior = networks(model, batch)
    batch.targets.response[0, 0] = 9
    same_prior, other_posterior = networks(model, batch)
    assert torch.equal(same_prior.mean, prior.mean)
    moved = (other_posterior.mean - posterior.mean).abs().amax(dim=1) > 1e-6
    assert moved.tolist() == [True] + [False] * (len(batch.turn) - 1)


@torch.no_grad()
def test_the_loss_is_the_bound_with_the_divergence_weighted_by_the_step(corpus: Corpus) -> None:
    model, batch = tiny_vhred(corpus, vhred__kl_warmup_steps=8), batch_of(corpus)
    for step, weight in ((0, 0.0), (2, 0.25), (4, 0.5), (8, 1.0), (100, 1.0)):
        loss = model.loss(batch, moment(step=step))
        expected = weight * loss.terms["kl"] - loss.terms["reconstruction"]
        torch.testing.assert_close(loss.total, expected, atol=1e-3, rtol=1e-5)
    assert kl_schedule(0).value(0) == 1.0


@torch.no_grad()
def test_replies_are_written_from_the_priors_mean(corpus: Corpus) -> None:
    model, batch = tiny_vhred(corpus), batch_of(corpus)
    prior, _ = networks(model, batch)
    condition: Tensor = model.perceive(batch.inputs, batch.layout).conditions.condition
    assert torch.equal(condition[:, -6:], prior.mean)


@torch.no_grad()
def test_all_chance_comes_from_the_moment(corpus: Corpus) -> None:
    model, batch = tiny_vhred(corpus, vhred__word_drop=0.5).train(), batch_of(corpus)
    totals = []
    for own, seed in ((1, 0), (2, 0), (2, 1)):
        torch.manual_seed(own)
        totals.append(float(model.loss(batch, moment(seed)).total))
    assert totals[0] == totals[1] != totals[2]


@torch.no_grad()
def test_in_training_a_share_of_the_words_heard_is_unknown_but_never_the_first(corpus: Corpus) -> None:
    model = tiny_vhred(corpus, vhred__word_drop=0.25)
    heard, random = torch.full((200, 50), 7), torch.Generator().manual_seed(3)
    assert torch.equal(model._with_words_dropped(heard, random), heard)
    dropped = model.train()._with_words_dropped(heard, random) == UNK
    assert not dropped[:, 0].any()
    assert float(dropped[:, 1:].float().mean()) == pytest.approx(0.25, abs=0.02)


@torch.no_grad()
def test_the_bag_of_words_is_added_by_its_weight_and_does_not_exist_without_one(corpus: Corpus) -> None:
    batch = batch_of(corpus)
    assert tiny_vhred(corpus).bag_of_words is None
    model = tiny_vhred(corpus, vhred__bag_of_words_weight=0.5, vhred__kl_warmup_steps=0)
    loss = model.loss(batch, moment())
    terms = loss.terms
    expected = terms["kl"] - terms["reconstruction"] + 0.5 * terms["bag_of_words"]
    torch.testing.assert_close(loss.total, expected, atol=1e-3, rtol=1e-5)
    assert float(terms["bag_of_words"]) > 0


@torch.no_grad()
def test_a_bag_costs_its_words_beyond_the_least_possible() -> None:
    torch.manual_seed(0)
    bag = BagOfWords(torch.nn.Embedding(11, 4), 3, 5, dropout=0.0)
    vectors, response = torch.randn(3, 3), torch.tensor([[6, 7, 6, 3, 0], [9, 3, 0, 0, 0], [0, 0, 0, 0, 0]])
    found = bag(vectors, response, torch.tensor([4, 2, 0]))
    log_probs = bag.head.log_probs(torch.tanh(bag.layer(vectors)))
    spoken = -log_probs[0, [6, 7, 6, 3]].sum() + 2 * math.log(2 / 4) + 2 * math.log(1 / 4)
    torch.testing.assert_close(found[0], spoken)
    torch.testing.assert_close(found[1], -log_probs[1, [9, 3]].sum() + 2 * math.log(1 / 2))
    assert float(found[2]) == 0.0
    assert bool((found >= 0).all())


def test_both_networks_and_the_encoder_learn(corpus: Corpus) -> None:
    model = tiny_vhred(corpus)
    model.loss(batch_of(corpus), moment(step=500)).total.backward()
    for part in (model.prior, model.posterior, model.encoder, model.decoder):
        for name, parameter in part.named_parameters():
            assert parameter.grad is not None, name
            assert bool(parameter.grad.isfinite().all()), name
            assert bool((parameter.grad != 0).any()), name
