"""Probes on tiny models: what they count, and that they notice an action that is ignored."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.model.tiny import batch_of, tiny_config, tiny_model, tiny_vrbot
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.evaluation.measuring import measure_model
from vrbot.evaluation.obedience import exchanged_actions, gold_action, measure_oracle, under_action
from vrbot.evaluation.posteriors import entity_rows
from vrbot.evaluation.probing import probe
from vrbot.evaluation.scorecard import scorecard
from vrbot.model.policy_network import Action
from vrbot.model.spans import span_of
from vrbot.model.vrbot import VRBot

CHAIN = {
    "kl_state",
    "kl_action",
    "kl_category",
    "kl_keywords",
    "keywords_per_turn",
    "none_share",
    "state_f1",
    "action_f1",
    "category_accuracy",
    "inference_state_f1",
    "inference_action_f1",
    "inference_category_accuracy",
    "obedience",
    "changed_by_another_action",
    "perplexity_prior_action",
    "perplexity_inference_action",
    "micro_f1",
    "micro_f1_without_most_frequent",
    "action_f1_without_most_frequent",
}


def test_a_probe_gives_the_whole_chain_and_twice_the_same(corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_vrbot(config, corpus)
    found = probe(model, corpus, "valid", config, config.decoding)
    assert found.keys() >= CHAIN
    assert all(found[name] is not None for name in CHAIN)
    assert found == probe(model, corpus, "valid", config, config.decoding)


def test_a_probe_agrees_with_evaluation(corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_vrbot(config, corpus)
    found = probe(model, corpus, "test", config, config.decoding)
    card = scorecard(measure_model(model, corpus, "test", config, config.decoding).turns).as_dict()
    for name in ("micro_f1", "state_f1", "action_f1", "inference_state_f1", "inference_action_f1", "category_accuracy"):
        assert found[name] == card[name]
    model.imagine = lambda inputs, layout, count, generator: iter([model.perceive(inputs, layout)])  # type: ignore[method-assign]
    decided = scorecard(measure_model(model, corpus, "test", config, config.decoding).turns).as_dict()
    assert found["perplexity_prior_action"] == pytest.approx(decided["perplexity"])


def test_free_bits_do_not_hide_a_collapse(corpus: Corpus) -> None:
    plain, padded = tiny_config(), tiny_config(objective__free_bits_action=50.0, objective__kl_warmup_steps=10)
    values = [
        probe(tiny_vrbot(config, corpus), corpus, "valid", config, config.decoding)["kl_keywords"]
        for config in (plain, padded)
    ]
    assert values[0] == pytest.approx(values[1])


def test_a_generator_that_ignores_the_action_changes_no_reply(corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_vrbot(config, corpus)
    heeding = probe(model, corpus, "valid", config, config.decoding)["changed_by_another_action"]
    deaf = _deaf(model)
    assert probe(deaf, corpus, "valid", config, config.decoding)["changed_by_another_action"] == 0.0
    assert isinstance(heeding, float)
    assert heeding > 0


def _deaf(model: VRBot) -> VRBot:
    """The same model whose generator is shown an empty action, whatever it is given."""
    given_before = model.generator.initial

    def initial(given: object, categories: torch.Tensor) -> object:
        hidden = span_of(torch.full((len(categories), 0), -1), model.action_length, model.table.num_entities)
        read = model.keyword_reader(hidden, model.table())
        action = Action(given.action.category * 0, hidden)  # type: ignore[attr-defined]
        silent = dataclasses.replace(given, action=action, keywords_read=read)  # type: ignore[type-var]
        return given_before(silent, categories * 0)  # type: ignore[arg-type]

    model.generator.initial = initial  # type: ignore[method-assign, assignment]
    return model


def test_the_gold_action_is_what_the_labels_say(corpus: Corpus) -> None:
    config = tiny_config()
    model, batch = tiny_vrbot(config, corpus), batch_of(corpus)
    perception = model.perceive(batch.inputs, batch.layout)
    action = gold_action(model, batch.targets, perception)
    wanted = [{entity for entity in row if entity >= 0} for row in batch.targets.keywords.tolist()]
    assert [set(row) for row in entity_rows(action.keywords)] == wanted
    assert action.category.argmax(dim=-1).tolist() == batch.targets.category.tolist()


def test_replies_under_the_own_action_are_the_own_replies(corpus: Corpus) -> None:
    config = tiny_config()
    model, batch = tiny_vrbot(config, corpus), batch_of(corpus)
    perception = model.perceive(batch.inputs, batch.layout)
    same = under_action(model, perception, perception.conditions.action)
    targets = batch.targets
    one = model.reply_log_prob(perception, targets.response, targets.response_lengths)
    other = model.reply_log_prob(same, targets.response, targets.response_lengths)
    torch.testing.assert_close(one, other)


def test_an_exchanged_action_names_other_keywords_unless_all_are_alike() -> None:
    keywords = span_of(torch.tensor([[0], [0], [1]]), 2, 3)
    exchange = exchanged_actions(Action(torch.eye(3), keywords))
    assert entity_rows(exchange.action.keywords) == [(1,), (1,), (0,)]
    assert exchange.counted.tolist() == [True, True, True]
    alike = exchanged_actions(Action(torch.eye(2), span_of(torch.tensor([[2], [2]]), 1, 3)))
    assert alike.counted.tolist() == [False, False]


def test_the_oracle_is_told_the_action(corpus: Corpus) -> None:
    config = tiny_config()
    turns = measure_oracle(tiny_vrbot(config, corpus), corpus, "test", config, config.decoding).turns
    assert scorecard(turns).action_f1 == 100.0


@pytest.mark.parametrize("name", ["seq2seq", "vrbot-no-action"])
def test_a_model_without_actions_cannot_be_probed(name: str, corpus: Corpus) -> None:
    config = tiny_config()
    model = tiny_model(name, config, corpus)
    assert isinstance(model, torch.nn.Module)
    with pytest.raises(UsageError, match="infers actions"):
        probe(model, corpus, "valid", config, config.decoding)
