"""Whether a finding in a text is said to be there: not denied, not another's, not imagined, not long past.

Cues open a scope: up to the end of the clause, of the sentence, or only a few words on. A cue inside a finding ("can't
breathe") is part of it and opens nothing; pseudo cues ("not only", "不是没有") open nothing either.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from re import Pattern
from typing import Literal, NamedTuple

from vrbot.safety.patterns import compiled
from vrbot.safety.tables import items, rows_of

Status = Literal["asserted", "negated", "history", "other_person", "hypothetical"]

_SENTENCE_END = re.compile(r"[。！？!?；;\n]|\.(?!\d)")
_CLAUSE_END = re.compile(r"[，,：:]")
_NEAR = {"zh": 0, "en": 5}
"""How far a weak negation reaches: characters in Chinese, words in English."""


class _Cue(NamedTuple):
    start: int
    end: int
    scope: str
    language: str


class _Finder(NamedTuple):
    kind: str
    language: str
    scope: str
    pattern: Pattern[str]


class Context:
    """The cues of one text, found once, and what they do to its findings."""

    def __init__(self, folded: str, languages: Sequence[str], findings: Iterable[tuple[int, int]] = ()) -> None:
        self._text = folded
        self._sentence_ends = [hit.start() for hit in _SENTENCE_END.finditer(folded)]
        self._findings = sorted(set(findings))
        found = _found_cues(folded, languages)
        masks = sorted((cue.start, cue.end) for cue in found.pop("mask", []))
        kept = {kind: [cue for cue in cues if not _overlaps(cue, masks)] for kind, cues in found.items()}
        for kind in ("negated", "negated_after"):
            kept[kind] = [cue for cue in kept.get(kind, []) if not _overlaps(cue, self._findings)]
        self._cues = kept
        turns = [cue.start for cue in found.get("stop", [])]
        clause_ends = [hit.start() for hit in _CLAUSE_END.finditer(folded)]
        self._clause_ends = sorted({*self._sentence_ends, *clause_ends, *turns})
        self._now = sorted(cue.start for cue in found.get("now", []))
        self._self = sorted(self._now + [cue.start for cue in found.get("self", [])])

    def status(self, start: int, end: int) -> Status:
        """What is said of the finding at `start:end`."""
        if self._is_negated(start, end):
            return "negated"
        if self._is_hypothetical(start):
            return "hypothetical"
        sentence = _before(self._sentence_ends, start)
        if self._opened("other_person", sentence, start, self._self):
            return "other_person"
        if self._opened("history", sentence, start, self._self) or self._is_over(start, end):
            return "history"
        return "asserted"

    def _is_negated(self, start: int, end: int) -> bool:
        clause = _before(self._clause_ends, start)
        for cue in self._within("negated", clause, start):
            between = self._text[cue.end : start]
            distance = len(between) if cue.language == "zh" else between.count(" ")
            if cue.scope == "clause" or distance <= _NEAR[cue.language]:
                return True
        return any(self._within("negated_after", end, _after(self._clause_ends, end, self._text)))

    def _is_hypothetical(self, start: int) -> bool:
        clause = _before(self._clause_ends, start)
        sentence = _before(self._sentence_ends, start)
        return any(
            cue.start >= (clause if cue.scope == "clause" else sentence) and not _any_between(self._now, cue.end, start)
            for cue in self._within("hypothetical", sentence, start)
        )

    def _is_over(self, start: int, end: int) -> bool:
        clause_end = _after(self._clause_ends, end, self._text)
        sentence_end = _after(self._sentence_ends, end, self._text)
        after = any(self._within("history_after", end, clause_end))
        return after or any(self._within("resolved_after", end, sentence_end))

    def _opened(self, kind: str, begin: int, start: int, resets: list[int]) -> bool:
        return any(not _any_between(resets, cue.end, start) for cue in self._within(kind, begin, start))

    def _within(self, kind: str, begin: int, end: int) -> list[_Cue]:
        return [cue for cue in self._cues.get(kind, ()) if begin <= cue.start and cue.end <= end]


@cache
def _finders() -> tuple[_Finder, ...]:
    found = []
    for row in rows_of("context_cues"):
        pattern = compiled(items(row["cues"]), row["language"])
        if pattern is not None:
            found.append(_Finder(row["kind"], row["language"], row["scope"], pattern))
    return tuple(found)


def _found_cues(folded: str, languages: Sequence[str]) -> dict[str, list[_Cue]]:
    found: dict[str, list[_Cue]] = {}
    for finder in _finders():
        if finder.language in languages:
            cues = (
                _Cue(hit.start(), hit.end(), finder.scope, finder.language) for hit in finder.pattern.finditer(folded)
            )
            found.setdefault(finder.kind, []).extend(cues)
    return found


def _overlaps(cue: _Cue, spans: list[tuple[int, int]]) -> bool:
    last = bisect_left(spans, (cue.end, -1))
    return any(end > cue.start for _, end in spans[max(0, last - 8) : last])


def _before(places: list[int], start: int) -> int:
    """Where the stretch begins that holds `start`."""
    position = bisect_right(places, start)
    return places[position - 1] if position else 0


def _after(places: list[int], end: int, text: str) -> int:
    """Where the stretch ends that holds the place before `end`."""
    position = bisect_left(places, end)
    return places[position] if position < len(places) else len(text)


def _any_between(places: list[int], begin: int, end: int) -> bool:
    position = bisect_left(places, begin)
    return position < len(places) and places[position] < end
