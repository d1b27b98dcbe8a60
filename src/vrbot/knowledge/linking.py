"""Entity mentions in text: leftmost-longest, in any case, never overlapping, Latin words only whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

_WORD_CHARACTER = r"[^\W\u2e80-\U0010ffff]"
"""Letters and digits of scripts that write words apart; from U+2E80 on (Chinese, Japanese, Korean) they do not."""

_WORD = re.compile(f"({_WORD_CHARACTER}+)")
_INSIDE_WORD = re.compile(f"{_WORD_CHARACTER}{{2}}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")

_EDGE = "\ue000"
"""A private character that marks where a Latin word begins and ends."""


class Mention(NamedTuple):
    """`text[start:end]`, as written, and the entities it may mean (a named tuple: there are millions of them)."""

    start: int
    end: int
    surface: str
    entities: tuple[int, ...]


class Linker:
    """Finds the surfaces of entities in text, in one pass however many surfaces there are."""

    def __init__(self, surfaces: Mapping[str, tuple[int, ...]]) -> None:
        meanings: dict[str, tuple[int, ...]] = {}
        for surface, entities in surfaces.items():
            pattern = _without_surrogates(fold(surface))
            meanings[pattern] = tuple(dict.fromkeys(meanings.get(pattern, ()) + tuple(entities)))
        meanings.pop("", None)
        self._patterns = list(meanings)
        self._entities = list(meanings.values())
        self._has_words = [_WORD.search(pattern) is not None for pattern in self._patterns]
        self._automaton = _leftmost_longest(self._patterns)

    def find(self, text: str) -> list[Mention]:
        """The mentions in order; among those that begin first the longest wins, and the search goes on behind it."""
        folded = fold(text)
        try:
            matches = self._automaton.find_matches_as_indexes(folded)
        except UnicodeEncodeError:
            folded = _without_surrogates(folded)
            matches = self._automaton.find_matches_as_indexes(folded)
        for pattern, start, end in matches:
            if self._has_words[pattern] and _cuts_a_word(folded, start, end):
                matches = self._matches_of_whole_words(folded)
                break
        entities = self._entities
        return [Mention(start, end, text[start:end], entities[pattern]) for pattern, start, end in matches]

    def _matches_of_whole_words(self, folded: str) -> list[tuple[int, int, int]]:
        """The same search with an edge around every Latin word, so that what cuts a word cannot match at all."""
        marked = _with_word_edges(folded)
        matches = []
        read, edges_before = 0, 0
        for pattern, start, end in self._word_automaton.find_matches_as_indexes(marked):
            edges_before += marked.count(_EDGE, read, start)
            edges_inside = marked.count(_EDGE, start, end)
            matches.append((pattern, start - edges_before, end - edges_before - edges_inside))
            edges_before += edges_inside
            read = end
        return matches

    @cached_property
    def _word_automaton(self) -> AhoCorasick:
        return _leftmost_longest(_with_word_edges(pattern) for pattern in self._patterns)


def fold(text: str) -> str:
    """The text in lower case, character for character, so that positions stay what they are.

    Two capitals need care: İ would become two characters, and the lower Σ depends on what follows it.
    """
    return text.replace("İ", "i").replace("Σ", "σ").lower()


def _leftmost_longest(patterns: Iterable[str]) -> AhoCorasick:
    return AhoCorasick(patterns, matchkind=MatchKind.LeftmostLongest, implementation=Implementation.ContiguousNFA)


def _cuts_a_word(folded: str, start: int, end: int) -> bool:
    """Whether a Latin word goes on across the start or the end ("ct" in "active"; not in "ct检查")."""
    begins_inside = start > 0 and _INSIDE_WORD.match(folded, start - 1) is not None
    return begins_inside or _INSIDE_WORD.match(folded, end - 1) is not None


def _with_word_edges(folded: str) -> str:
    return _EDGE.join(_WORD.split(folded.replace(_EDGE, " ")))


def _without_surrogates(text: str) -> str:
    """Halves of broken characters cannot be searched for; each becomes one replacement character."""
    return _SURROGATE.sub("\ufffd", text)
