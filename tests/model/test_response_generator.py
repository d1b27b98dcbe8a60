"""The response generator: one probability, whether a reply is scored in training or searched for word by word."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.model.tiny import assert_normalised, batch_of, random_spans, tiny_config, tiny_vrbot
from vrbot.config import recipe
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import BOS
from vrbot.model.policy_network import Action
from vrbot.model.response_generator import Conditions
from vrbot.model.vrbot import VRBot
from vrbot.nets.prepared import RoundedProjection, int8_is_possible

READINGS = ("fed", "late")


def conditions(model: VRBot, batch: SessionBatch, seed: int = 0) -> Conditions:
    """Random states and actions, one-hot, some of them empty."""
    heard, rows, entities = model.hear(batch.inputs, batch.layout), len(batch.turn), model.table.num_entities
    category = torch.eye(4)[torch.arange(rows) % 4]
    keywords = random_spans(rows, model.action_length, entities, seed + 1)
    return model.conditions(heard, random_spans(rows, model.state_length, entities, seed), Action(category, keywords))


def along_the_steps(model: VRBot, given: Conditions, response: Tensor, lengths: Tensor) -> Tensor:
    """The sum of what `step` says about each word of the response [N]."""
    state = model.generator.initial(given, model.category_vectors(given.action))
    tokens, total = torch.full_like(response[:, 0], BOS), torch.zeros(len(response))
    for position in range(response.shape[1]):
        log_probs, state = model.generator.step(tokens, state)
        assert_normalised(log_probs)
        tokens = response[:, position]
        total = total + torch.where(position < lengths, log_probs.gather(1, tokens.unsqueeze(1)).squeeze(1), 0.0)
    return total


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("readings", READINGS)
@torch.no_grad()
def test_a_response_has_one_probability_in_training_and_in_search(corpus: Corpus, readings: str, seed: int) -> None:
    model, batch = tiny_vrbot(tiny_config(network__readings=readings), corpus, seed=seed), batch_of(corpus)
    given, targets = conditions(model, batch, seed), batch.targets
    scored = model.generator.log_prob(
        given, model.category_vectors(given.action), targets.response, targets.response_lengths
    )
    stepped = along_the_steps(model, given, targets.response, targets.response_lengths)
    torch.testing.assert_close(scored, stepped, atol=1e-4, rtol=1e-4)
    assert scored[targets.response_lengths == 0].tolist() == [0.0]


@pytest.mark.parametrize("readings", READINGS)
@torch.no_grad()
def test_what_is_not_generated_has_mass_only_if_context_state_or_action_hold_it(corpus: Corpus, readings: str) -> None:
    model, batch = tiny_vrbot(tiny_config(network__readings=readings), corpus), batch_of(corpus)
    model.generator.output_bias.fill_(-1e4)
    given = conditions(model, batch)
    log_probs, _ = model.generator.step(
        torch.full((len(batch.turn),), BOS), model.generator.initial(given, model.category_vectors(given.action))
    )
    assert_normalised(log_probs)
    for row, length in enumerate(batch.inputs.context_lengths.tolist()):
        held = set(batch.inputs.context[row, :length].tolist())
        for span in (given.state, given.action.keywords):
            held |= set(model.table.entity_words[span.ids[row][span.mask[row]]].tolist())
        elsewhere = [word for word in range(log_probs.shape[1]) if word not in held]
        assert float(log_probs[row].exp()[elsewhere].sum()) < 1e-6
        assert bool((log_probs[row, list(held)] > -200).all())


@pytest.mark.parametrize("readings", READINGS)
@torch.no_grad()
def test_hypotheses_side_by_side_get_what_each_would_get_alone(corpus: Corpus, readings: str) -> None:
    model, batch = tiny_vrbot(tiny_config(network__readings=readings), corpus), batch_of(corpus)
    given = conditions(model, batch)
    alone = model.generator.initial(given, model.category_vectors(given.action))
    rows = len(batch.turn)
    several = alone.select(torch.arange(rows).repeat_interleave(3), None)
    words = torch.arange(3 * rows) % model.generator.words.num_embeddings
    together, _ = model.generator.step(words, several)
    for place in range(3):
        single, _ = model.generator.step(words[place::3], alone)
        torch.testing.assert_close(together[place::3], single, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("readings", READINGS)
def test_no_reply_at_all_is_no_obstacle(corpus: Corpus, readings: str) -> None:
    model, batch = tiny_vrbot(tiny_config(network__readings=readings), corpus), batch_of(corpus)
    given, nothing = conditions(model, batch), torch.zeros_like(batch.targets.response_lengths)
    vectors = model.category_vectors(given.action)
    assert not model.generator.log_prob(given, vectors, batch.targets.response, nothing).any()
    assert not model.generator.log_prob(given, vectors, batch.targets.response[:, :0], nothing).any()


@pytest.mark.parametrize("readings", READINGS)
@torch.no_grad()
def test_rows_are_scored_the_same_in_blocks_of_any_size(
    corpus: Corpus, readings: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = tiny_vrbot(tiny_config(network__readings=readings), corpus), batch_of(corpus)
    given, targets = conditions(model, batch), batch.targets
    arguments = (given, model.category_vectors(given.action), targets.response, targets.response_lengths)
    whole = model.generator.log_prob(*arguments)
    monkeypatch.setattr("vrbot.model.reply_sources.ROWS_AT_ONCE", 2)
    torch.testing.assert_close(model.generator.log_prob(*arguments), whole, atol=1e-4, rtol=1e-5)


@torch.no_grad()
def test_a_search_prefers_exactly_the_keywords_that_are_left(corpus: Corpus) -> None:
    settings = tiny_config(decoding__keyword_bonus=1.5, decoding__only_keywords=False)
    model, batch = tiny_vrbot(settings, corpus), batch_of(corpus)
    given, generator = conditions(model, batch), model.generator
    state = generator.initial(given, model.category_vectors(given.action))
    keywords, there = given.action.keywords, given.action.keywords.mask
    first = torch.where(there[:, 0], generator.entity_words[keywords.ids[:, 0].clamp_max(len(model.table()) - 2)], BOS)
    _, state = generator.search_step(torch.full((len(batch.turn),), BOS), state)
    plain, _ = generator.step(first, state)
    sought, _ = generator.search_step(first, state)
    some_left = False
    for row in range(len(batch.turn)):
        spoken = set(generator.meanings[first[row]].tolist())
        left = {k for k, is_there in zip(keywords.ids[row].tolist(), there[row].tolist(), strict=True) if is_there}
        words = generator.entity_words[torch.tensor(sorted(left - spoken), dtype=torch.long)]
        expected = plain[row].clone()
        expected[words] += 1.5
        torch.testing.assert_close(sought[row], expected.log_softmax(dim=0))
        some_left |= len(words) > 0
    assert some_left


@torch.no_grad()
def test_a_search_names_no_entity_that_is_no_keyword(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config(decoding__keyword_bonus=0.0), corpus), batch_of(corpus)
    given, generator = conditions(model, batch), model.generator
    keywords, there = given.action.keywords, given.action.keywords.mask
    assert there.any()
    assert not there.all(dim=1).all()
    state = generator.initial(given, model.category_vectors(given.action))
    rows = torch.arange(len(batch.turn)).repeat_interleave(2)  # a beam of two, and then the last items alone
    for chosen, items in ((rows, None), (torch.arange(4), torch.tensor([len(batch.turn) - 2, len(batch.turn) - 1]))):
        state = state.select(chosen, items)
        begun = torch.full((len(chosen),), BOS)
        plain, sought = generator.step(begun, state)[0], generator.search_step(begun, state)[0]
        for row in range(len(chosen)):
            item = row // 2 if items is None else int(items[row // 2])
            own = {k for k, kept in zip(keywords.ids[item].tolist(), there[item].tolist(), strict=True) if kept}
            meant = [{entity for entity in each if entity >= 0} for each in generator.meanings.tolist()]
            barred = torch.tensor([bool(each) and not each & own for each in meant])
            assert barred.any()
            expected = plain[row].masked_fill(barred, -torch.inf).log_softmax(dim=0)
            torch.testing.assert_close(sought[row], expected)


def test_nothing_is_barred_where_no_action_decides_what_is_named(corpus: Corpus) -> None:
    for name, obeys in (("vrbot", True), ("vrbot-un", True), ("vrbot-no-action", False), ("labes", False)):
        assert tiny_vrbot(tiny_config(), corpus, name=name).generator.only_keywords is obeys
    told = tiny_config(decoding__only_keywords=recipe("paper").decoding.only_keywords)
    assert not tiny_vrbot(told, corpus).generator.only_keywords


@pytest.mark.skipif(not int8_is_possible(), reason="no int8 products, or none that are safe")
@torch.no_grad()
def test_the_precision_of_a_search_changes_neither_training_nor_more_than_the_last_digits(corpus: Corpus) -> None:
    exact, rounded = (tiny_vrbot(tiny_config(decoding__precision=kind), corpus) for kind in ("float32", "int8"))
    rounded.load_state_dict(exact.state_dict())
    batch = batch_of(corpus)
    given = conditions(exact, batch)
    found = []
    for model in (exact, rounded):
        state = model.generator.initial(given, model.category_vectors(given.action))
        found.append(model.generator.step(torch.full((len(batch.turn),), BOS), state)[0])
    generator = rounded.generator
    assert isinstance(generator._projection.of(generator.words.weight, generator.output_bias), RoundedProjection)
    torch.testing.assert_close(*found, atol=0.05, rtol=0)
    targets, vectors = batch.targets, exact.category_vectors(given.action)
    response = targets.response, targets.response_lengths
    scores = [model.generator.log_prob(given, vectors, *response) for model in (exact, rounded)]
    assert torch.equal(*scores)


def test_scoring_in_many_blocks_keeps_the_words_vectors_once(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = tiny_vrbot(tiny_config(network__readings="fed"), corpus), batch_of(corpus)
    monkeypatch.setattr("vrbot.model.reply_sources.ROWS_AT_ONCE", 2)
    given, targets = conditions(model, batch), batch.targets
    own = {parameter.data_ptr() for parameter in model.parameters()}
    kept: set[int] = set()

    def note(tensor: Tensor) -> Tensor:
        if tensor.dim() == 2 and len(tensor) == len(model.generator.output_bias) and tensor.data_ptr() not in own:
            kept.add(tensor.data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        arguments = (given, model.category_vectors(given.action), targets.response, targets.response_lengths)
        total = model.generator.log_prob(*arguments).sum()
    assert total.requires_grad
    assert len(kept) == 1
