"""What responses teach before training: which entities are named after which words.

Where a turn's keywords are labelled, they count; elsewhere what the response names.
Letters: T turns, F n-grams, E entities.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from vrbot.dialogue.batching import SessionBatch
from vrbot.model.habits import Habits, HabitTable, ngram_codes, part_of
from vrbot.nets.regressions import Counts, Floats, fit_regressions, rarity_of, tf_idf

PARTS = 4
"""Regressions are taught without one of so many parts of the dialogues."""

FEWEST_EXAMPLES = 10
"""An entity named in fewer turns has no regression."""

HISTORIES_PER_NGRAM = 700
"""An n-gram counts if at least one of so many histories has it (and at least two in all)."""

MOST_TURNS = 30_000
"""More are not looked at: what is usual shows in these."""


@dataclass(frozen=True, eq=False)
class _Lesson:
    """Turns, one dialogue after the other."""

    codes: NDArray[np.int64]  # of the n-grams of all turns
    ends: NDArray[np.int64]  # [T + 1] where those of each turn begin and end
    first: NDArray[np.int64]  # [T] the first turn of the dialogue
    part: NDArray[np.int64]  # [T]
    named: Floats  # [T, E]
    counted: NDArray[np.bool_]  # [T] whether something is known of what is named next


def teach_habits(habits: Habits, batches: Iterable[SessionBatch], *, labelled_only: bool = False) -> None:
    """Fits the regressions anew; with too little to learn from, habits say nothing. `labelled_only`: other turns than
    those with labelled keywords are heard and not learnt from."""
    habits.forget()
    lesson = _gather(batches, habits.num_entities, labelled_only)
    if lesson is None:
        return
    told = lesson.named[lesson.counted].sum(axis=0)
    entities = np.argsort(-told, kind="stable")[: len(habits.entities)]
    entities = np.sort(entities[told[entities] >= FEWEST_EXAMPLES])
    ngrams, said = _histories(lesson, len(habits.ngrams))
    if not len(entities) or not len(ngrams):
        return
    rarity = rarity_of(said)
    features, wanted = tf_idf(said, rarity), lesson.named[:, entities]

    def table(rows: NDArray[np.bool_]) -> HabitTable:
        fitted = fit_regressions(features[rows], wanted[rows])
        usual = (torch.from_numpy(wanted[rows].sum(axis=0)) + 0.5) / (int(rows.sum()) + 1)
        return HabitTable(fitted.weights, fitted.bias - usual.logit())

    without = [table(lesson.counted & (lesson.part != part)) for part in range(PARTS)]
    known = torch.from_numpy(ngrams), torch.from_numpy(rarity), torch.from_numpy(entities)
    habits.learn(*known, table(lesson.counted), without)


def _gather(batches: Iterable[SessionBatch], num_entities: int, labelled_only: bool) -> _Lesson | None:
    """The first turns there are, whole dialogues; None where there is nothing to learn from."""
    codes, counts, first, part, named, counted = [], [], [], [], [], []
    turns = 0
    for batch in batches:
        if turns >= MOST_TURNS:
            break
        order = np.lexsort((batch.turn.numpy(), batch.session.numpy()))
        heard = ngram_codes(batch.inputs.characters).numpy()[order]
        codes.append(heard[heard > 0])
        counts.append((heard > 0).sum(axis=1))
        first.append(turns + np.arange(len(order)) - batch.turn.numpy()[order])
        parts = part_of(batch.inputs.characters[: batch.layout.num_sessions], PARTS)
        part.append(parts[batch.session].numpy()[order])
        targets, labelled = batch.targets, batch.targets.keywords_known
        found = _indicators(targets.response_mentions.numpy(), num_entities)
        found[labelled.numpy()] = _indicators(targets.keywords[labelled].numpy(), num_entities)
        named.append(found[order])
        counted.append((labelled if labelled_only else labelled | (targets.response_lengths > 0)).numpy()[order])
        turns += len(order)
    if not turns or not np.concatenate(counted).any():
        return None
    ends = np.concatenate(([0], np.concatenate(counts).cumsum()))
    return _Lesson(
        np.concatenate(codes),
        ends,
        np.concatenate(first),
        np.concatenate(part),
        np.concatenate(named),
        np.concatenate(counted),
    )


def _indicators(entities: NDArray[np.int64], num_entities: int) -> Floats:
    """[N, K], -1 after the last -> [N, E]: 1 where an entity is among them."""
    found = np.zeros((len(entities), num_entities + 1), dtype=np.float32)
    found[np.arange(len(entities))[:, None], entities] = 1  # what is not there falls into the last column
    return found[:, :-1]


def _histories(lesson: _Lesson, most: int) -> tuple[NDArray[np.int64], Counts]:
    """The n-grams that enough histories have, `most` of them at most, and how often each was said so far [T, F]."""
    turns = np.arange(len(lesson.first))
    known, index = np.unique(lesson.codes, return_inverse=True)
    own = sparse.csr_array((np.ones(len(index), np.float32), index, lesson.ends), shape=(len(turns), len(known)))
    back = turns - lesson.first + 1
    earlier = np.repeat(turns, back) - (np.arange(back.sum()) - np.repeat(back.cumsum() - back, back))
    ends = np.concatenate(([0], back.cumsum()))
    so_far = sparse.csr_array((np.ones(len(earlier), np.float32), earlier, ends), shape=(len(turns), len(turns)))
    said = sparse.csr_array(so_far @ own)
    spread = np.bincount(said.indices, minlength=len(known))
    kept = np.argsort(-spread, kind="stable")[:most]
    kept = np.sort(kept[spread[kept] >= max(2, len(turns) // HISTORIES_PER_NGRAM)])
    return known[kept], sparse.csr_array(said[:, kept])
