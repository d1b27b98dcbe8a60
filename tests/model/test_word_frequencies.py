"""Laws of first scores: what predicts words begins with how often the training responses say each (decision 0034)."""

from __future__ import annotations

from collections import Counter
from typing import cast

import pytest
import torch
from torch import nn

from tests.model.tiny import MODELS, batch_of, sessions, tiny_config, tiny_model
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import EOS
from vrbot.model.world import count_context_words, count_response_words
from vrbot.nets.initial_bias import ScoresWords, WritesContextsToo, log_frequencies


def test_words_are_counted_in_responses_alone_and_each_response_ends_once(corpus: Corpus) -> None:
    ids = {word: i for i, word in enumerate(corpus.vocabulary.words)}
    turns = [turn for session in sessions() for turn in session.turns]
    expected: Counter[int] = Counter({EOS: sum(bool(turn.physician) for turn in turns)})
    tokens = batch_of(corpus).targets
    for response, length in zip(tokens.response.tolist(), tokens.response_lengths.tolist(), strict=True):
        expected.update(response[: max(length - 1, 0)])  # the last is the end, an unanswered turn has none
    counted = count_response_words(corpus)
    assert {i: n for i, n in enumerate(counted.tolist()) if n} == dict(expected)
    only_patients = ids["昨天"]
    assert counted[only_patients] == 0


def test_words_of_contexts_are_counted_as_models_read_them(corpus: Corpus) -> None:
    read = batch_of(corpus).inputs
    expected: Counter[int] = Counter()
    for context, length in zip(read.context.tolist(), read.context_lengths.tolist(), strict=True):
        expected.update(context[:length])
    counted = count_context_words(corpus)
    assert {i: n for i, n in enumerate(counted.tolist()) if n} == dict(expected)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_replies_are_likelier_before_anything_is_learnt(corpus: Corpus, name: str) -> None:
    batch = batch_of(corpus)

    def log_probs(with_frequencies: bool) -> float:
        model = tiny_model(name, tiny_config(network__begin_with_frequencies=with_frequencies), corpus, scale=1.0)
        perception = model.perceive(batch.inputs, batch.layout)
        targets = batch.targets
        return float(model.reply_log_prob(perception, targets.response, targets.response_lengths).sum())

    assert log_probs(True) > log_probs(False) + 10


@pytest.mark.parametrize("name", MODELS)
def test_every_score_of_words_begins_as_certain_as_responses_are(corpus: Corpus, name: str) -> None:
    weights = count_response_words(corpus) + 0.5
    model = cast(nn.Module, tiny_model(name, tiny_config(), corpus))
    parts = [part for part in model.modules() if isinstance(part, ScoresWords)]
    assert parts
    for part in parts:
        torch.testing.assert_close(part.word_bias.exp(), weights / weights.mean())


def test_what_writes_the_context_again_begins_as_certain_as_contexts_are(corpus: Corpus) -> None:
    model = cast(nn.Module, tiny_model("sedst", tiny_config(sedst__reconstruct_context=True), corpus))
    assert isinstance(model, WritesContextsToo)
    assert isinstance(model.reader_of_context, ScoresWords)
    contexts, responses = log_frequencies(count_context_words(corpus)), log_frequencies(count_response_words(corpus))
    torch.testing.assert_close(model.reader_of_context.word_bias, contexts)
    others = [part for part in model.modules() if isinstance(part, ScoresWords) and part is not model.reader_of_context]
    assert len(others) == 1
    torch.testing.assert_close(others[0].word_bias, responses)
    assert not torch.allclose(contexts, responses)
