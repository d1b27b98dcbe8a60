"""HRED: utterances are read by themselves, then in the order they came, and never before they came."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract.replying import reply_to_batch
from tests.model.tiny import assert_normalised, batch_of, moment, rows_of, tiny_config, tiny_model
from vrbot.baselines.hred import Hred
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import BOS, SEP
from vrbot.model.contract import Perception
from vrbot.nets.attention import Memory
from vrbot.nets.conditioned_decoder import Told
from vrbot.nets.hierarchical import halves_of

FORMS = list(itertools.product((False, True), repeat=2))
forms = pytest.mark.parametrize(("attention", "copying"), FORMS)


def tiny_hred(corpus: Corpus, *, attention: bool = False, copying: bool = False) -> Hred:
    model = tiny_model("hred", tiny_config(hred__attention=attention, hred__copying=copying), corpus)
    assert isinstance(model, Hred)
    return model


def utterances_of(words: list[int]) -> tuple[list[int], list[int]]:
    """Response and patient's utterance of a context without padding."""
    if SEP not in words:
        return [], words
    return words[: words.index(SEP)], words[words.index(SEP) + 1 :]


def with_words(batch: SessionBatch, rows: Tensor, shift: int = 1) -> SessionBatch:
    """Other words in the contexts of these rows; the separator stays."""
    inputs = batch.inputs
    there = torch.arange(inputs.context.shape[1]) < inputs.context_lengths.unsqueeze(1)
    changed = torch.where(there & (inputs.context > SEP) & rows.unsqueeze(1), 5 + shift, inputs.context)
    return dataclasses.replace(batch, inputs=dataclasses.replace(inputs, context=changed))


def dialogue_vectors(model: Hred, batch: SessionBatch) -> Tensor:
    told: Told = model.perceive(batch.inputs, batch.layout).conditions
    return told.condition


@torch.no_grad()
def test_a_dialogues_vector_is_the_upper_gru_over_its_utterances_one_by_one(corpus: Corpus) -> None:
    model, batch = tiny_hred(corpus), batch_of(corpus)
    found = dialogue_vectors(model, batch)
    for session in range(len(batch.session_ids)):
        state = torch.zeros(1, 1, model.encoder.session.hidden_size)
        for row in (batch.session == session).nonzero().flatten().tolist():
            words = batch.inputs.context[row, : int(batch.inputs.context_lengths[row])].tolist()
            for utterance in utterances_of(words):
                if utterance:
                    embedded = model.words(torch.tensor([utterance]))
                    vector = model.encoder.utterances(embedded, torch.tensor([len(utterance)])).summary
                    _, state = model.encoder.session(vector.unsqueeze(1), state)
            torch.testing.assert_close(found[row], state[0, 0], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_dialogues_vector_depends_on_every_earlier_utterance_and_on_no_later_one(corpus: Corpus) -> None:
    model, batch = tiny_hred(corpus), batch_of(corpus)
    before = dialogue_vectors(model, batch)
    own = rows_of(batch, "cold")
    for changed in range(4):
        after = dialogue_vectors(model, with_words(batch, own & (batch.turn == changed)))
        same = (after - before).abs().amax(dim=1) < 1e-6
        assert same.tolist() == (~own | (batch.turn < changed)).tolist()


@torch.no_grad()
def test_an_utterance_that_was_not_said_is_passed_over(corpus: Corpus) -> None:
    model, batch = tiny_hred(corpus), batch_of(corpus)
    random = torch.Generator().manual_seed(1)
    vectors = torch.randn(len(batch.turn), 2, model.encoder.session.hidden_size, generator=random)
    said = torch.rand(len(batch.turn), 2, generator=random) < 0.5
    found = model.encoder.along_session(vectors, said, batch.layout)
    for session in range(len(batch.session_ids)):
        rows = (batch.session == session).nonzero().flatten()
        for turn, row in enumerate(rows.tolist()):
            heard = vectors[rows[: turn + 1]].flatten(0, 1)[said[rows[: turn + 1]].flatten()]
            state = model.encoder.session(heard.unsqueeze(0))[1][0, 0] if len(heard) else torch.zeros_like(found[row])
            torch.testing.assert_close(found[row], state, atol=1e-6, rtol=1e-5)


def test_the_separator_parts_a_context_and_a_context_without_one_is_the_patients() -> None:
    context = torch.tensor([[7, 8, SEP, 9, 0], [SEP, 5, 6, 7, 8], [5, 6, 7, 0, 0], [SEP, 0, 0, 0, 0]])
    lengths = torch.tensor([4, 5, 3, 1])
    halves = halves_of(context, lengths, SEP)
    assert halves.utterance_lengths.tolist() == [[2, 1], [0, 4], [0, 3], [0, 0]]
    for row, (places, sizes) in enumerate(zip(halves.places(), halves.utterance_lengths.tolist(), strict=True)):
        found = tuple(context[row, place[:size]].tolist() for place, size in zip(places, sizes, strict=True))
        assert found == utterances_of(context[row, : lengths[row]].tolist())


@torch.no_grad()
def test_a_word_is_read_within_its_utterance_and_stands_at_its_place_in_the_context(corpus: Corpus) -> None:
    model, batch = tiny_hred(corpus), batch_of(corpus)
    memory: Memory = model.perceive(batch.inputs, batch.layout).conditions.memory
    for row, length in enumerate(batch.inputs.context_lengths.tolist()):
        words = batch.inputs.context[row, :length].tolist()
        place = 0
        for utterance in utterances_of(words):
            embedded = model.words(torch.tensor([[*utterance, 0]]))  # a place more, for utterances without a word
            read = model.encoder.utterances(embedded, torch.tensor([len(utterance)]))
            found = memory.values[row, place : place + len(utterance)]
            torch.testing.assert_close(found, read.tokens[0, :-1], atol=1e-5, rtol=1e-5)
            assert memory.mask[row, place : place + len(utterance)].all()
            place += len(utterance) + 1
        assert int(memory.mask[row].sum()) == length - 1


@forms
@torch.no_grad()
def test_with_and_without_reading_and_copying_steps_are_the_probability_of_the_response(
    corpus: Corpus, attention: bool, copying: bool
) -> None:
    model, batch = tiny_hred(corpus, attention=attention, copying=copying), batch_of(corpus)
    perception, targets = model.perceive(batch.inputs, batch.layout), batch.targets
    step, state = model.begin_reply(perception, torch.arange(len(batch.turn)))
    tokens, total = torch.full((len(batch.turn),), BOS), torch.zeros(len(batch.turn))
    for position in range(targets.response.shape[1]):
        log_probs, state = step(tokens, state)
        assert_normalised(log_probs)
        tokens = targets.response[:, position]
        found = log_probs.gather(1, tokens.unsqueeze(1)).squeeze(1)
        total = total + torch.where(position < targets.response_lengths, found, 0.0)
    expected = model.reply_log_prob(perception, targets.response, targets.response_lengths)
    torch.testing.assert_close(total, expected, atol=1e-3, rtol=1e-4)


@forms
@torch.no_grad()
def test_the_words_of_the_context_matter_to_the_decoder_only_where_it_reads_or_copies(
    corpus: Corpus, attention: bool, copying: bool
) -> None:
    model, batch = tiny_hred(corpus, attention=attention, copying=copying), batch_of(corpus)
    perception, targets = model.perceive(batch.inputs, batch.layout), batch.targets
    told: Told = perception.conditions
    other = Told(told.condition, told.context_words, Memory(-told.memory.values, told.memory.mask))
    found, expected = (
        model.reply_log_prob(each, targets.response, targets.response_lengths)
        for each in (Perception(None, None, None, other), perception)
    )
    assert torch.equal(found, expected) is not (attention or copying)


@forms
def test_a_wide_search_finds_replies_at_least_as_probable_as_a_narrow_one(
    corpus: Corpus, attention: bool, copying: bool
) -> None:
    model, batch = tiny_hred(corpus, attention=attention, copying=copying), batch_of(corpus)
    perception = model.perceive(batch.inputs, batch.layout)
    means = []
    for beam in (1, 5):
        plain: dict[str, Any] = {"decoding__length_penalty": 1.0, "decoding__no_repeat": 0}  # by the mean of all words
        decoding = tiny_config(decoding__beam=beam, decoding__max_length=6, **plain).decoding
        replies = reply_to_batch(model, batch, decoding)
        words = [[*reply.words, 3] if len(reply.words) < 6 else list(reply.words) for reply in replies]
        response = torch.zeros(len(words), 7, dtype=torch.long)
        for row, each in enumerate(words):
            response[row, : len(each)] = torch.tensor(each)
        lengths = torch.tensor([len(each) for each in words])
        means.append(float((model.reply_log_prob(perception, response, lengths) / lengths).mean()))
    assert means[1] >= means[0]


def test_the_gradient_of_a_late_reply_reaches_the_first_utterance(corpus: Corpus) -> None:
    model, batch = tiny_hred(corpus), batch_of(corpus, [0])
    embedded: list[Tensor] = []

    def keep(module: object, given: object, result: Tensor) -> None:
        result.retain_grad()
        embedded.append(result)

    model.words.register_forward_hook(keep)
    lengths = torch.where(batch.turn == 3, batch.targets.response_lengths, 0)
    late = dataclasses.replace(batch, targets=dataclasses.replace(batch.targets, response_lengths=lengths))
    loss = model.loss(late, moment())
    loss.total.backward()
    gradient = embedded[0].grad
    assert gradient is not None
    assert bool((gradient[batch.turn == 0].abs() > 0).any())
    assert loss.num_turns == 1
