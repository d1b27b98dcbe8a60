"""Perplexity's log probabilities: a model with latent variables answers for all they could have been."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.model.tiny import MODELS, batch_of, tiny_config, tiny_model
from vrbot.baselines.postks import PostKS
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation import likelihood
from vrbot.evaluation.likelihood import response_log_prob
from vrbot.model.contract import Imagines, Perception

LATENT = ("vrbot", "vhred", "postks", "dual-flow", "moss", "damd")
"""Systems that could have chosen otherwise; `hred-bert` too, whose tests stand with its encoder."""


def log_probs(model: object, batch: SessionBatch, perception: Perception) -> Tensor:
    targets = batch.targets
    found: Tensor = model.reply_log_prob(perception, targets.response, targets.response_lengths)  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"vhred", "postks"}))
@torch.no_grad()
def test_without_latent_variables_to_draw_it_is_the_probability_of_the_reply(corpus: Corpus, name: str) -> None:
    model, batch = tiny_model(name, tiny_config(), corpus), batch_of(corpus)
    perception = model.perceive(batch.inputs, batch.layout)
    if hasattr(model, "imagine"):
        model.imagine = lambda inputs, layout, count, generator: iter([perception] * count)
    torch.testing.assert_close(response_log_prob(model, batch, perception), log_probs(model, batch, perception))


@pytest.mark.parametrize("form", ["small", "paper"])
@pytest.mark.parametrize("name", LATENT)
@torch.no_grad()
def test_it_is_the_mean_over_draws_and_the_same_every_time(corpus: Corpus, name: str, form: str) -> None:
    model, batch = tiny_model(name, tiny_config(form), corpus), batch_of(corpus)
    perception = model.perceive(batch.inputs, batch.layout)
    found = response_log_prob(model, batch, perception)
    assert isinstance(model, Imagines)
    draws = model.imagine(batch.inputs, batch.layout, likelihood.DRAWS, torch.Generator().manual_seed(0))
    each = torch.stack([log_probs(model, batch, seen) for seen in draws])
    assert (each.std(dim=0) > 0).any()  # the draws differ, and the reply with them
    torch.testing.assert_close(found, each.exp().mean(dim=0).log(), rtol=1e-4, atol=1e-4)
    assert torch.equal(found, response_log_prob(model, batch, perception))


@torch.no_grad()
def test_many_draws_come_to_the_sum_over_all_that_could_be_drawn(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likelihood, "DRAWS", 3000)
    model, batch = tiny_model("postks", tiny_config(), corpus), batch_of(corpus)
    assert isinstance(model, PostKS)
    consulted = model.consult(batch.inputs, batch.layout)
    prior = model.prior(consulted.context.summary, consulted)
    exact = torch.full((len(batch.turn),), -math.inf)
    for piece in range(prior.shape[1]):
        there = prior[:, piece] > -math.inf
        chosen = torch.where(there, piece, 0)
        monkeypatch.setattr(torch.Tensor, "multinomial", lambda *_, chosen=chosen, **__: chosen.unsqueeze(1))
        (seen,) = model.imagine(batch.inputs, batch.layout, 1, torch.Generator())
        exact = torch.where(there, torch.logaddexp(exact, prior[:, piece] + log_probs(model, batch, seen)), exact)
        monkeypatch.undo()
        monkeypatch.setattr(likelihood, "DRAWS", 3000)
    found = response_log_prob(model, batch, model.perceive(batch.inputs, batch.layout))
    torch.testing.assert_close(found, exact, rtol=0, atol=0.03)
    likeliest = log_probs(model, batch, model.perceive(batch.inputs, batch.layout))
    assert (likeliest - exact).abs().max() > 0.1  # which is another number
