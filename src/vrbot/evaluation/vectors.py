"""Word vectors without a download: co-occurrence in the training corpus, weighted and reduced.

Positive pointwise mutual information of words within a window, then a truncated singular value decomposition (Levy,
Goldberg and Dagan 2015). Nothing is random: the same texts give the same vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from vrbot.evaluation.pooling import Floats

CONTEXT_SMOOTHING = 0.75
"""Counts of context words are raised to this power, which takes weight from rare ones."""

_LARGEST_DENSE = 400
"""Up to so many words the whole decomposition is computed; the iterative one needs more words than dimensions."""

_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A vector for each known word, [V, D] float32, and a sentence on where they come from."""

    index: Mapping[str, int]
    matrix: NDArray[np.float32]
    source: str

    def find(self, word: str) -> int | None:
        """The row of a word, as written or else in lower case; None if it has none."""
        row = self.index.get(word)
        return self.index.get(word.casefold()) if row is None else row


def train_word_vectors(
    texts: Iterable[Sequence[str]],
    dimensions: int = 100,
    window: int = 5,
    minimum_count: int = 2,
    largest_vocabulary: int = 30_000,
) -> WordVectors:
    """Vectors of the words of segmented texts; an entity is a word if the segmenter keeps it whole, as ours do."""
    sentences = [tuple(text) for text in texts]
    counts = Counter(word for sentence in sentences for word in sentence)
    frequent = sorted(
        (word for word in counts if counts[word] >= minimum_count), key=lambda word: (-counts[word], word)
    )
    index = {word: number for number, word in enumerate(frequent[:largest_vocabulary])}
    weights = positive_mutual_information(cooccurrences(sentences, index, window))
    matrix = _reduce(weights, dimensions)
    source = (
        f"trained on {len(sentences)} texts of the corpus: PPMI, window {window}, SVD to {matrix.shape[1]} dimensions"
    )
    return WordVectors(index, matrix.astype(np.float32), source)


def cooccurrences(sentences: Sequence[Sequence[str]], index: Mapping[str, int], window: int) -> sparse.csr_array[Any]:
    """How often two words stand at most `window` places apart in one text, [V, V], symmetric.

    Words without a number keep their place in the text and count for nothing.
    """
    numbers = np.array([index.get(word, _UNKNOWN) for sentence in sentences for word in sentence], dtype=np.int64)
    owners = np.repeat(np.arange(len(sentences)), [len(sentence) for sentence in sentences])
    total = sparse.csr_array((len(index), len(index)), dtype=np.float64)
    for distance in range(1, window + 1):
        left, right = numbers[:-distance], numbers[distance:]
        together = (owners[:-distance] == owners[distance:]) & (left != _UNKNOWN) & (right != _UNKNOWN)
        places = (left[together], right[together])
        total = total + sparse.csr_array((np.ones(len(places[0])), places), shape=total.shape)
    return sparse.csr_array(total + total.T)


def positive_mutual_information(counts: sparse.csr_array[Any]) -> sparse.csr_array[Any]:
    """max(0, log p(i, j) / (p(i) p(j))), with the counts of j smoothed."""
    pairs = counts.tocoo()
    word_counts = np.asarray(counts.sum(axis=1), dtype=np.float64).reshape(-1)
    context_counts = word_counts**CONTEXT_SMOOTHING
    context_shares = context_counts / max(context_counts.sum(), 1.0)
    information = np.log(pairs.data / (word_counts[pairs.row] * context_shares[pairs.col]))
    positive = information > 0
    places = (pairs.row[positive], pairs.col[positive])
    return sparse.csr_array((information[positive], places), shape=counts.shape)


def _reduce(weights: sparse.csr_array[Any], dimensions: int) -> Floats:
    """U S^(1/2) of the truncated decomposition, [V, at most D]; the largest number of each column is positive."""
    size = weights.shape[0]
    if weights.nnz == 0:
        return np.zeros((size, min(dimensions, size)))
    if size <= max(_LARGEST_DENSE, dimensions + 1):
        left, strengths, _ = np.linalg.svd(weights.toarray())
    else:
        start = np.random.default_rng(0).standard_normal(size)
        left, strengths, _ = svds(weights, k=dimensions, v0=start)
    order = np.argsort(-strengths, kind="stable")[:dimensions]
    vectors: Floats = left[:, order] * np.sqrt(strengths[order])
    extremes = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(extremes < 0, -1.0, 1.0)
