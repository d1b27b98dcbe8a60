"""Precision, recall and F1 of the entities a reply names: pooled over turns, and as a mean over entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from vrbot.evaluation.pooling import RetrievalScores, dense_rows, macro_scores, retrieval_scores

AUTHORS_MINIMUM_GOLD_COUNT = 6
"""The paper's authors took the mean over entities with a gold count of more than 5."""


@dataclass(frozen=True)
class EntitySets:
    """Predicted and gold entities of one turn."""

    predicted: frozenset[int]
    gold: frozenset[int]

    def without(self, entity: int | None) -> EntitySets:
        """The same as if that entity did not exist."""
        return EntitySets(self.predicted - {entity}, self.gold - {entity})


NOT_COUNTED = EntitySets(frozenset(), frozenset())
"""Stands for a turn without labels or without a prediction: it adds nothing to any sum."""


def micro_entity_scores(turns: Sequence[EntitySets]) -> RetrievalScores:
    """mi-P, mi-R, mi-F1: hits, predictions and gold entities are added up over all turns first."""
    matched = [len(turn.predicted & turn.gold) for turn in turns]
    predicted = [len(turn.predicted) for turn in turns]
    return retrieval_scores(dense_rows([matched, predicted, [len(turn.gold) for turn in turns]]))


def macro_entity_scores(turns: Sequence[EntitySets], minimum_gold_count: int = 1) -> RetrievalScores:
    """ma-P, ma-R, ma-F1: each entity has its own scores over all turns; then their mean.

    The mean is over entities that occur in gold (at least `minimum_gold_count` times); an entity never predicted has
    precision 0. ma-F1 is the mean of the entities' F1, not the F1 of the two means.
    """
    entities = sorted(set[int]().union(*(turn.gold for turn in turns)))
    column_of = {entity: column for column, entity in enumerate(entities)}
    parts = [
        _indicator_rows([turn.predicted & turn.gold for turn in turns], column_of),
        _indicator_rows([turn.predicted for turn in turns], column_of),
        _indicator_rows([turn.gold for turn in turns], column_of),
    ]
    return macro_scores(sparse.csr_array(sparse.hstack(parts)), minimum_gold_count)


def most_frequent_entity(golds: Iterable[Iterable[int]]) -> int | None:
    """The entity that is gold in most turns (of equals the lowest id); None where there is none."""
    counts = Counter(entity for gold in golds for entity in set(gold))
    return min(counts, key=lambda entity: (-counts[entity], entity), default=None)


def _indicator_rows(sets: Sequence[frozenset[int]], column_of: dict[int, int]) -> sparse.csr_array[Any]:
    """[T, entities] with 1 where the turn's set has the entity; entities without a column are left out."""
    columns = [[column_of[entity] for entity in sorted(members) if entity in column_of] for members in sets]
    starts = np.cumsum([0, *map(len, columns)])
    places = np.array([column for row in columns for column in row], dtype=np.int64)
    return sparse.csr_array((np.ones(len(places)), places, starts), shape=(len(sets), len(column_of)))
