"""The settings that lean a tracker or a policy one way: biases, the order of keywords, the offset of NONE."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.model.tiny import batch_of, entity_id, tiny_config, tiny_vrbot
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.detectors import ResponseDetector
from vrbot.model.policy_network import PolicyNetwork
from vrbot.model.spans import WrittenSpan, one_hot_choice, span_of
from vrbot.model.vrbot import VRBot
from vrbot.model.world import world_of

UNBIASED: dict[str, Any] = {"tracker__generation_bias": 0.0, "tracker__ending_bias": 0.0, "tracker__order_bias": 0.0}


@torch.no_grad()
def prior_states(corpus: Corpus, held: list[str] | None = None, **changes: Any) -> tuple[WrittenSpan, SessionBatch]:
    """What the prior tracker writes in each turn when the previous state held these entities."""
    model, batch = tiny_vrbot(tiny_config(**{**UNBIASED, **changes}), corpus), batch_of(corpus)
    ids = torch.tensor([[entity_id(corpus, name) for name in held or []]], dtype=torch.long)
    previous = span_of(ids.expand(len(batch.turn), -1), model.state_length, len(corpus.inventory.names))
    heard = model.hear(batch.inputs, batch.layout)
    read, mentions = model.recall(previous, heard.mentions, heard.table)
    evidence = (heard.context.summary, read.summary)
    written: WrittenSpan = model.prior_tracker.write(
        evidence, model.state_length, mentions, heard.table, one_hot_choice
    )  # type: ignore[operator]
    return written, batch


def against_none(log_probs: Tensor, entity: int) -> Tensor:
    """How much likelier an entity is than NONE at the first position [N]."""
    return log_probs[:, 0, entity] - log_probs[:, 0, -1]


def test_the_generation_bias_shifts_what_is_not_mentioned(corpus: Corpus) -> None:
    entity = entity_id(corpus, "退热贴")
    plain, batch = prior_states(corpus)
    biased, _ = prior_states(corpus, tracker__generation_bias=-3.0)
    absent = ~(batch.inputs.mention_entities == entity).any(dim=1)
    shift = against_none(biased.log_probs, entity) - against_none(plain.log_probs, entity)
    torch.testing.assert_close(shift[absent], torch.full_like(shift[absent], -3.0), atol=1e-4, rtol=0)
    assert bool((shift[~absent] > -3.0).all())


def test_the_ending_bias_counts_only_while_something_is_left_to_copy(corpus: Corpus) -> None:
    entity = entity_id(corpus, "退热贴")
    plain, batch = prior_states(corpus)
    biased, _ = prior_states(corpus, tracker__ending_bias=-4.0)
    mentioned = (batch.inputs.mention_entities >= 0).any(dim=1)
    shift = against_none(biased.log_probs, entity) - against_none(plain.log_probs, entity)
    torch.testing.assert_close(shift, torch.where(mentioned, 4.0, 0.0), atol=1e-4, rtol=0)
    assert not mentioned.all()


def test_a_strong_order_bias_copies_the_old_state_and_then_the_mentions_as_they_stand(corpus: Corpus) -> None:
    held = ["腹泻", "胸片"]
    strong = {"tracker__generation_bias": -1e4, "tracker__ending_bias": -1e4, "tracker__order_bias": 1e3}
    written, batch = prior_states(corpus, held, **strong)
    for ids, kept, mentioned in zip(
        written.span.ids, written.span.mask, batch.inputs.mention_entities.tolist(), strict=True
    ):
        known = [*(entity_id(corpus, name) for name in held), *(entity for entity in mentioned if entity >= 0)]
        assert ids[kept].tolist() == list(dict.fromkeys(known))[:4]


@torch.no_grad()
def inferred_keywords(model: VRBot, batch: SessionBatch) -> list[list[int]]:
    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
    evidence = model.policy_evidence(heard, model.first_state(len(batch.turn), torch.device("cpu")), response)
    span = model.inference_policy.write(evidence, model.action_length, one_hot_choice, one_hot_choice).action.keywords  # type: ignore[operator]
    return [ids[kept].tolist() for ids, kept in zip(span.ids, span.mask, strict=True)]


@pytest.mark.parametrize("order", ["frequency", "learned"])
def test_the_inference_policy_names_frequent_entities_first_or_learns_an_order(corpus: Corpus, order: str) -> None:
    model, batch = tiny_vrbot(tiny_config(policy__order=order), corpus), batch_of(corpus)
    policy = model.inference_policy
    assert isinstance(policy, PolicyNetwork)
    detector = policy.detectors[-1]
    assert isinstance(detector, ResponseDetector)
    counts = world_of(corpus).entity_counts
    if order == "learned":
        assert not detector.preference.any()
        return
    with torch.no_grad():
        detector.project.weight.zero_()
    named = inferred_keywords(model, batch)
    assert [counts[row].tolist() for row in named] == [sorted(counts[row].tolist(), reverse=True) for row in named]
    assert any(len(set(counts[row].tolist())) > 1 for row in named)


def test_entities_are_counted_once_in_every_training_response_that_names_them(corpus: Corpus) -> None:
    counts = world_of(corpus).entity_counts
    texts = [turn.physician for session in corpus.sessions("train") for turn in session.turns]
    assert counts.tolist() == [sum(name in text for text in texts) for name in corpus.inventory.names]


@pytest.mark.parametrize(("offset", "number"), [(1e4, 0), (-1e4, 3)])
def test_the_offset_of_none_decides_how_readily_the_policy_names_something(
    corpus: Corpus, offset: float, number: int
) -> None:
    model, batch = tiny_vrbot(tiny_config(), corpus), batch_of(corpus)
    model.none_offset.fill_(offset)
    keywords = model.perceive(batch.inputs, batch.layout).keywords
    assert keywords is not None
    assert (keywords >= 0).sum(dim=1).tolist() == [number] * len(batch.turn)
