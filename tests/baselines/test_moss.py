"""Laws of MOSS: a decoder is taught by the labels of a turn and not where there are none, yet always feeds on."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.model.tiny import batch_of, moment, tiny_config, tiny_model, with_targets, without_labels
from vrbot.baselines.moss import Moss
from vrbot.baselines.span_chain import Told, ToldAction, label_terms, spans_before
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.nets.encoders import Encoded
from vrbot.objective.labels import KnownLatents, known_latents
from vrbot.training.optimiser import rate_factors

KINDS = ("state", "category", "keywords")


def moss(corpus: Corpus, **changes: Any) -> Moss:
    model = tiny_model("moss", tiny_config(**changes), corpus)
    assert isinstance(model, Moss)
    return model


def heads(model: Moss) -> dict[str, torch.nn.Module]:
    """The part of each decoder that nothing but its own label can teach: what turns hidden states into choices."""
    return {
        "state": model.state_decoder.tracker.project,
        "category": model.action.classifier,
        "keywords": model.action.decoder.tracker.project,
    }


def gradient(part: torch.nn.Module) -> Tensor:
    found = [torch.zeros_like(p) if p.grad is None else p.grad for p in part.parameters()]
    return torch.cat([each.flatten() for each in found])


def known_in(model: Moss, batch: SessionBatch) -> KnownLatents:
    return known_latents(batch.targets, model.state_length, model.action_length, model.preference, 4)


@pytest.mark.parametrize("missing", KINDS)
def test_a_decoder_without_labels_has_no_term_and_no_gradient_and_the_others_have(corpus: Corpus, missing: str) -> None:
    model, batch = moss(corpus), without_labels(batch_of(corpus), kinds=[missing])
    loss = model.loss(batch, moment())
    loss.total.backward()
    assert {kind for kind in KINDS if float(loss.terms[kind]) == 0.0} == {missing}
    assert {kind for kind, part in heads(model).items() if not gradient(part).any()} == {missing}


def test_labels_are_masked_turn_by_turn_and_kind_by_kind(corpus: Corpus) -> None:
    model, batch = moss(corpus), batch_of(corpus)
    odd, late = batch.turn % 2 == 1, batch.turn > 1
    batch = without_labels(without_labels(batch, odd, ["state"]), late, ["keywords", "category"])
    known = known_in(model, batch)
    with torch.no_grad():
        chained = model.chain(model.hear(batch.inputs, batch.layout), batch.layout, known)
    state, keywords, category = (
        tensor.clone().requires_grad_()
        for tensor in (chained.state_log_probs, chained.action.keywords.log_probs, chained.action.category)
    )
    terms = label_terms(state, ToldAction(category, Told(keywords, chained.action.keywords.hidden)), known)
    torch.stack(list(terms.values())).sum().backward()
    for kind, tensor, absent in (("state", state, odd), ("keywords", keywords, late), ("category", category, late)):
        assert tensor.grad is not None
        taught = tensor.grad.flatten(1).any(dim=1)
        assert torch.equal(taught, ~absent), kind
        assert torch.equal(terms[kind] != 0, ~absent), kind


def test_a_decoder_without_labels_feeds_later_ones_and_learns_from_what_they_cost(corpus: Corpus) -> None:
    model, batch = moss(corpus), without_labels(batch_of(corpus))
    loss = model.loss(batch, moment())
    loss.total.backward()
    assert float(loss.total.detach()) == pytest.approx(-float(loss.terms["reconstruction"]))
    for decoder in (model.state_decoder, model.action.decoder):
        assert gradient(decoder.tracker.writer).any()
        assert gradient(decoder.combine).any()


@torch.no_grad()
def test_known_spans_are_fed_and_unknown_ones_are_the_decoders_own(corpus: Corpus) -> None:
    model, batch = moss(corpus), batch_of(corpus)
    heard, known = model.hear(batch.inputs, batch.layout), known_in(model, batch)
    free, fed = model.chain(heard, batch.layout), model.chain(heard, batch.layout, known)
    assert torch.equal(fed.state.weights, known.state.weights)
    assert torch.equal(fed.conditions.action.keywords.weights, known.keywords.weights)
    own = model.perceive(batch.inputs, batch.layout)
    assert own.state is not None
    assert torch.equal(torch.where(free.state.mask, free.state.ids, -1), own.state)
    unlikely = with_targets(batch, state=torch.full_like(batch.targets.state[:, :1], 7))
    half = known_in(model, without_labels(unlikely, batch.turn >= 1))
    mixed = model.chain(heard, batch.layout, half).state
    assert (mixed.ids[batch.turn == 0] == torch.tensor([7, 10, 10, 10])).all()
    assert not (free.state.ids[batch.turn == 0] == torch.tensor([7, 10, 10, 10])).all(dim=1).any()
    told = model.state_decoder.along(model._state_sources(heard, spans_before(mixed, batch.layout)), mixed)
    own_later = told.log_probs.argmax(dim=-1)[batch.turn >= 1]
    assert torch.equal(own_later, mixed.ids[batch.turn >= 1])  # the most probable after what was fed


@pytest.mark.parametrize("memory", ["the encoder", "the state decoder"])
@torch.no_grad()
def test_the_action_decoder_attends_to_the_encoder_and_to_the_state_decoders_hidden_states(
    corpus: Corpus, memory: str
) -> None:
    model, batch = moss(corpus), batch_of(corpus)
    heard, known = model.hear(batch.inputs, batch.layout), known_in(model, batch)
    told = model.state_decoder.along(model._state_sources(heard, spans_before(known.state, batch.layout)), known.state)

    def keywords(context: Encoded, hidden: Encoded) -> Tensor:
        sources = model._action_sources(dataclasses.replace(heard, context=context), known.state, hidden)
        return model.action.along(sources, known.action).keywords.hidden.summary

    plain = keywords(heard.context, told.hidden)
    if memory == "the encoder":
        other = keywords(dataclasses.replace(heard.context, tokens=-heard.context.tokens), told.hidden)
    else:
        other = keywords(heard.context, dataclasses.replace(told.hidden, tokens=-told.hidden.tokens))
    changed = ~torch.isclose(plain, other).all(dim=1)
    has_state = known.state.mask.any(dim=1)
    assert torch.equal(changed, torch.ones_like(changed) if memory == "the encoder" else has_state)


@torch.no_grad()
def test_the_reply_is_written_from_the_hidden_states_of_both_decoders(corpus: Corpus) -> None:
    model, batch = moss(corpus), batch_of(corpus)
    chained = model.chain(model.hear(batch.inputs, batch.layout), batch.layout, known_in(model, batch))
    given, targets = chained.conditions, batch.targets
    plain = model.log_prob(given, targets.response, targets.response_lengths)
    answered = targets.response_lengths > 0
    for part in ("state_read", "keywords_read"):
        read: Encoded = getattr(given, part)
        changes: dict[str, Any] = {part: dataclasses.replace(read, tokens=-read.tokens)}
        turned = dataclasses.replace(given, **changes)
        other = model.log_prob(turned, targets.response, targets.response_lengths)
        assert torch.equal(~torch.isclose(plain, other), read.mask.any(dim=1) & answered)


@pytest.mark.parametrize("name", ["moss", "damd"])
def test_labels_count_as_often_as_the_settings_say_and_the_reply_once(corpus: Corpus, name: str) -> None:
    batch = batch_of(corpus)
    config = tiny_config(chains__state_weight=5.0, chains__action_weight=0.5, chains__action_rate_factor=0.3)
    model = tiny_model(name, config, corpus)
    assert isinstance(model, torch.nn.Module)
    found = model.loss(batch, moment())
    weights = {"reconstruction": 1.0, "state": 5.0, "category": 0.5, "keywords": 0.5}
    assert set(found.terms) == set(weights)
    torch.testing.assert_close(found.total, -sum(weights[name] * term for name, term in found.terms.items()))
    slow = {name for name, factor in rate_factors(model).items() if factor == pytest.approx(0.3)}
    assert slow == {name for name, _ in model.named_parameters() if name.startswith("action.")}
