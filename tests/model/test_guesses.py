"""A generator that is told which actions are guesses: scoring minds that, a search does not, only guesses teach it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.model.tiny import MODELS, batch_of, config_for, moment, tiny_config
from tests.objective.watched import terms_of, watched_vrbot
from vrbot.baselines.catalogue import build_model
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.obedience import under_action

MARKED = ("vrbot", "dual-flow")


def built(name: str, corpus: Corpus, doubt: float = 0.0) -> Any:
    """The model of this name in use, its doubt as large as said."""
    torch.manual_seed(1)
    model: Any = build_model(name, tiny_config(), corpus).eval()
    with torch.no_grad():
        model.generator.doubt += doubt * torch.randn_like(model.generator.doubt)
    return model


def scored(model: Any, batch: SessionBatch, guessed: Tensor | None) -> Tensor:
    """Log probabilities of the recorded replies where so many of the actions are guesses."""
    perception = model.perceive(batch.inputs, batch.layout)
    seen = replace(perception, conditions=replace(perception.conditions, guessed=guessed))
    found: Tensor = model.reply_log_prob(seen, batch.targets.response, batch.targets.response_lengths)
    return found


@pytest.mark.parametrize("name", MARKED)
def test_a_live_action_is_scored_as_a_guess_and_one_that_is_told_is_not(corpus: Corpus, name: str) -> None:
    model, batch = built(name, corpus, doubt=1.0), batch_of(corpus)
    rows, answered = len(batch.turn), batch.targets.response_lengths > 0
    everyone = scored(model, batch, torch.ones(rows, dtype=torch.bool))
    nobody = scored(model, batch, None)
    perception = model.perceive(batch.inputs, batch.layout)
    live = model.reply_log_prob(perception, batch.targets.response, batch.targets.response_lengths)
    torch.testing.assert_close(live, everyone)
    assert bool((everyone != nobody)[answered].all())
    first = torch.arange(rows) == 0
    torch.testing.assert_close(scored(model, batch, first), torch.where(first, everyone, nobody))
    torch.testing.assert_close(scored(model, batch, ~first), torch.where(first, nobody, everyone))


def test_the_own_action_told_to_vrbot_is_no_guess_any_more(corpus: Corpus) -> None:
    model, batch = built("vrbot", corpus, doubt=1.0), batch_of(corpus)
    perception = model.perceive(batch.inputs, batch.layout)
    told = under_action(model, perception, perception.conditions.action)
    found = model.reply_log_prob(told, batch.targets.response, batch.targets.response_lengths)
    torch.testing.assert_close(found, scored(model, batch, None))


@pytest.mark.parametrize("name", MARKED)
def test_a_search_takes_guesses_for_certain(corpus: Corpus, name: str) -> None:
    sure, doubting, batch = built(name, corpus), built(name, corpus, doubt=1.0), batch_of(corpus)
    rows = torch.arange(len(batch.turn))
    begun = []
    for model in (sure, doubting):
        step, state = model.begin_reply(model.perceive(batch.inputs, batch.layout), rows)
        begun.append(step(torch.full_like(rows, model.generator.bos), state)[0])
    assert torch.equal(*begun)


@pytest.mark.parametrize("name", MARKED)
def test_without_a_doubt_a_guess_counts_like_any_action(corpus: Corpus, name: str) -> None:
    model, batch = built(name, corpus), batch_of(corpus)
    guessed = torch.ones(len(batch.turn), dtype=torch.bool)
    assert torch.equal(scored(model, batch, guessed), scored(model, batch, None))


def test_only_the_bound_that_guesses_actions_teaches_the_doubt(corpus: Corpus) -> None:
    model, batch = watched_vrbot(tiny_config(), corpus), batch_of(corpus)
    doubt = model.generator.doubt
    assert doubt is not None
    for term in terms_of(model, batch, moment()):
        found = terms_of(model, batch, moment())[term]
        (grad,) = torch.autograd.grad(found.sum(), doubt, allow_unused=True)
        assert (grad is not None and bool(grad.any())) == (term == "reconstruction_state"), term


def test_who_guesses_no_action_in_training_has_no_doubt(corpus: Corpus) -> None:
    marked = set()
    for name in MODELS:
        model: Any = build_model(name, config_for(name, tiny_config()), corpus)
        generator = getattr(model, "generator", None)
        if getattr(generator, "doubt", None) is not None:
            marked.add(name)
    guessing = {name for name in MODELS if name.startswith("vrbot")} - {"vrbot-no-action", "vrbot-joint"}
    assert marked == guessing | {"dual-flow"}
    unmarked = tiny_config(objective__marks_guesses=False, flows__marks_guesses=False)
    for name in MARKED:
        without: Any = build_model(name, unmarked, corpus)
        assert without.generator.doubt is None
