"""What was said before each reply, as sparse counts; later texts and the reply itself are never among them.

Letters: T turns, U texts (two for each turn), F features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vrbot.dialogue.ragged import offsets_of, places_between
from vrbot.dialogue.splits import Split
from vrbot.nets.regressions import Counts, rarity_of, tf_idf


def said_before(split: Split, last: int | None = None) -> Counts:
    """[T, U]: 1 where a text was said in the turn's dialogue before its reply; with `last` only the latest so many."""
    turns = np.arange(split.num_turns)
    first = np.repeat(split.session_offsets[:-1], split.turns_per_session)
    stop = 2 * turns + 1
    start = 2 * first if last is None else np.maximum(2 * first, stop - last)
    places = places_between(start, stop)
    ones = np.ones(len(places.index), dtype=np.float32)
    return sparse.csr_array(
        (ones, places.index, offsets_of(stop - start)), shape=(split.num_turns, 2 * split.num_turns)
    )


def text_counts(values: NDArray[np.int64], text: NDArray[np.int64], num_texts: int, num_features: int) -> Counts:
    """[U, F]: how often each text has each feature."""
    ones = np.ones(len(values), dtype=np.float32)
    return sparse.csr_array((ones, (text, values)), shape=(num_texts, num_features))


def text_of_each(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the text that each token (or character) belongs to."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def word_counts(split: Split, num_words: int, last: int | None = None) -> Counts:
    """[T, V]: how often each word was said before each reply."""
    texts = split.texts
    owner = text_of_each(texts.utterance_offsets)
    return said_before(split, last) @ text_counts(texts.tokens.astype(np.int64), owner, 2 * split.num_turns, num_words)


def character_ngrams(split: Split, longest: int, num_characters: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every run of 1 to `longest` characters inside a text as one number, and its text."""
    texts = split.texts
    characters, owner = texts.characters.astype(np.int64), text_of_each(texts.character_offsets)
    codes, owners, run = [characters + 1], [owner], characters + 1
    for length in range(2, longest + 1):
        run = run[:-1] * (num_characters + 1) + characters[length - 1 :] + 1
        whole = owner[length - 1 :] == owner[: len(run)]
        codes.append(run[whole])
        owners.append(owner[: len(run)][whole])
    return np.concatenate(codes), np.concatenate(owners)


class CharacterFeatures:
    """TF-IDF of character n-grams of the whole history, rows of length 1; learnt once, then applied to any split."""

    def __init__(self, split: Split, num_characters: int, *, longest: int = 3, minimum_count: int = 3) -> None:
        self.num_characters, self.longest = num_characters, longest
        codes, owner = character_ngrams(split, longest, num_characters)
        self.known, index = np.unique(codes, return_inverse=True)
        counts = said_before(split) @ text_counts(index, owner, 2 * split.num_turns, len(self.known))
        kept = np.bincount(counts.indices, minlength=len(self.known)) >= minimum_count
        self.known, self.rarity = self.known[kept], rarity_of(counts)[kept]

    def of(self, split: Split) -> Counts:
        """[T, F] for the turns of a split."""
        codes, owner = character_ngrams(split, self.longest, self.num_characters)
        places = np.searchsorted(self.known, codes)
        found = places < len(self.known)
        found[found] = self.known[places[found]] == codes[found]
        counts = text_counts(places[found], owner[found], 2 * split.num_turns, len(self.known))
        return tf_idf(sparse.csr_array(said_before(split) @ counts), self.rarity)
