"""What every system of the catalogue owes: probabilities that are probabilities, and replies from its inputs."""

from __future__ import annotations

import pytest
import torch

from tests.contract.replying import reply_to_batch
from tests.model.tiny import MODELS, assert_normalised, batch_of, tiny_config, tiny_model
from vrbot.baselines.catalogue import build_model
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import BOS, PAD, UNK
from vrbot.errors import UsageError

cases = pytest.mark.parametrize(("name", "form"), [(name, form) for form in ("small", "paper") for name in MODELS])


@cases
@torch.no_grad()
def test_the_probability_of_a_response_is_the_product_of_its_steps_which_all_sum_to_one(
    corpus: Corpus, name: str, form: str
) -> None:
    plain = tiny_config(form, decoding__keyword_bonus=0.0, decoding__only_keywords=False)  # rules of the search alone
    model, batch = tiny_model(name, plain, corpus), batch_of(corpus)
    perception, targets = model.perceive(batch.inputs, batch.layout), batch.targets
    step, state = model.begin_reply(perception, torch.arange(len(batch.turn)))
    tokens, total = torch.full((len(batch.turn),), BOS), torch.zeros(len(batch.turn))
    for position in range(targets.response.shape[1]):
        log_probs, state = step(tokens, state)
        assert log_probs.shape == (len(batch.turn), len(corpus.vocabulary))
        assert_normalised(log_probs)
        tokens = targets.response[:, position]
        found = log_probs.gather(1, tokens.unsqueeze(1)).squeeze(1)
        total = total + torch.where(position < targets.response_lengths, found, 0.0)
    expected = model.reply_log_prob(perception, targets.response, targets.response_lengths)
    torch.testing.assert_close(total, expected, atol=1e-3, rtol=1e-4)


@cases
def test_what_is_perceived_is_made_of_entities_each_once_and_of_categories_that_sum_to_one(
    corpus: Corpus, name: str, form: str
) -> None:
    model, batch = tiny_model(name, tiny_config(form), corpus), batch_of(corpus)
    perception = model.perceive(batch.inputs, batch.layout)
    for span in (perception.state, perception.keywords):
        for entities in [] if span is None else span.tolist():
            named = [entity for entity in entities if entity >= 0]
            assert entities == named + [-1] * (len(entities) - len(named))
            assert len(set(named)) == len(named)
            assert max(named, default=0) < len(corpus.inventory.names)
    if perception.category is not None:
        assert perception.category.shape == (len(batch.turn), 4)
        assert_normalised(perception.category)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_reply_names_its_turn_and_holds_no_padding_and_no_unknown_word(corpus: Corpus, name: str, beam: int) -> None:
    config = tiny_config(decoding__beam=beam, decoding__max_length=5)
    model, batch = tiny_model(name, config, corpus), batch_of(corpus)
    replies = reply_to_batch(model, batch, config.decoding)
    expected = [
        (batch.session_ids[session], turn)
        for session, turn in zip(batch.session.tolist(), batch.turn.tolist(), strict=True)
    ]
    assert [(reply.session_id, reply.turn) for reply in replies] == expected
    assert all(len(reply.words) <= 5 and not {PAD, UNK, BOS} & set(reply.words) for reply in replies)
    assert replies == reply_to_batch(model, batch, config.decoding)


def test_a_system_that_is_not_in_the_catalogue_is_refused_with_the_names_of_those_that_are(corpus: Corpus) -> None:
    with pytest.raises(UsageError, match="'vrbott' is not a model; known: vrbot, "):
        build_model("vrbott", tiny_config(), corpus)
