"""Entity mentions in text: leftmost-longest, in any case, never overlapping, Latin words only whole."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
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


_Match = tuple[int, int, int]
"""A pattern's number, start and end."""


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
        self._within_lines = not any("\n" in pattern for pattern in self._patterns)
        self._automaton = _leftmost_longest(self._patterns)

    def find(self, text: str) -> list[Mention]:
        """The mentions in order; among those that begin first the longest wins, and the search goes on behind it."""
        folded = fold(text)
        try:
            matches = self._automaton.find_matches_as_indexes(folded)
        except UnicodeEncodeError:
            folded = _without_surrogates(folded)
            matches = self._automaton.find_matches_as_indexes(folded)
        cuts = [
            start for pattern, start, end in matches if self._has_words[pattern] and _cuts_a_word(folded, start, end)
        ]
        if cuts:
            matches = self._searched_again(folded, matches, cuts)
        entities, new = self._entities, tuple.__new__  # half the time of calling Mention
        return [new(Mention, (start, end, text[start:end], entities[pattern])) for pattern, start, end in matches]

    def _searched_again(self, folded: str, matches: list[_Match], cuts: list[int]) -> list[_Match]:
        """The matches with those lines searched again in which a word was cut; no match goes beyond its line."""
        lines = sorted({_line_around(folded, cut) for cut in cuts}) if self._within_lines else [(0, len(folded))]
        starts = [start for start, _ in lines]
        kept = [
            match
            for match in matches
            if match[1] >= lines[bisect_right(starts, match[1]) - 1][1] or match[1] < starts[0]
        ]
        found = (match for start, end in lines for match in self._matches_of_whole_words(folded[start:end], start))
        return sorted((*kept, *found), key=lambda match: match[1])

    def _matches_of_whole_words(self, folded: str, offset: int) -> Iterator[_Match]:
        """The same search with an edge around every Latin word, so that what cuts a word cannot match at all."""
        marked = _with_word_edges(folded)
        read, edges_before = 0, 0
        for pattern, start, end in self._word_automaton.find_matches_as_indexes(marked):
            edges_before += marked.count(_EDGE, read, start)
            edges_inside = marked.count(_EDGE, start, end)
            yield pattern, offset + start - edges_before, offset + end - edges_before - edges_inside
            edges_before += edges_inside
            read = end

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


def _line_around(text: str, place: int) -> tuple[int, int]:
    end = text.find("\n", place)
    return text.rfind("\n", 0, place) + 1, len(text) if end < 0 else end


def _with_word_edges(folded: str) -> str:
    return _EDGE.join(_WORD.split(folded.replace(_EDGE, " ")))


def _without_surrogates(text: str) -> str:
    """Halves of broken characters cannot be searched for; each becomes one replacement character."""
    return _SURROGATE.sub("\ufffd", text)
