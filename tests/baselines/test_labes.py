"""Laws of LABES: exact draws with the gradient of probabilities, and a divergence that teaches both networks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.model.tiny import batch_of, moment, tiny_config, tiny_vrbot, without_labels
from vrbot.baselines.labes import LabesObjective, most_probable, sampler
from vrbot.config import LabesSettings
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.spans import Span
from vrbot.model.vrbot import VRBot

STOMACH = [2]
"""A session of one turn, before which nothing is known."""


def labes(corpus: Corpus, **changes: Any) -> VRBot:
    return tiny_vrbot(tiny_config(**changes), corpus, name="labes")


def log_softmax_of(rows: int, symbols: int) -> tuple[Tensor, Tensor]:
    """Random logits that want a gradient, and their log probabilities."""
    logits = torch.randn(rows, symbols, generator=torch.Generator().manual_seed(1), requires_grad=True)
    return logits, logits.log_softmax(dim=-1)


def luck(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_forward_a_draw_is_exactly_one_hot_and_backward_it_is_the_probabilities() -> None:
    logits, log_probs = log_softmax_of(64, 7)
    drawn = sampler(LabesSettings(), luck())(log_probs)
    assert torch.equal(drawn, torch.nn.functional.one_hot(drawn.argmax(dim=-1), 7).float())
    assert bool((drawn.argmax(dim=-1) != log_probs.argmax(dim=-1)).any())  # drawn, not chosen
    worth = torch.randn(64, 7, generator=luck(2))
    (drawn * worth).sum().backward()
    probabilities = log_probs.detach().exp()
    by_hand = probabilities * (worth - (probabilities * worth).sum(dim=-1, keepdim=True))  # the softmax's Jacobian
    torch.testing.assert_close(logits.grad, by_hand)


def test_symbols_are_drawn_as_often_as_they_are_probable() -> None:
    log_probs = torch.tensor([0.6, 0.3, 0.1]).log().expand(20_000, 3)
    shares = sampler(LabesSettings(), luck())(log_probs).mean(dim=0)
    torch.testing.assert_close(shares, torch.tensor([0.6, 0.3, 0.1]), atol=0.012, rtol=0)


def test_without_straight_through_a_draw_sends_nothing_back() -> None:
    _, log_probs = log_softmax_of(4, 5)
    assert not sampler(LabesSettings(straight_through=False), luck())(log_probs).requires_grad


def test_with_top_k_only_the_most_probable_are_drawn_in_their_proportions() -> None:
    log_probs = torch.tensor([0.1, 0.4, 0.3, 0.2]).log()
    kept = most_probable(log_probs, 2).exp()
    torch.testing.assert_close(kept, torch.tensor([0.0, 4 / 7, 3 / 7, 0.0]))
    shares = sampler(LabesSettings(top_k=2), luck())(log_probs.expand(20_000, 4)).mean(dim=0)
    torch.testing.assert_close(shares, kept, atol=0.012, rtol=0)
    assert most_probable(log_probs, 0) is log_probs
    assert most_probable(log_probs, 9) is log_probs


def test_top_k_leaves_an_ended_span_ended() -> None:
    ended = torch.tensor([[-torch.inf, -torch.inf, 0.0]], requires_grad=True)
    kept = most_probable(ended, 2)
    assert kept.tolist() == [[-torch.inf, -torch.inf, 0.0]]
    kept.exp().sum().backward()
    assert ended.grad is not None
    assert bool(ended.grad.isfinite().all())


def posterior_gradient(model: VRBot, batch: SessionBatch) -> Tensor:
    model.zero_grad()
    model.loss(batch, moment()).total.backward()
    parameters = list(model.inference_tracker.parameters())
    return torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in parameters])


def test_the_divergence_teaches_the_posterior_too(corpus: Corpus) -> None:
    """Without straight-through gradients nothing else of an unlabelled turn reaches it."""
    batch = without_labels(batch_of(corpus))
    taught = posterior_gradient(labes(corpus, labes__straight_through=False), batch)
    assert bool(taught.any())
    assert not posterior_gradient(labes(corpus, labes__straight_through=False, labes__kl_weight=0.0), batch).any()


def test_the_reply_teaches_the_posterior_through_its_draws(corpus: Corpus) -> None:
    batch = without_labels(batch_of(corpus))
    assert bool(posterior_gradient(labes(corpus, labes__kl_weight=0.0), batch).any())


@torch.no_grad()
def test_the_cost_of_a_first_turn_is_that_of_the_reply_and_half_the_divergence_along_the_draw(corpus: Corpus) -> None:
    model, batch = labes(corpus), without_labels(batch_of(corpus, STOMACH))
    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
    read, mentions = model.recall(model.first_state(1, torch.device("cpu")), heard.mentions, heard.table)
    evidence = (heard.context.summary, read.summary)
    drawn = model.inference_tracker.write(  # type: ignore[operator]
        (*evidence, response.encoded.summary),
        model.state_length,
        mentions,
        heard.table,
        sampler(LabesSettings(), luck()),
    )
    prior = model.prior_tracker.score_along(evidence, drawn.span, mentions, heard.table)  # type: ignore[operator]
    mass = drawn.log_probs.exp()
    divergence = float((mass * (drawn.log_probs - prior)).masked_fill(mass == 0, 0.0).sum())
    terms = model.loss(batch, moment()).terms
    assert divergence > 0
    assert float(terms["kl_state"]) == pytest.approx(0.5 * divergence, rel=1e-4)
    no_action = model.perceive(batch.inputs, batch.layout).conditions.action
    given = model.conditions(heard, drawn.span, no_action)
    targets = batch.targets
    reply = model.generator.log_prob(given, torch.zeros(1, 32), targets.response, targets.response_lengths)
    assert float(terms["reconstruction"]) == pytest.approx(float(reply), rel=1e-4)
    assert float(terms["labels"]) == 0.0


@torch.no_grad()
def test_a_turn_starts_from_the_posteriors_draw_in_training_and_from_the_priors_best_state_in_use(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = labes(corpus), without_labels(batch_of(corpus, [0]))
    recall, write = model.recall, model.inference_tracker.write
    previous: list[Tensor] = []
    drawn: list[Tensor] = []

    def watched_recall(span: Span, *rest: Any) -> Any:
        previous.append(span.weights)
        return recall(span, *rest)

    def watched_write(*arguments: Any) -> Any:
        written = write(*arguments)  # type: ignore[operator]
        drawn.append(written.span.weights)
        return written

    monkeypatch.setattr(model, "recall", watched_recall)
    monkeypatch.setattr(model.inference_tracker, "write", watched_write)
    model.loss(batch, moment())
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(previous[1:], drawn[:-1], strict=True))
    previous.clear()
    best = model.perceive(batch.inputs, batch.layout).state
    assert best is not None
    assert torch.equal(torch.cat([Span(weights).ids for weights in previous[1:4]]), torch.where(best < 0, 10, best)[:3])


@torch.no_grad()
def test_luck_comes_from_the_generator_of_the_moment_alone(corpus: Corpus) -> None:
    model, batch = labes(corpus), without_labels(batch_of(corpus))
    assert isinstance(model.objective, LabesObjective)
    first = float(model.loss(batch, moment(3)).total)
    torch.manual_seed(99)
    assert float(model.loss(batch, moment(3)).total) == first
    assert float(model.loss(batch, moment(4)).total) != first
