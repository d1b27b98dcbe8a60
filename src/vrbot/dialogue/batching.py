"""Sessions as batches of tensors. Rows are turns, all first turns of the batch, then all second turns, and so on.

Letters for shapes: N rows, T context tokens, M mentions, C characters, R response tokens, K entities.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrbot.config import NetworkSettings
from vrbot.dialogue.ragged import Array, Places, offsets_of, pad_rows, places_between
from vrbot.dialogue.splits import Split
from vrbot.dialogue.supervision import LabelMasks, every_label
from vrbot.dialogue.vocabulary import CHARACTER_PAD, CHARACTER_SEP, EOS, PAD, SEP

NO_ENTITY = -1


@dataclass(frozen=True)
class Limits:
    """How much of a turn a batch holds: the end of the context, the beginning of the response."""

    context: int = 200
    characters: int = 256
    response: int = 100


def limits_of(network: NetworkSettings) -> Limits:
    """How much of a turn a model of these settings reads."""
    return Limits(network.max_context, network.max_characters, network.max_response)


@dataclass(frozen=True)
class TurnInputs:
    """What a deployed system has at each turn."""

    context: Tensor  # [N, T] previous response, SEP, patient utterance; cut from the left, padded with PAD
    context_lengths: Tensor  # [N], at least 1
    mention_entities: Tensor  # [N, M] entities mentioned in the context, in order; -1 after the end
    mention_positions: Tensor  # [N, M] their token positions in the context; -1 after the end
    patient_mentions: Tensor  # [N, M] true where the patient's utterance holds the mention
    characters: Tensor  # [N, C] characters of the same two utterances, cut from the left

    def to(self, device: torch.device | str) -> TurnInputs:
        return TurnInputs(**{name: tensor.to(device) for name, tensor in vars(self).items()})

    def rows(self, start: int, stop: int) -> TurnInputs:
        """The rows from `start` up to `stop` only."""
        return TurnInputs(**{name: tensor[start:stop] for name, tensor in vars(self).items()})


@dataclass(frozen=True)
class TurnTargets:
    """What only a loss or a metric may see. A label that is not known here is not in the tensors either."""

    response: Tensor  # [N, R] tokens, then EOS, then PAD
    response_lengths: Tensor  # [N] EOS included; 0 where no reply is recorded
    response_mentions: Tensor  # [N, K] entities of the response in order, each once; -1 after the end
    response_mention_positions: Tensor  # [N, K] token position of the first mention; -1 after the end
    state: Tensor  # [N, K] -1 after the end
    state_known: Tensor  # [N]
    category: Tensor  # [N] -1 where not known
    category_known: Tensor  # [N]
    keywords: Tensor  # [N, K] -1 after the end
    keywords_known: Tensor  # [N]

    def to(self, device: torch.device | str) -> TurnTargets:
        return TurnTargets(**{name: tensor.to(device) for name, tensor in vars(self).items()})

    def rows(self, start: int, stop: int) -> TurnTargets:
        """The rows from `start` up to `stop` only."""
        return TurnTargets(**{name: tensor[start:stop] for name, tensor in vars(self).items()})


@dataclass(frozen=True)
class TurnLayout:
    """Which row is which turn of which session."""

    session: Tensor  # [N] index of the session in the batch
    turn: Tensor  # [N] from 0
    offsets: tuple[int, ...]  # rows of turn t: offsets[t]:offsets[t + 1]

    @property
    def num_sessions(self) -> int:
        return self.offsets[1] if len(self.offsets) > 1 else 0

    @property
    def turn_sizes(self) -> list[int]:
        """How many sessions are still active in each turn; they are a prefix of those before."""
        return [stop - start for start, stop in itertools.pairwise(self.offsets)]

    @property
    def row_before(self) -> Tensor:
        """The row of the same session's turn before [N]; of first turns, their own."""
        begin = torch.tensor((0, *self.offsets[:-1]), dtype=torch.long, device=self.turn.device)
        return begin[self.turn] + self.session

    def first_turns(self, count: int) -> TurnLayout:
        """The layout of the first turns of the first `count` sessions alone."""
        return TurnLayout(self.session[:count], self.turn[:count], (0, count))


@dataclass(frozen=True)
class SessionBatch:
    """Sessions, the one with most turns first, so that the sessions still active in turn t are a prefix."""

    inputs: TurnInputs
    targets: TurnTargets
    session: Tensor  # [N] index of the session in the batch
    turn: Tensor  # [N] from 0
    turn_offsets: tuple[int, ...]  # rows of turn t: turn_offsets[t]:turn_offsets[t + 1]
    session_ids: tuple[str, ...]

    @property
    def layout(self) -> TurnLayout:
        return TurnLayout(self.session, self.turn, self.turn_offsets)

    def to(self, device: torch.device | str) -> SessionBatch:
        return SessionBatch(
            inputs=self.inputs.to(device),
            targets=self.targets.to(device),
            session=self.session.to(device),
            turn=self.turn.to(device),
            turn_offsets=self.turn_offsets,
            session_ids=self.session_ids,
        )


def collate(
    split: Split,
    sessions: Sequence[int] | NDArray[np.int64],
    masks: LabelMasks | None = None,
    limits: Limits | None = None,
) -> SessionBatch:
    """The batch of these sessions of a split; without masks every label there is counts as known."""
    limits = limits or Limits()
    turns_per_session = split.turns_per_session
    chosen = np.asarray(sessions, dtype=np.int64)
    order = chosen[np.argsort(-turns_per_session[chosen], kind="stable")]
    lengths = turns_per_session[order]
    active = (lengths[None, :] > np.arange(lengths.max(initial=0))[:, None]).sum(axis=1)  # sessions in each turn
    turn = np.repeat(np.arange(len(active)), active)
    session = np.arange(len(turn)) - offsets_of(active)[:-1][turn]
    turns = split.session_offsets[order][session] + turn  # [N] turns of the split
    return SessionBatch(
        inputs=_inputs(split, turns, turn > 0, limits),
        targets=_targets(split, turns, masks or every_label(split), limits),
        session=torch.from_numpy(session),
        turn=torch.from_numpy(turn),
        turn_offsets=tuple(offsets_of(active).tolist()),
        session_ids=tuple(split.session_ids[i] for i in order.tolist()),
    )


@dataclass(frozen=True)
class _Context:
    """Previous response, separator, patient utterance, as one padded sequence per row."""

    values: NDArray[np.int64]  # [N, T]
    lengths: NDArray[np.int64]  # [N]
    dropped: NDArray[np.int64]  # [N] what was cut off at the left
    separator: NDArray[np.int64]  # [N] position of the separator before the cut


def _join_context(
    values: Array, offsets: Array, turns: Array, has_previous: Array, separator: int, padding: int, limit: int
) -> _Context:
    start = offsets[2 * turns - has_previous]  # the previous response stands right before the patient's utterance
    middle, end = offsets[2 * turns], offsets[2 * turns + 1]
    full = end - start + 1
    dropped = np.maximum(full - limit, 0)
    lengths = full - dropped
    column = np.arange(int(lengths.max(initial=0)))[None, :] + dropped[:, None]  # [N, T] in the uncut sequence
    before = (middle - start)[:, None]
    index = np.clip(start[:, None] + column - (column > before), 0, max(len(values) - 1, 0))
    joined = np.where(column == before, separator, values[index] if len(values) else padding)
    joined = np.where(column < full[:, None], joined, padding)
    return _Context(joined.astype(np.int64), lengths, dropped, middle - start)


def _inputs(split: Split, turns: Array, has_previous: Array, limits: Limits) -> TurnInputs:
    texts = split.texts
    previous = has_previous.astype(np.int64)
    context = _join_context(texts.tokens, texts.utterance_offsets, turns, previous, SEP, PAD, limits.context)
    characters = _join_context(
        texts.characters, texts.character_offsets, turns, previous, CHARACTER_SEP, CHARACTER_PAD, limits.characters
    )
    offsets = texts.mention_offsets
    places = places_between(offsets[2 * turns - previous], offsets[2 * turns + 1])
    by_patient = places.index >= offsets[2 * turns][places.row]
    position = texts.mention_positions[places.index] + by_patient * (context.separator[places.row] + 1)
    position = position - context.dropped[places.row]
    kept = position >= 0
    row, num_rows = places.row[kept], len(turns)
    return TurnInputs(
        context=torch.from_numpy(context.values),
        context_lengths=torch.from_numpy(context.lengths),
        mention_entities=_padded(texts.mention_entities[places.index[kept]], row, num_rows),
        mention_positions=_padded(position[kept], row, num_rows),
        patient_mentions=torch.from_numpy(pad_rows(by_patient[kept], row, num_rows, 0) > 0),
        characters=torch.from_numpy(characters.values),
    )


def _targets(split: Split, turns: Array, masks: LabelMasks, limits: Limits) -> TurnTargets:
    labels = split.labels
    response, lengths = _responses(split, turns, limits.response)
    mentions, positions = _response_mentions(split, turns, lengths)
    state_known = labels.state_known[turns] & masks.state[turns]
    category_known = (labels.category[turns] >= 0) & masks.category[turns]
    keywords_known = labels.keywords_known[turns] & masks.keywords[turns]
    category = np.where(category_known, labels.category[turns], NO_ENTITY).astype(np.int64)
    return TurnTargets(
        response=torch.from_numpy(response),
        response_lengths=torch.from_numpy(lengths),
        response_mentions=mentions,
        response_mention_positions=positions,
        state=_known_entities(labels.state_entities, labels.state_offsets, turns, state_known),
        state_known=torch.from_numpy(state_known),
        category=torch.from_numpy(category),
        category_known=torch.from_numpy(category_known),
        keywords=_known_entities(labels.keyword_entities, labels.keyword_offsets, turns, keywords_known),
        keywords_known=torch.from_numpy(keywords_known),
    )


def _responses(split: Split, turns: Array, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Padded responses [N, R] and their lengths [N], the end token included."""
    offsets = split.texts.utterance_offsets
    start, end = offsets[2 * turns + 1], offsets[2 * turns + 2]
    words = np.minimum(end - start, limit - 1)
    places = places_between(start, start + words)
    lengths = np.where(words > 0, words + 1, 0)
    response = np.full((len(turns), int(lengths.max(initial=0))), PAD, dtype=np.int64)
    response[places.row, places.rank] = split.texts.tokens[places.index]
    recorded = np.flatnonzero(words)
    response[recorded, words[recorded]] = EOS
    return response, lengths


def _response_mentions(split: Split, turns: Array, lengths: Array) -> tuple[Tensor, Tensor]:
    texts = split.texts
    places = places_between(texts.mention_offsets[2 * turns + 1], texts.mention_offsets[2 * turns + 2])
    entities, positions = texts.mention_entities[places.index], texts.mention_positions[places.index]
    kept = np.flatnonzero(positions < lengths[places.row] - 1)
    key = places.row[kept] * (int(entities.max(initial=0)) + 1) + entities[kept]
    first = kept[np.sort(np.unique(key, return_index=True)[1])]
    row, num_rows = places.row[first], len(turns)
    return _padded(entities[first], row, num_rows), _padded(positions[first], row, num_rows)


def _known_entities(entities: Array, offsets: Array, turns: Array, known: Array) -> Tensor:
    start = offsets[turns]
    places: Places = places_between(start, np.where(known, offsets[turns + 1], start))
    return _padded(entities[places.index], places.row, len(turns))


def _padded(values: Array, row: Array, num_rows: int) -> Tensor:
    return torch.from_numpy(pad_rows(values, row, num_rows, NO_ENTITY))


def bucketed_batches(
    split: Split,
    batch_size: int,
    *,
    seed: int,
    epoch: int = 0,
    max_rows: int | None = None,
    pool: int = 50,
    among: NDArray[np.int64] | None = None,
) -> list[NDArray[np.int64]]:
    """Every session once, in batches of sessions of similar length; a run resumes from an index into this list.

    The shuffled sessions are sorted by turns and tokens within pools of `pool` batches, cut into batches (of at most
    `max_rows` turns, unless one session alone has more) and the batches shuffled; seed and epoch decide all of it.
    With `among` only these sessions are in it, again and again, in as many batches as all sessions would make.
    """
    random = np.random.default_rng([seed, epoch])
    everybody = np.arange(split.num_sessions)
    if among is None or not len(among):
        return _shuffled(split, everybody if among is None else among, batch_size, random, max_rows, pool)
    count = len(_shuffled(split, everybody, batch_size, random, max_rows, pool))
    batches: list[NDArray[np.int64]] = []
    while len(batches) < count:
        batches += _shuffled(split, among, batch_size, random, max_rows, pool)
    return batches[:count]


def _shuffled(
    split: Split,
    sessions: NDArray[np.int64],
    batch_size: int,
    random: np.random.Generator,
    max_rows: int | None,
    pool: int,
) -> list[NDArray[np.int64]]:
    """Each of the sessions once."""
    turns, tokens = split.turns_per_session, split.tokens_per_session
    shuffled = random.permutation(sessions)
    batches: list[NDArray[np.int64]] = []
    for start in range(0, len(shuffled), batch_size * pool):
        members = shuffled[start : start + batch_size * pool]
        members = members[np.lexsort((tokens[members], turns[members]))]
        batches += _cut(members, turns, batch_size, max_rows)
    return [batches[i] for i in random.permutation(len(batches))]


def sequential_batches(split: Split, batch_size: int, max_rows: int | None = None) -> list[NDArray[np.int64]]:
    """Every session once, longest first, so that the first batch shows whether memory suffices: for evaluation."""
    order = np.lexsort((split.tokens_per_session, split.turns_per_session))[::-1]
    return _cut(order, split.turns_per_session, batch_size, max_rows)


def _cut(
    sessions: NDArray[np.int64], turns: NDArray[np.int64], batch_size: int, max_rows: int | None
) -> list[NDArray[np.int64]]:
    batches: list[NDArray[np.int64]] = []
    start, rows = 0, 0
    for i, num_turns in enumerate(turns[sessions].tolist()):
        if i > start and (i - start == batch_size or (max_rows is not None and rows + num_turns > max_rows)):
            batches.append(sessions[start:i])
            start, rows = i, 0
        rows += num_turns
    return [*batches, sessions[start:]] if len(sessions) else batches
