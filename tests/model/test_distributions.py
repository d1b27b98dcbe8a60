"""Every distribution of the model sums to one, and has mass only where the paper lets it.

Letters: N rows (turns), L span positions, E entities.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.model.tiny import (
    FORMS,
    assert_normalised,
    batch_of,
    entity_id,
    keyword_log_probs,
    moment,
    tiny_config,
    tiny_vrbot,
    without_labels,
)
from vrbot.config import Config
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.keyword_scores import IMPOSSIBLE, SetScores
from vrbot.model.policy_network import WrittenAction
from vrbot.model.spans import Choose, Span, WrittenSpan, span_of
from vrbot.model.vrbot import VRBot
from vrbot.probability.category import relaxed_sample

SPAN_FORMS = ("span", "free", "paper")
VARIANTS = ("vrbot", "vrbot-no-state", "vrbot-no-action", "vrbot-no-graph", "vrbot-no-context")


def drawing(seed: int, *, hard: bool) -> Choose:
    generator = torch.Generator().manual_seed(seed)
    return lambda log_probs: relaxed_sample(log_probs, 1.0, generator, hard=hard)


def written_states(model: VRBot, batch: SessionBatch, choose: Choose) -> dict[str, WrittenSpan]:
    """The state of every turn as if it were the first, by both trackers."""
    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
    previous = model.first_state(len(batch.turn), torch.device("cpu"))
    read, mentions = model.recall(previous, heard.mentions, heard.table)
    evidence = (heard.context.summary, read.summary)
    trackers = {
        "prior": (model.prior_tracker, evidence),
        "inference": (model.inference_tracker, (*evidence, response.encoded.summary)),
    }
    return {
        name: tracker.write(seen, model.state_length, mentions, heard.table, choose)  # type: ignore[operator]
        for name, (tracker, seen) in trackers.items()
    }


def written_actions(model: VRBot, batch: SessionBatch, state: Span, choose: Choose) -> dict[str, WrittenAction]:
    """The action of every turn in this state, by both policies."""
    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
    prior, inference = model.policy_evidence(heard, state), model.policy_evidence(heard, state, response)
    return {
        "prior": model.prior_policy.write(prior, model.action_length, choose, choose),  # type: ignore[operator]
        "inference": model.inference_policy.write(inference, model.action_length, choose, choose),  # type: ignore[operator]
    }


def possible(log_probs: Tensor) -> Tensor:
    """Where a distribution has any mass."""
    return log_probs > -math.inf


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", VARIANTS)
def test_trackers_policies_and_categories_sum_to_one(corpus: Corpus, name: str, form: str) -> None:
    model, batch = tiny_vrbot(tiny_config(form), corpus, name=name), batch_of(corpus)
    with torch.no_grad():
        states = written_states(model, batch, drawing(0, hard=form != "paper"))
        actions = written_actions(model, batch, states["prior"].span, drawing(1, hard=form != "paper"))
    for log_probs in (
        *(state.log_probs for state in states.values()),
        *(keyword_log_probs(action.scores.keywords) for action in actions.values()),
        *(action.scores.category for action in actions.values()),
    ):
        assert_normalised(log_probs)


@pytest.mark.parametrize("form", SPAN_FORMS)
@pytest.mark.parametrize("name", ["vrbot", "vrbot-no-context"])
def test_a_span_never_repeats_an_entity_and_after_none_there_is_only_none(corpus: Corpus, name: str, form: str) -> None:
    model, batch = tiny_vrbot(tiny_config(form), corpus, name=name), batch_of(corpus)
    with torch.no_grad():
        states = written_states(model, batch, drawing(0, hard=True))
        actions = written_actions(model, batch, states["prior"].span, drawing(1, hard=True))
    pairs = [(state.span, state.log_probs) for state in states.values()]
    pairs += [(action.action.keywords, keyword_log_probs(action.scores.keywords)) for action in actions.values()]
    for span, log_probs in pairs:
        none = span.weights.shape[-1] - 1
        for ids, mass in zip(span.ids.tolist(), possible(log_probs), strict=True):
            named = [entity for entity in ids if entity != none]
            assert len(named) == len(set(named))
            assert ids == named + [none] * (len(ids) - len(named))
            for position in range(1, len(ids)):
                assert not mass[position, [entity for entity in ids[:position] if entity != none]].any()
                if none in ids[:position]:
                    assert mass[position].nonzero().flatten().tolist() == [none]


@pytest.mark.parametrize("name", ["prior", "inference"])
def test_a_tracker_that_may_not_generate_writes_what_was_mentioned_or_stood_in_the_state(
    corpus: Corpus, name: str
) -> None:
    config = tiny_config(tracker__generation_bias=-1e4)
    model, batch = tiny_vrbot(config, corpus), batch_of(corpus)
    held = entity_id(corpus, "腹泻")
    previous = span_of(torch.full((len(batch.turn), 1), held), model.state_length, len(corpus.inventory.names))
    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
    read, mentions = model.recall(previous, heard.mentions, heard.table)
    evidence = (heard.context.summary, read.summary) + ((response.encoded.summary,) if name == "inference" else ())
    written = getattr(model, f"{name}_tracker").write(
        evidence, model.state_length, mentions, heard.table, drawing(0, hard=True)
    )
    for row in range(len(batch.turn)):
        sources = {held, *batch.inputs.mention_entities[row].tolist()} - {-1}
        elsewhere = [entity for entity in range(len(corpus.inventory.names)) if entity not in sources]
        assert float(written.log_probs[row].detach().exp()[:, elsewhere].sum()) < 1e-6
        assert possible(written.log_probs[row, 0])[list(sources)].all()


@pytest.mark.parametrize("form", ["small", "free"])
def test_the_inference_policy_copies_only_what_the_response_names(corpus: Corpus, form: str) -> None:
    model, batch = tiny_vrbot(tiny_config(form), corpus), batch_of(corpus)
    for name, parameter in model.inference_policy.named_parameters():
        if name == "detectors.0.bias" and form == "free":  # nothing may be generated
            parameter.data.fill_(-1e4)
    state = model.first_state(len(batch.turn), torch.device("cpu"))
    action = written_actions(model, batch, state, drawing(0, hard=True))["inference"]
    for row, named in enumerate(batch.targets.response_mentions.tolist()):
        elsewhere = [entity for entity in range(len(corpus.inventory.names)) if entity not in named]
        assert float(keyword_log_probs(action.scores.keywords)[row].detach().exp()[:, elsewhere].sum()) < 1e-6


def test_an_inference_policy_that_copies_names_everything_there_is_room_for(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config(), corpus), batch_of(corpus)
    state = model.first_state(len(batch.turn), torch.device("cpu"))
    action = written_actions(model, batch, state, drawing(0, hard=True))["inference"].action
    for ids, kept, named in zip(
        action.keywords.ids, action.keywords.mask, batch.targets.response_mentions.tolist(), strict=True
    ):
        assert sorted(ids[kept].tolist()) == sorted(entity for entity in named if entity >= 0)


@pytest.mark.parametrize("form", FORMS)
def test_without_the_context_detector_keywords_come_from_the_subgraph_only(corpus: Corpus, form: str) -> None:
    model, batch = tiny_vrbot(tiny_config(form), corpus, name="vrbot-no-context"), batch_of(corpus)
    names = ("咳嗽", "腹泻", "胸片")
    seeds = torch.tensor([entity_id(corpus, names[row % 3]) for row in range(len(batch.turn))]).unsqueeze(1)
    state = span_of(seeds, model.state_length, len(corpus.inventory.names))
    heard = model.hear(batch.inputs, batch.layout)
    evidence = model.policy_evidence(heard, state)
    assert evidence.subgraphs is not None
    written = model.prior_policy.write(evidence, model.action_length, drawing(0, hard=True), drawing(1, hard=True))  # type: ignore[operator]
    for row, subgraph in enumerate(evidence.subgraphs.subgraphs):
        nodes = set(subgraph.nodes.tolist())
        assert int(seeds[row]) in nodes
        if isinstance(written.scores.keywords, SetScores):
            assert set((written.scores.keywords.logits[row] != IMPOSSIBLE).nonzero().flatten().tolist()) == nodes
            continue
        mass = possible(written.scores.keywords.log_probs[row])
        assert set(mass[0].nonzero().flatten().tolist()) == nodes | {len(corpus.inventory.names)}
        assert set(mass.any(dim=0).nonzero().flatten().tolist()) <= nodes | {len(corpus.inventory.names)}


@pytest.mark.parametrize("form", ["small", "paper"])
@pytest.mark.parametrize("name", VARIANTS)
def test_an_empty_subgraph_is_no_obstacle(corpus: Corpus, name: str, form: str) -> None:
    model, batch = tiny_vrbot(tiny_config(form), corpus, name=name), batch_of(corpus)
    nothing = model.first_state(len(batch.turn), torch.device("cpu"))
    action = written_actions(model, batch, nothing, drawing(0, hard=True))["prior"]
    assert_normalised(keyword_log_probs(action.scores.keywords))
    if name == "vrbot-no-context":
        assert not action.action.keywords.mask.any()
    if action.scores.category.requires_grad:
        (action.scores.category.sum() + keyword_log_probs(action.scores.keywords)[..., -1].sum()).backward()
    for parameter in model.parameters():
        assert parameter.grad is None or bool(parameter.grad.isfinite().all())


@pytest.mark.parametrize("name", VARIANTS)
def test_a_session_that_names_nothing_at_all_has_a_finite_loss(corpus: Corpus, name: str) -> None:
    config: Config = tiny_config()
    model = tiny_vrbot(config, corpus, name=name)
    batch = without_labels(batch_of(corpus, [1]))
    silent = torch.full_like(batch.inputs.mention_entities, -1)
    inputs = type(batch.inputs)(**{**vars(batch.inputs), "mention_entities": silent, "mention_positions": silent})
    loss = model.loss(
        SessionBatch(inputs, batch.targets, batch.session, batch.turn, batch.turn_offsets, batch.session_ids), moment()
    )
    loss.total.backward()
    assert bool(loss.total.isfinite())
    assert all(parameter.grad is None or bool(parameter.grad.isfinite().all()) for parameter in model.parameters())
