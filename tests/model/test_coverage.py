"""Coverage: a keyword that has been named, by whichever of its words, is no longer read."""

from __future__ import annotations

import pytest
import torch

from tests.model.test_response_generator import conditions
from tests.model.tiny import batch_of, tiny_config, tiny_vrbot
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import BOS
from vrbot.model.world import meanings_of


def test_every_surface_form_means_its_entities(corpus: Corpus) -> None:
    meanings = meanings_of(corpus.vocabulary)
    for word, row in enumerate(meanings.tolist()):
        assert tuple(entity for entity in row if entity >= 0) == corpus.vocabulary.word_entities.get(word, ())


@torch.no_grad()
def test_only_what_is_not_yet_named_can_be_read(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config(), corpus), batch_of(corpus)
    given = conditions(model, batch)
    state = model.generator.initial(given, model.category_vectors(given.action))
    keywords, there = given.action.keywords.ids, given.action.keywords.mask
    row = int(there.any(dim=1).nonzero()[0])
    entity = int(keywords[row, 0])
    _, state = model.generator.step(torch.full((len(keywords),), BOS), state)
    assert not state.named.any()
    word = int(corpus.vocabulary.entity_word[entity])
    _, state = model.generator.step(torch.full((len(keywords),), word), state)
    assert torch.equal(state.named, keywords == entity)
    left = state.memory.left(state.named.unsqueeze(1))[-1].mask.squeeze(1)
    assert torch.equal(left, given.keywords_read.mask & (keywords != entity))


@pytest.mark.parametrize("coverage", [True, False])
@torch.no_grad()
def test_named_keywords_change_what_follows_only_with_coverage(corpus: Corpus, coverage: bool) -> None:
    """The same words and hidden states, but one keyword marked as named: the next word moves, or does not."""
    model, batch = tiny_vrbot(tiny_config(network__coverage=coverage), corpus), batch_of(corpus)
    given = conditions(model, batch)
    fresh = model.generator.initial(given, model.category_vectors(given.action))
    marked = type(fresh)(fresh.hidden, given.action.keywords.mask, fresh.memory)
    tokens = torch.full((len(fresh.hidden),), BOS)
    first, _ = model.generator.step(tokens, fresh)
    second, _ = model.generator.step(tokens, marked)
    assert torch.equal(first, second) is not coverage
