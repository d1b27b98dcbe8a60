"""The words and characters a corpus can be written in, as ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from vrbot.errors import UsageError

PAD, UNK, BOS, EOS, SEP = range(5)
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>", "<sep>")
JOINING = frozenset(["、", "，", ",", "和", "或", "及", "与", "加", "and", "or"])
"""What stands between the names of a list."""

CHARACTER_PAD, CHARACTER_UNK, CHARACTER_SEP = range(3)
NUM_CHARACTER_SPECIALS = 3


class Vocabulary:
    """Words by id: the specials, then words in which every entity name has its place.

    `entity_word` is int32 [E], the word id of each entity's canonical name; `word_entities` gives the entities a
    word stands for, where it is the surface form of any. Words match exactly, or else without regard to case.
    """

    def __init__(
        self,
        words: Sequence[str],
        entity_names: Sequence[str] = (),
        surfaces: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.words = tuple(words)
        if self.words[: len(SPECIALS)] != SPECIALS:
            raise UsageError(f"a vocabulary begins with {SPECIALS}, got {self.words[: len(SPECIALS)]}")
        ordinary = range(len(SPECIALS), len(self.words))
        self._exact = {self.words[i]: i for i in reversed(ordinary)}
        self._folded = {self.words[i].lower(): i for i in reversed(ordinary)}
        missing = [name for name in entity_names if name not in self._exact]
        if missing:
            raise UsageError(f"entity {missing[0]!r} is not a word of the vocabulary: every entity name must be one")
        self.entity_word: NDArray[np.int32] = np.array([self._exact[name] for name in entity_names], dtype=np.int32)
        self.word_entities = self._words_of(surfaces or {name: (i,) for i, name in enumerate(entity_names)})

    def __len__(self) -> int:
        return len(self.words)

    def _words_of(self, surfaces: Mapping[str, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        meanings: dict[int, dict[int, None]] = {}  # forms that differ in case only share a word, and their meanings
        for surface, entities in surfaces.items():
            word = self.find(surface)
            if word is not None:
                meanings.setdefault(word, {}).update(dict.fromkeys(entities))
        return {word: tuple(entities) for word, entities in meanings.items()}

    def find(self, word: str) -> int | None:
        """The id of a word, or None where it is not in the vocabulary."""
        found = self._exact.get(word)
        return self._folded.get(word.lower()) if found is None else found

    def id_of(self, word: str) -> int:
        """The id of a word, UNK where it is not in the vocabulary."""
        found = self.find(word)
        return UNK if found is None else found

    def spell_mention(self, surface: str, entities: Iterable[int]) -> tuple[int, ...]:
        """The word ids that write a mention: its surface form, or else the names of its entities; never UNK."""
        found = self.find(surface)
        return tuple(self.entity_word[list(entities)].tolist()) if found is None else (found,)

    def written(self, tokens: Iterable[int]) -> list[int]:
        """What a reply of these ids says: its words up to the end, without padding and other specials.

        Names that only say again, after a comma or an "and", which entity was named just before ("A、A") are left out.
        """
        kept: list[int] = []
        for token in takewhile(EOS.__ne__, tokens):
            if token < len(SPECIALS):
                continue
            meant = self.word_entities.get(token)
            joined = len(kept) > 1 and self.words[kept[-1]].lower() in JOINING
            if meant is not None and joined and self.word_entities.get(kept[-2]) == meant:
                kept.pop()
            else:
                kept.append(token)
        return kept


def build_vocabulary(
    counts: Mapping[str, int], entity_names: Sequence[str], size: int = 30_000, minimum_count: int = 2
) -> tuple[str, ...]:
    """The specials, every entity name, then the most frequent words (lower case) up to `size` words in all."""
    names = tuple(dict.fromkeys(entity_names))
    room = size - len(SPECIALS) - len(names)
    if room < 1:
        needed = len(SPECIALS) + len(names) + 1
        raise UsageError(
            f"a vocabulary of {size} words has no room for {len(names)} entity names: use at least {needed}"
        )
    folded: dict[str, int] = {}
    for word, count in counts.items():
        folded[word.lower()] = folded.get(word.lower(), 0) + count
    taken = set(names) | {name.lower() for name in names}
    frequent = [(-count, word) for word, count in folded.items() if count >= minimum_count and word not in taken]
    return (*SPECIALS, *names, *(word for _, word in sorted(frequent)[:room]))


def listed_vocabulary(words: Iterable[str], entity_names: Iterable[str]) -> tuple[str, ...]:
    """The specials, the words of a list in its order, then the entity names it lacks."""
    return (*SPECIALS, *dict.fromkeys((*words, *entity_names)))


class CharacterVocabulary:
    """Characters by id: padding, unknown, the separator between utterances, then characters in code order."""

    def __init__(self, characters: str) -> None:
        self.characters = characters
        codes = code_points(characters)
        if np.any(np.diff(codes.astype(np.int64)) <= 0):
            raise UsageError("the characters of a vocabulary must be in code order, each once")
        size = int(codes.max(initial=0)) + 2  # the last place stands for every code beyond
        self._ids = np.full(size, CHARACTER_UNK, dtype=np.int32)
        self._ids[codes] = np.arange(len(codes)) + NUM_CHARACTER_SPECIALS

    def __len__(self) -> int:
        return NUM_CHARACTER_SPECIALS + len(self.characters)

    def ids(self, codes: NDArray[np.uint32]) -> NDArray[np.int32]:
        """The ids of an array of code points, of the same shape."""
        return self._ids[np.minimum(codes, len(self._ids) - 1)]


def build_characters(codes: NDArray[np.uint32], minimum_count: int = 2) -> CharacterVocabulary:
    """The characters that occur often enough among the code points of the training text."""
    frequent = np.flatnonzero(np.bincount(codes) >= minimum_count)
    return CharacterVocabulary("".join(map(chr, frequent.tolist())))


def code_points(text: str) -> NDArray[np.uint32]:
    """The characters of a text as numbers; a lone surrogate, which is no character, becomes a question mark."""
    return np.frombuffer(text.encode("utf-32-le", errors="replace"), dtype="<u4").astype(np.uint32)
