"""Laws of DAMD: what it conditions on, and that it learns from labelled turns and from no others."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract.test_leaks import scrambled_inputs
from tests.model.tiny import batch_of, moment, rows_of, tiny_config, tiny_model, with_targets, without_labels
from vrbot.baselines.damd import Before, Damd, ToldTurns, UtteranceEncoders
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import SEP
from vrbot.model.policy_network import Action
from vrbot.model.spans import Span, span_of
from vrbot.objective.labels import known_latents


def damd(corpus: Corpus, **changes: Any) -> Damd:
    model = tiny_model("damd", tiny_config(**changes), corpus)
    assert isinstance(model, Damd)
    return model


def gradients(model: Damd, batch: SessionBatch) -> Tensor:
    model.zero_grad()
    model.loss(batch, moment()).total.backward()
    found = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return torch.cat([gradient.flatten() for gradient in found])


def told_after(model: Damd, batch: SessionBatch, state: list[int], keywords: list[int]) -> ToldTurns:
    """The labels of every turn as the decoders tell them when the turn before had this state and these keywords."""
    known = known_latents(batch.targets, model.state_length, model.action_length, model.preference, 4)
    heard, rows, num_entities = model.hear(batch.inputs), len(batch.turn), model.table.num_entities
    before = model.read_before(
        span_of(torch.tensor([state] * rows).view(rows, -1), model.state_length, num_entities),
        span_of(torch.tensor([keywords] * rows).view(rows, -1), model.action_length, num_entities),
        heard.table,
    )
    return model.tell(heard, before, known.state, known.action)


def outputs(model: Damd, batch: SessionBatch, told: ToldTurns) -> dict[str, Tensor]:
    """Per turn [N, .]: what each of the three decoders says."""
    targets = batch.targets
    reply = model.log_prob(told.conditions, targets.response, targets.response_lengths)
    return {
        "state": told.state.log_probs[:, 0].exp(),
        "category": told.action.category,
        "keywords": told.action.keywords.log_probs[:, 0],
        "reply": reply[targets.response_lengths > 0].unsqueeze(1),
    }


@pytest.mark.parametrize("changed", ["state", "keywords"])
@torch.no_grad()
def test_every_decoder_is_conditioned_on_the_state_and_the_action_of_the_turn_before(
    corpus: Corpus, changed: str
) -> None:
    model, batch = damd(corpus), batch_of(corpus)
    plain = outputs(model, batch, told_after(model, batch, [3], [6, 8]))
    again = outputs(model, batch, told_after(model, batch, [3], [6, 8]))
    other = told_after(model, batch, [9], [6, 8]) if changed == "state" else told_after(model, batch, [3], [7, 5])
    for name, value in outputs(model, batch, other).items():
        assert torch.equal(plain[name], again[name])
        assert bool((~torch.isclose(plain[name], value, atol=1e-6)).any(dim=1).all()), name


@torch.no_grad()
def test_in_use_the_action_of_the_turn_before_is_the_models_own(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = damd(corpus), batch_of(corpus, [0])
    write, forced = model.action.write, span_of(torch.tensor([[6, 8]]), model.action_length, model.table.num_entities)
    plain, turn = model.perceive(batch.inputs, batch.layout), 0

    def other_first_action(*arguments: Any) -> Action:
        nonlocal turn
        turn += 1
        action = write(*arguments)
        return Action(action.category, forced) if turn == 1 else action

    read_before, previous = model.read_before, []

    def watched(state: Span, keywords: Span, table: Tensor) -> Before:
        previous.append(keywords.ids)
        return read_before(state, keywords, table)

    monkeypatch.setattr(model, "read_before", watched)
    monkeypatch.setattr(model.action, "write", other_first_action)
    changed = model.perceive(batch.inputs, batch.layout)
    assert changed.keywords is not None
    assert changed.keywords[0].tolist() == [6, 8, -1]
    assert [ids.tolist() for ids in previous[:2]] == [[[10, 10, 10]], [[6, 8, 10]]]
    own = torch.where(changed.keywords < 0, 10, changed.keywords)
    assert torch.equal(torch.cat(previous[2:4]), own[1:3])
    assert plain.category is not None
    assert changed.category is not None
    assert torch.equal(plain.category[0], changed.category[0])
    assert not torch.isclose(plain.category[1], changed.category[1]).all()


@pytest.mark.parametrize("kinds", [("state",), ("keywords",), ("state", "keywords", "category")])
def test_turns_without_state_or_keywords_contribute_exactly_nothing(corpus: Corpus, kinds: tuple[str, ...]) -> None:
    model, batch = damd(corpus), without_labels(batch_of(corpus), kinds=kinds)
    assert float(model.loss(batch, moment()).total.detach()) == 0.0
    assert not gradients(model, batch).any()
    assert model.loss(batch, moment()).num_turns == len(batch.turn) - 1  # they are turns all the same


def test_what_is_said_in_unlabelled_sessions_changes_neither_loss_nor_gradient(corpus: Corpus) -> None:
    model, whole = damd(corpus), batch_of(corpus)
    own = rows_of(whole, "long") | rows_of(whole, "stomach")
    batch = without_labels(whole, own)
    inputs = scrambled_inputs(batch.inputs, own, len(corpus.vocabulary), len(corpus.inventory.names))
    swapped = torch.where(own.unsqueeze(1) & (batch.targets.response > 4), 5, batch.targets.response)
    other = with_targets(dataclasses.replace(batch, inputs=inputs), response=swapped)
    mine, theirs = model.loss(batch, moment()), model.loss(other, moment())
    assert torch.equal(mine.per_session, theirs.per_session)
    named = dict(zip(batch.session_ids, mine.per_session.tolist(), strict=True))
    assert (named["long"], named["stomach"]) == (0.0, 0.0)
    assert named["cold"] > 0
    found = gradients(model, batch)
    assert bool(found.any())
    torch.testing.assert_close(found, gradients(model, other))
    assert not torch.allclose(found, gradients(model, whole))


def test_a_category_that_is_not_known_leaves_the_rest_of_its_turn_to_be_learnt(corpus: Corpus) -> None:
    terms = damd(corpus).loss(without_labels(batch_of(corpus), kinds=["category"]), moment()).terms
    assert float(terms["category"]) == 0.0
    assert all(float(terms[name]) < 0 for name in ("reconstruction", "state", "keywords"))


@torch.no_grad()
def test_each_utterance_is_read_by_its_own_encoder_where_it_stands(corpus: Corpus) -> None:
    torch.manual_seed(0)
    encoders = UtteranceEncoders(6, 8)
    words = torch.tensor([[9, 8, SEP, 7, 6, 5, 0], [SEP, 9, 8, 7, 0, 0, 0], [9, 8, 7, 6, 5, 9, 8]])
    lengths = torch.tensor([6, 4, 7])
    embedded = torch.randn(3, 7, 6)
    read = encoders(embedded, words, lengths)
    assert read.mask.int().tolist() == [[1, 1, 0, 1, 1, 1, 0], [0, 1, 1, 1, 0, 0, 0], [1] * 7]
    said = encoders.previous_response(embedded[:1, :2], torch.tensor([2])).tokens
    torch.testing.assert_close(read.tokens[:1, :2], said)
    for row, start, stop in ((0, 3, 6), (1, 1, 4), (2, 0, 7)):  # the last has lost its separator
        patient = encoders.patient(embedded[row : row + 1, start:stop], torch.tensor([stop - start])).tokens
        torch.testing.assert_close(read.tokens[row : row + 1, start:stop], patient)
    assert not read.tokens[~read.mask].any()
