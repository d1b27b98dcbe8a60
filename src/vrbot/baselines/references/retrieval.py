"""Retrieval: the reply that followed the most similar history of the training split, by BM25.

Letters: T turns, D training turns with a reply, V words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vrbot.baselines.references.answers import Experience, ReferenceAnswer, reply_entities
from vrbot.baselines.references.histories import word_counts
from vrbot.dialogue.splits import Split
from vrbot.dialogue.vocabulary import UNK
from vrbot.nets.regressions import Counts

SATURATION, LENGTH_WEIGHT = 1.2, 0.75
LATEST_TEXTS = 5
TURNS_AT_ONCE = 256


class BestMatch25:
    """Okapi BM25 over documents given as word counts [D, V]."""

    def __init__(self, counts: Counts) -> None:
        documents = sparse.csr_array(counts)
        holding = np.bincount(documents.indices, minlength=documents.shape[1])
        rarity = np.log1p((documents.shape[0] - holding + 0.5) / (holding + 0.5))
        lengths = np.asarray(documents.sum(axis=1)).reshape(-1)
        norm = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * lengths / max(lengths.mean(), 1e-9))
        row = np.repeat(np.arange(documents.shape[0]), np.diff(documents.indptr))
        weights = documents.data * (SATURATION + 1) / (documents.data + norm[row]) * rarity[documents.indices]
        places = (documents.indices, row)
        self._words = sparse.csr_array((weights, places), shape=documents.shape[::-1])  # [V, D]

    def nearest(self, queries: Counts) -> NDArray[np.int64]:
        """The best document for each query [T, V]; of equals the first."""
        queries = sparse.csr_array(queries)
        found = [
            np.asarray((queries[start : start + TURNS_AT_ONCE] @ self._words).toarray()).argmax(axis=1)
            for start in range(0, queries.shape[0], TURNS_AT_ONCE)
        ]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Says what a physician of the training split said in the most similar situation."""

    index: BestMatch25
    answers: Sequence[ReferenceAnswer]
    num_words: int

    def answer(self, split: Split) -> list[ReferenceAnswer]:
        return [self.answers[found] for found in self.index.nearest(_latest_words(split, self.num_words)).tolist()]


def retrieval(experience: Experience) -> Retrieval:
    """Over every training turn with a reply; its action is what that reply names."""
    train, num_words = experience.train, len(experience.corpus.vocabulary)
    answered = np.flatnonzero([bool(text) for text in experience.replies])
    named = reply_entities(train)
    labels: list[int] = train.labels.category.tolist()
    categories = [None if label < 0 else label for label in labels]
    answers = [
        ReferenceAnswer(experience.replies[turn], None, categories[turn], named[turn]) for turn in answered.tolist()
    ]
    return Retrieval(BestMatch25(_latest_words(train, num_words)[answered]), answers, num_words)


def _latest_words(split: Split, num_words: int) -> Counts:
    """Counts of the latest words before each reply; unknown words tell nothing."""
    counts = sparse.csr_array(word_counts(split, num_words, LATEST_TEXTS))
    counts.data[counts.indices == UNK] = 0
    counts.eliminate_zeros()
    return counts
