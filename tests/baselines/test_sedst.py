"""Laws of SEDST: expectations flow, the divergence teaches the prior alone, the reply copies from distributions."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.model.tiny import assert_normalised, batch_of, moment, tiny_config, tiny_model, without_labels
from vrbot.baselines.sedst import FlowStep, Sedst, expected, shown
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.spans import Span, Written, span_of

STOMACH = [2]
"""A session of one turn, before which nothing is known."""


def sedst(corpus: Corpus, **changes: Any) -> Sedst:
    model = tiny_model("sedst", tiny_config(**changes), corpus)
    assert isinstance(model, Sedst)
    return model


def gradients(model: Sedst, part: torch.nn.Module, batch: SessionBatch) -> Tensor:
    """Of the loss, with respect to all weights of a part; zeros where none arrive."""
    model.zero_grad()
    model.loss(batch, moment()).total.backward()
    found = [torch.zeros_like(p) if p.grad is None else p.grad for p in part.parameters()]
    return torch.cat([gradient.flatten() for gradient in found])


@torch.no_grad()
def test_what_is_fed_back_is_the_expected_embedding_under_the_distribution(corpus: Corpus) -> None:
    model, batch = sedst(corpus), batch_of(corpus, STOMACH)
    networks = model.networks
    heard = networks.hear(batch.inputs, batch.layout)
    read, mentions = networks.recall(networks.first_state(1, torch.device("cpu")), heard.mentions, heard.table)
    written = model.flow(heard, batch.layout)
    probabilities = written.log_probs.exp()
    assert float(probabilities[0, 0].max()) < 0.999  # far from one-hot, or the law would say little
    tracker: Any = networks.prior_tracker
    expectations = torch.einsum("nle,ed->nld", probabilities[:, :-1], heard.table)
    fed = torch.cat((tracker.writer.start_symbol.expand(1, 1, -1), expectations), dim=1)
    begun = tracker.writer.initial(heard.context.summary, read.summary)
    states = tracker.writer.gru(fed, begun.unsqueeze(0))[0]
    found = tracker._score(states, Written.before_each(written.span), mentions, heard.table)
    torch.testing.assert_close(found.exp(), probabilities, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_later_turn_starts_from_the_distributions_of_the_one_before(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = sedst(corpus), batch_of(corpus, [0])
    heard, recall, previous = model.networks.hear(batch.inputs, batch.layout), model.networks.recall, []

    def watched(span: Span, *rest: Any) -> Any:
        previous.append(span.weights)
        return recall(span, *rest)

    monkeypatch.setattr(model.networks, "recall", watched)
    written = model.flow(heard, batch.layout)
    torch.testing.assert_close(torch.cat(previous)[1:], written.log_probs.exp()[:-1])
    assert bool((written.span.weights[0] > 0).sum() > len(written.span.weights[0]))


def test_the_divergence_teaches_the_prior_and_gives_the_posterior_no_gradient(corpus: Corpus) -> None:
    batch = without_labels(batch_of(corpus))
    model, blind = sedst(corpus), sedst(corpus, sedst__kl_weight=0.0)
    assert float(model.loss(batch, moment()).terms["kl_state"]) > 0
    networks = model.networks
    for part in (networks.inference_tracker, networks.response_encoder):
        assert not gradients(model, part, batch).any()
    with_divergence = gradients(model, networks.prior_tracker, batch)
    assert not torch.allclose(with_divergence, gradients(blind, blind.networks.prior_tracker, batch))


def test_labels_teach_both_and_the_reply_teaches_the_prior_through_its_distributions(corpus: Corpus) -> None:
    model = sedst(corpus, sedst__kl_weight=0.0)
    labelled, unlabelled = batch_of(corpus), without_labels(batch_of(corpus))
    assert gradients(model, model.networks.inference_tracker, labelled).any()
    project: Any = model.networks.prior_tracker.project
    assert gradients(model, project, unlabelled).any()


@pytest.mark.parametrize("reconstruct", [True, False])
def test_without_labels_the_posterior_learns_only_where_it_has_to_reconstruct_the_context(
    corpus: Corpus, reconstruct: bool
) -> None:
    model, batch = sedst(corpus, sedst__reconstruct_context=reconstruct), without_labels(batch_of(corpus))
    loss = model.loss(batch, moment())
    assert ("context" in loss.terms) is reconstruct
    assert bool(gradients(model, model.networks.inference_tracker, batch).any()) is reconstruct


@torch.no_grad()
def test_the_terms_of_a_first_turn_are_those_of_the_published_objective(corpus: Corpus) -> None:
    model, batch = sedst(corpus), batch_of(corpus, STOMACH)
    networks, targets = model.networks, batch.targets
    heard, said = networks.hear(batch.inputs, batch.layout), networks.hear_response(targets).encoded.summary
    read, mentions = networks.recall(networks.first_state(1, torch.device("cpu")), heard.mentions, heard.table)
    evidence = (heard.context.summary, read.summary)
    prior: Any = networks.prior_tracker
    posterior: Any = networks.inference_tracker

    def reply(state: Span) -> float:
        given = model._conditions(heard, state)
        categories = torch.zeros(1, 32)
        return float(networks.generator.log_prob(given, categories, targets.response, targets.response_lengths))

    gold = span_of(targets.state, networks.state_length, networks.table.num_entities)
    known = 0.0
    for tracker, seen in ((prior, evidence), (posterior, (*evidence, said))):
        log_probs = tracker.score_along(seen, gold, mentions, heard.table)
        known += float(log_probs.gather(-1, gold.ids.unsqueeze(-1)).sum())
    assert float(model.loss(batch, moment()).total) == pytest.approx(-known - reply(gold), rel=1e-4)

    own = prior.write(evidence, networks.state_length, mentions, heard.table, expected).span
    drawn = posterior.write((*evidence, said), networks.state_length, mentions, heard.table, expected)
    along = prior.score_along(evidence, drawn.span, mentions, heard.table)
    mass = drawn.log_probs.exp()
    divergence = float((mass * (drawn.log_probs - along)).masked_fill(mass == 0, 0.0).sum())
    total = float(model.loss(without_labels(batch), moment()).total)
    assert total == pytest.approx(-reply(own) + 0.1 * divergence, rel=1e-4)


def test_a_shown_position_is_the_distribution_of_its_name_and_an_ended_one_is_empty() -> None:
    span = Span(torch.tensor([[[0.5, 0.1, 0.4], [0.3, 0.1, 0.6], [0.0, 0.0, 1.0]]]))
    expected_weights = torch.tensor([[[5 / 6, 1 / 6, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]])
    torch.testing.assert_close(shown(span).weights, expected_weights)
    one_hot = span_of(torch.tensor([[1, 0, -1]]), 3, 2)
    assert torch.equal(shown(one_hot).weights, one_hot.weights)


@torch.no_grad()
def test_a_slot_shares_its_mass_among_the_words_of_its_names_as_its_distribution_says(corpus: Corpus) -> None:
    model, batch = sedst(corpus), batch_of(corpus, STOMACH)
    perception = model.perceive(batch.inputs, batch.layout)
    names = torch.zeros(1, 4, model.networks.table.num_entities + 1)
    names[0, :2, 3], names[0, :2, 5], names[0, 2:, -1] = 0.75, 0.25, 1.0
    conditions = dataclasses.replace(perception.conditions, state=Span(names))
    read = model.networks.state_reader(Span(names), model.networks.table())
    seen = dataclasses.replace(perception, conditions=dataclasses.replace(conditions, state_read=read))
    step, state = model.begin_reply(seen, torch.tensor([0]))
    assert isinstance(step, FlowStep)
    both = step(torch.tensor([2]), state)[0]
    assert_normalised(both)
    without = step(torch.tensor([2]), dataclasses.replace(state, names=torch.zeros_like(state.names)))[0]
    first, second, other = model.networks.generator.entity_words[[3, 5, 7]].tolist()
    lost = both[0, other] - without[0, other]  # what every word loses to the slots
    gained = [float(both[0, word].exp() - (without[0, word] + lost).exp()) for word in (first, second)]
    assert gained[0] / gained[1] == pytest.approx(3.0, rel=1e-3)
