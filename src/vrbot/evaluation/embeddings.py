"""EA and EG: how near in meaning the entities of a reply are to those of the reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vrbot.evaluation.entities import EntitySets
from vrbot.evaluation.pooling import Floats, PooledScore, mean_score
from vrbot.evaluation.vectors import WordVectors

_PART = re.compile(r"[^\W\u2e80-\U0010ffff]+|[\u2e80-\U0010ffff]+")
"""A whole word of a script that writes words apart, or a run of characters of one that does not."""

_FIRST_UNSPACED = "\u2e80"

Origin = Literal["word", "pieces", "characters", "unknown"]


@dataclass(frozen=True, eq=False)
class EntityVectors:
    """A vector for each entity, [E, D] float64, zero where nothing is known; `origins` says where each comes from."""

    matrix: Floats
    origins: tuple[Origin, ...]
    source: str

    @property
    def num_by_origin(self) -> dict[str, int]:
        counts = Counter[str](self.origins)
        return {origin: counts[origin] for origin in ("word", "pieces", "characters", "unknown")}


@dataclass(frozen=True)
class EmbeddingScores:
    """EA and EG over the turns of a split."""

    average: PooledScore
    greedy: PooledScore


def entity_vectors(names: Sequence[str], words: WordVectors) -> EntityVectors:
    """The vector of each name: its own as a word, else the mean of known words inside it, else of its characters.

    Words inside a name are found from left to right, the longest first; of scripts that write words apart only whole
    words count, of the others at least two characters. A name of which nothing is known has the zero vector.
    """
    found = [_rows_of_name(name, words) for name in names]
    matrix = np.zeros((len(names), words.matrix.shape[1]))
    for entity, (_, rows) in enumerate(found):
        if rows:
            matrix[entity] = words.matrix[rows].mean(axis=0, dtype=np.float64)
    return EntityVectors(matrix, tuple(origin for origin, _ in found), words.source)


def wanted_words(names: Sequence[str]) -> frozenset[str]:
    """Every word that `entity_vectors` may ask for: all that need be read of a large file."""
    pieces = {
        name[start:end] for name in names for start in range(len(name)) for end in range(start + 1, len(name) + 1)
    }
    return frozenset(pieces | {piece.casefold() for piece in pieces})


def embedding_scores(
    turns: Sequence[EntitySets], vectors: EntityVectors, entityless_replies: Literal["zero", "skip"] = "zero"
) -> EmbeddingScores:
    """EA and EG, means over turns with gold entities; a reply without entities counts 0, or is skipped."""
    similarities = [_turn_similarities(turn, vectors, entityless_replies) for turn in turns]
    return EmbeddingScores(
        mean_score([None if pair is None else pair[0] for pair in similarities]),
        mean_score([None if pair is None else pair[1] for pair in similarities]),
    )


def average_similarity(vectors: EntityVectors, predicted: frozenset[int], gold: frozenset[int]) -> float:
    """Cosine of the mean vectors of two sets; 1 for equal sets, 0 where a mean vector is zero."""
    if predicted == gold:
        return 1.0
    means = np.stack([vectors.matrix[sorted(members)].mean(axis=0) for members in (predicted, gold)])
    one, other = _unit(means)
    return float(one @ other)


def greedy_similarity(vectors: EntityVectors, predicted: frozenset[int], gold: frozenset[int]) -> float:
    """Each entity with the most similar one of the other set; the mean for each set, then the mean of both.

    An entity's similarity to itself is 1 and, where either has no vector, 0 to any other.
    """
    rows, columns = np.array(sorted(predicted)), np.array(sorted(gold))
    cosines = _unit(vectors.matrix[rows]) @ _unit(vectors.matrix[columns]).T
    cosines[rows[:, None] == columns[None, :]] = 1.0
    return float(cosines.max(axis=1).mean() + cosines.max(axis=0).mean()) / 2


def _turn_similarities(
    turn: EntitySets, vectors: EntityVectors, entityless_replies: Literal["zero", "skip"]
) -> tuple[float, float] | None:
    if not turn.gold:
        return None
    if not turn.predicted:
        return (0.0, 0.0) if entityless_replies == "zero" else None
    return (
        average_similarity(vectors, turn.predicted, turn.gold),
        greedy_similarity(vectors, turn.predicted, turn.gold),
    )


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of length 1; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def _rows_of_name(name: str, words: WordVectors) -> tuple[Origin, list[int]]:
    own = words.find(name)
    if own is not None:
        return "word", [own]
    parts = _PART.findall(name)
    pieces = [row for part in parts for row in _rows_of_part(part, words)]
    if pieces:
        return "pieces", pieces
    unspaced = [character for part in parts if part[0] >= _FIRST_UNSPACED for character in part]
    characters = [row for row in map(words.find, unspaced) if row is not None]
    return ("characters", characters) if characters else ("unknown", [])


def _rows_of_part(part: str, words: WordVectors) -> list[int]:
    """Known words inside one part, leftmost and longest first; a part in Latin letters is known whole or not at all."""
    if part[0] < _FIRST_UNSPACED:
        row = words.find(part)
        return [] if row is None else [row]
    rows: list[int] = []
    start = 0
    while start < len(part):
        matches = ((end, words.find(part[start:end])) for end in range(len(part), start + 1, -1))
        end, row = next(((end, row) for end, row in matches if row is not None), (start + 1, None))
        rows += [] if row is None else [row]
        start = end
    return rows
