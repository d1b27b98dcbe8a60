"""Which words are cues for a mention, and which mentions the trackers may copy."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch

from tests.model.tiny import batch_of, entity_id, tiny_config, tiny_vrbot
from vrbot.dialogue.batching import TurnInputs
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.vocabulary import SEP
from vrbot.model.surroundings import NUM_ROLES, Surroundings

REACH = 2


@pytest.fixture(scope="module")
def surroundings(corpus: Corpus) -> Surroundings:
    return Surroundings(len(corpus.vocabulary), len(corpus.inventory), REACH)


def expected_cues(inputs: TurnInputs, row: int, mention: int, num_words: int) -> Counter[int]:
    """The same by reading the turn word for word."""
    words = inputs.context[row, : int(inputs.context_lengths[row])].tolist()
    cut = words.index(SEP) if SEP in words else -1
    place, by_patient = int(inputs.mention_positions[row, mention]), bool(inputs.patient_mentions[row, mention])
    begin, end = (cut + 1, len(words)) if by_patient else (0, cut)
    before, behind = words[max(begin, place - REACH) : place], words[place + 1 : min(end, place + 1 + REACH)]
    roles = (0, 1) if by_patient else (2, 3)
    found = [roles[0] * num_words + word for word in before] + [roles[1] * num_words + word for word in behind]
    found += [] if by_patient else [4 * num_words + word for word in words[cut + 1 :]]
    return Counter(
        [
            *found,
            NUM_ROLES * num_words + by_patient,
            NUM_ROLES * num_words + 2 + int(inputs.mention_entities[row, mention]),
        ]
    )


def test_cues_are_the_words_around_in_one_utterance_the_answer_the_speaker_and_the_entity(
    corpus: Corpus, surroundings: Surroundings
) -> None:
    inputs = batch_of(corpus).inputs
    found = surroundings.cues(inputs)
    speakers = set()
    for row, mention in (inputs.mention_entities >= 0).nonzero().tolist():
        own = Counter(cue for cue in found[row, mention].tolist() if cue >= 0)
        assert own == expected_cues(inputs, row, mention, len(corpus.vocabulary))
        speakers.add(bool(inputs.patient_mentions[row, mention]))
    assert speakers == {True, False}
    assert (found[inputs.mention_entities < 0] < 0).all()
    assert int(found.max()) < surroundings.num_cues


def test_padding_is_no_cue(corpus: Corpus, surroundings: Surroundings) -> None:
    inputs = batch_of(corpus).inputs
    wider = replace(inputs, context=torch.nn.functional.pad(inputs.context, (0, 3), value=7))
    torch.manual_seed(0)
    surroundings.worth.normal_()
    assert torch.equal(surroundings(inputs), surroundings(wider))
    surroundings.worth.zero_()


def test_all_mentions_are_offered_until_something_speaks_against_them(
    corpus: Corpus, surroundings: Surroundings
) -> None:
    inputs = batch_of(corpus).inputs
    exists = inputs.mention_entities >= 0
    assert torch.equal(surroundings(inputs), exists)
    entity = entity_id(corpus, "头痛")
    surroundings.worth[NUM_ROLES * len(corpus.vocabulary) + 2 + entity] = -1.0
    assert torch.equal(surroundings(inputs), exists & (inputs.mention_entities != entity))
    surroundings.worth.zero_()


def test_the_tracker_copies_only_what_is_offered(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config(tracker__generation_bias=-1e4), corpus), batch_of(corpus)
    entity = entity_id(corpus, "头痛")

    def states() -> torch.Tensor:
        found = model.perceive(batch.inputs, batch.layout).state
        assert found is not None
        return found

    assert (states() == entity).any()
    assert model.surroundings is not None
    model.surroundings.worth[NUM_ROLES * len(corpus.vocabulary) + 2 + entity] = -1.0
    assert not (states() == entity).any()


def test_caution_counts_in_use_and_not_in_training(corpus: Corpus) -> None:
    model, batch = tiny_vrbot(tiny_config(tracker__caution=5.0), corpus), batch_of(corpus)
    heard = model.hear(batch.inputs, batch.layout)
    previous = model.first_state(len(batch.turn), torch.device("cpu"))
    read, mentions = model.recall(previous, heard.mentions, heard.table)
    given = ((heard.context.summary, read.summary), previous, mentions, heard.table)
    in_use, _ = model.prior_tracker.parts_along(*given)  # type: ignore[operator]
    model.train()
    in_training, _ = model.prior_tracker.parts_along(*given)  # type: ignore[operator]
    torch.testing.assert_close(in_use, in_training - 5.0)
