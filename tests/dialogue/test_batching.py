"""Batches: every turn once, in order, equal to the slow and obvious collation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.dialogue.invented import invented_encoder, invented_inventory, invented_sessions, texts_of
from vrbot.dialogue.batching import Limits, SessionBatch, bucketed_batches, collate, sequential_batches
from vrbot.dialogue.conversation import batch_from_conversation, encode_conversation
from vrbot.dialogue.ragged import offsets_of
from vrbot.dialogue.reading import SessionReader
from vrbot.dialogue.splits import Split
from vrbot.dialogue.supervision import LabelMasks
from vrbot.dialogue.vocabulary import CHARACTER_PAD, CHARACTER_SEP, EOS, PAD, SEP
from vrbot.errors import UsageError

SESSIONS = invented_sessions(40)
ENCODER = invented_encoder(SESSIONS)
SHORT = Limits(context=9, characters=12, response=5)
LIMITS = [Limits(), SHORT, Limits(context=1, characters=1, response=2)]


def split_of_sessions() -> Split:
    read = SessionReader(invented_inventory(), "rjieba", None).read(SESSIONS)
    texts = ENCODER.encode(texts_of(SESSIONS))
    return Split(read.session_ids, offsets_of(read.num_turns), texts, read.labels)


SPLIT = split_of_sessions()
RANDOM = np.random.default_rng(0)
MASKS = LabelMasks(*(RANDOM.random(SPLIT.num_turns) < 0.5 for _ in range(3)))


def text_of(index: int) -> list[int]:
    offsets = SPLIT.texts.utterance_offsets
    return [int(token) for token in SPLIT.texts.tokens[offsets[index] : offsets[index + 1]]]


def mentions_of(index: int) -> list[tuple[int, int]]:
    place = slice(*SPLIT.texts.mention_offsets[index : index + 2])
    entities, positions = SPLIT.texts.mention_entities[place], SPLIT.texts.mention_positions[place]
    return list(zip(entities.tolist(), positions.tolist(), strict=True))


def characters_of(index: int) -> list[int]:
    offsets = SPLIT.texts.character_offsets
    return [int(character) for character in SPLIT.texts.characters[offsets[index] : offsets[index + 1]]]


def obvious_row(session: int, turn: int, limits: Limits) -> dict[str, Any]:
    """One row, written down as one would explain it."""
    number = int(SPLIT.session_offsets[session]) + turn
    previous, patient, physician = 2 * number - 1, 2 * number, 2 * number + 1
    before = text_of(previous) if turn else []
    context = [*before, SEP, *text_of(patient)]
    mentions = [(e, p, False) for e, p in (mentions_of(previous) if turn else [])]
    mentions += [(e, p + len(before) + 1, True) for e, p in mentions_of(patient)]
    cut = max(len(context) - limits.context, 0)
    mentions = [(e, p - cut, by_patient) for e, p, by_patient in mentions if p >= cut]
    characters = [*(characters_of(previous) if turn else []), CHARACTER_SEP, *characters_of(patient)]
    response = text_of(physician)[: limits.response - 1]
    first: dict[int, int] = {}
    for entity, position in mentions_of(physician):
        if position < len(response):
            first.setdefault(entity, position)
    labels, place = SPLIT.labels, slice(number, number + 2)
    state = labels.state_entities[slice(*labels.state_offsets[place])].tolist()
    keywords = labels.keyword_entities[slice(*labels.keyword_offsets[place])].tolist()
    state_known = bool(labels.state_known[number] and MASKS.state[number])
    keywords_known = bool(labels.keywords_known[number] and MASKS.keywords[number])
    category = int(labels.category[number]) if MASKS.category[number] else -1
    return {
        "context": context[cut:],
        "context_lengths": len(context) - cut,
        "mention_entities": [e for e, _, _ in mentions],
        "mention_positions": [p for _, p, _ in mentions],
        "patient_mentions": [by_patient for _, _, by_patient in mentions],
        "characters": characters[-limits.characters :],
        "response": [*response, EOS] if response else [],
        "response_lengths": len(response) + 1 if response else 0,
        "response_mentions": list(first),
        "response_mention_positions": list(first.values()),
        "state": state if state_known else [],
        "state_known": state_known,
        "category": category,
        "category_known": category >= 0,
        "keywords": keywords if keywords_known else [],
        "keywords_known": keywords_known,
    }


PADDING = {"context": PAD, "characters": CHARACTER_PAD, "response": PAD, "patient_mentions": False}


@pytest.mark.parametrize("limits", LIMITS)
def test_a_batch_is_the_obvious_collation_padded(limits: Limits) -> None:
    chosen = [5, 3, 17, 0, 39, 8, 21]
    batch = collate(SPLIT, chosen, MASKS, limits)
    lengths = SPLIT.turns_per_session
    order = sorted(chosen, key=lambda session: -lengths[session])
    rows = [
        obvious_row(session, turn, limits)
        for turn in range(max(lengths[chosen]))
        for session in order
        if turn < lengths[session]
    ]
    tensors = {**vars(batch.inputs), **vars(batch.targets)}
    assert tensors.keys() == rows[0].keys()
    for name, tensor in tensors.items():
        values = [row[name] for row in rows]
        if isinstance(values[0], list):
            width = max(map(len, values))
            values = [value + [PADDING.get(name, -1)] * (width - len(value)) for value in values]
        assert tensor.tolist() == values, name


def test_rows_are_turn_by_turn_and_active_sessions_are_a_prefix() -> None:
    batch = collate(SPLIT, range(SPLIT.num_sessions))
    lengths = [int(SPLIT.turns_per_session[SPLIT.session_ids.index(name)]) for name in batch.session_ids]
    assert lengths == sorted(lengths, reverse=True)
    assert batch.turn_offsets[0] == 0
    assert batch.turn_offsets[-1] == len(batch.turn) == SPLIT.num_turns
    for turn in range(len(batch.turn_offsets) - 1):
        rows = slice(batch.turn_offsets[turn], batch.turn_offsets[turn + 1])
        active = sum(length > turn for length in lengths)
        assert batch.turn[rows].tolist() == [turn] * active
        assert batch.session[rows].tolist() == list(range(active))


def test_mentions_stand_inside_the_context_and_never_in_padding() -> None:
    inputs = collate(SPLIT, range(SPLIT.num_sessions), limits=SHORT).inputs
    real = inputs.mention_entities >= 0
    assert real.any()
    assert torch.equal(real, inputs.mention_positions >= 0)
    assert (inputs.mention_positions < inputs.context_lengths[:, None]).all()
    at_mention = inputs.context.gather(1, inputs.mention_positions.clamp_min(0))
    assert (at_mention[real] > SEP).all()
    assert not inputs.patient_mentions[~real].any()


def test_the_end_of_the_patients_utterance_survives_the_cut() -> None:
    inputs = collate(SPLIT, range(SPLIT.num_sessions), limits=SHORT).inputs
    whole = collate(SPLIT, range(SPLIT.num_sessions)).inputs
    assert (whole.context_lengths > SHORT.context).any()
    for row, length in enumerate(inputs.context_lengths.tolist()):
        full = whole.context[row, : int(whole.context_lengths[row])]
        assert inputs.context[row, :length].tolist() == full[-length:].tolist()


def test_a_label_that_is_not_known_is_not_in_the_batch() -> None:
    hidden = LabelMasks(*(np.zeros(SPLIT.num_turns, dtype=np.bool_),) * 3)
    targets = collate(SPLIT, range(SPLIT.num_sessions), hidden).targets
    known = collate(SPLIT, range(SPLIT.num_sessions)).targets
    assert not (targets.state_known | targets.category_known | targets.keywords_known).any()
    assert targets.state.numel() == targets.keywords.numel() == 0
    assert (targets.category == -1).all()
    assert known.state_known.any()
    assert torch.equal(targets.response, known.response)


def test_every_session_is_in_exactly_one_batch_of_an_epoch() -> None:
    for batches in (bucketed_batches(SPLIT, 6, seed=1, pool=2), sequential_batches(SPLIT, 6)):
        assert sorted(np.concatenate(batches).tolist()) == list(range(SPLIT.num_sessions))
        assert all(1 <= len(batch) <= 6 for batch in batches)


def test_a_limit_on_rows_splits_batches_and_drops_nothing() -> None:
    for batches in (bucketed_batches(SPLIT, 6, seed=1, max_rows=6), sequential_batches(SPLIT, 6, max_rows=6)):
        assert sorted(np.concatenate(batches).tolist()) == list(range(SPLIT.num_sessions))
        rows = [int(SPLIT.turns_per_session[batch].sum()) for batch in batches]
        assert all(count <= 6 or len(batch) == 1 for count, batch in zip(rows, batches, strict=True))
        assert max(rows) == 7  # the longest sessions have more turns than allowed, and come alone


def test_an_epoch_among_some_sessions_has_each_about_equally_often_and_as_many_batches_as_one_of_all() -> None:
    some = np.arange(3, SPLIT.num_sessions, 4)
    batches = bucketed_batches(SPLIT, 4, seed=1, among=some)
    times = Counter(np.concatenate(batches).tolist())
    assert set(times) == set(some.tolist())
    assert max(times.values()) - min(times.values()) <= 1
    assert all(len(set(batch.tolist())) == len(batch) for batch in batches)
    assert len(batches) == len(bucketed_batches(SPLIT, 4, seed=1))
    assert bucketed_batches(SPLIT, 4, seed=1, among=np.zeros(0, dtype=np.int64)) == []


def test_seed_and_epoch_decide_the_order_and_nothing_else() -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in bucketed_batches(SPLIT, 4, seed=seed, epoch=epoch, pool=3)]

    assert order(1, 2) == order(1, 2)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 2)


def test_sessions_of_a_batch_have_similar_lengths() -> None:
    def spread(batches: list[Any]) -> float:
        return float(np.mean([np.ptp(SPLIT.turns_per_session[batch]) for batch in batches]))

    unsorted = [np.arange(start, start + 4) for start in range(0, 40, 4)]
    assert spread(bucketed_batches(SPLIT, 4, seed=0)) < spread(unsorted) / 2


def test_an_empty_split_has_no_batches() -> None:
    empty = encode_conversation(ENCODER, [("a", "b")])
    empty = replace(empty, session_ids=(), session_offsets=np.zeros(1, dtype=np.int64))
    assert bucketed_batches(empty, 4, seed=0) == []
    assert sequential_batches(empty, 4) == []


def same(first: SessionBatch, second: SessionBatch) -> bool:
    pairs = zip(vars(first.inputs).items(), vars(second.inputs).items(), strict=True)
    return all(torch.equal(one, other) for (_, one), (_, other) in pairs)


@pytest.mark.parametrize("index", range(0, 40, 7))
def test_a_live_conversation_is_encoded_exactly_as_a_prepared_session(index: int) -> None:
    turns = [(turn.patient, turn.physician) for turn in SESSIONS[index].turns]
    live, prepared = batch_from_conversation(ENCODER, turns, SHORT), collate(SPLIT, [index], limits=SHORT)
    assert same(live, prepared)
    assert torch.equal(live.targets.response, prepared.targets.response)


def test_the_last_answer_does_not_change_what_a_model_sees() -> None:
    turns = [("咳嗽三天", "有没有发烧？"), ("没有", "")]
    answered = [turns[0], ("没有", "考虑气管炎。")]
    assert same(batch_from_conversation(ENCODER, turns), batch_from_conversation(ENCODER, answered))


def test_a_conversation_without_turns_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one turn"):
        batch_from_conversation(ENCODER, [])


def test_texts_without_any_token_make_a_batch() -> None:
    batch = batch_from_conversation(ENCODER, [("", " ")])
    assert batch.inputs.context.tolist() == [[SEP]]
    assert batch.targets.response_lengths.tolist() == [0]


def test_rows_can_be_cut_out_and_moved() -> None:
    batch = collate(SPLIT, [0, 1, 2])
    first = batch.inputs.rows(0, 3)
    assert first.context.tolist() == batch.inputs.context[:3].tolist()
    assert batch.targets.rows(1, 2).category.tolist() == batch.targets.category[1:2].tolist()
    assert same(batch.to("cpu"), batch)
