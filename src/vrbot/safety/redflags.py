"""Red flags: combinations of findings that must not wait, in Chinese and English, found without any model.

The tables beside this module hold the concepts (how a finding is worded), the rules (which findings together) and the
categories (how urgent, what to do, where the fact comes from). A clinician must review them before use: `NOTICE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from re import Pattern
from typing import Literal

from vrbot.safety.context import Context
from vrbot.safety.patterns import compiled, languages_in, readable
from vrbot.safety.tables import NOTICE, items, rows_of

__all__ = ["NOTICE", "Evidence", "RedFlag", "categories", "scan"]

Severity = Literal["emergency", "urgent"]
REACH = 120
"""Findings further apart than this many Chinese characters are not one picture, unless a rule says otherwise."""

ENGLISH_LENGTH = 3
"""An English text is about this many times as long as the Chinese one."""

PIECE, OVERLAP = 4000, 400
"""A long text is read in pieces, so that the time grows with its length only; what overlaps is read twice."""

_Spans = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True)
class Evidence:
    """A finding at `text[start:end]`."""

    concept: str
    start: int
    end: int


@dataclass(frozen=True)
class Category:
    """What a red flag means and what to do about it; `reference` names the source of the fact."""

    id: str
    severity: Severity
    name: Mapping[str, str]
    advice: Mapping[str, str]
    reference: str


@dataclass(frozen=True)
class RedFlag:
    """A category whose rule `rule` was met, and by which words."""

    category: str
    severity: Severity
    evidence: tuple[Evidence, ...]
    advice_zh: str
    advice_en: str
    rule: str
    name_zh: str
    name_en: str
    reference: str


@dataclass(frozen=True)
class _Rule:
    id: str
    category: str
    needs: tuple[tuple[str, ...], ...]
    unless: tuple[str, ...]
    within: int  # Chinese characters between the first and the last finding


def scan(text: str, language: str | None = None) -> tuple[RedFlag, ...]:
    """The red flags a patient's words raise, the most urgent first, one for each category.

    Without a language both tables are read. Any text is accepted; nothing found does not mean that nothing is wrong.
    """
    flags: dict[str, RedFlag] = {}
    for offset in range(0, max(1, len(text) - OVERLAP), PIECE - OVERLAP):
        for flag in _flags_of(readable(text[offset : offset + PIECE]), offset, language):
            flags.setdefault(flag.category, flag)
    return tuple(sorted(flags.values(), key=lambda flag: (flag.severity != "emergency", flag.evidence[0].start)))


def _flags_of(folded: str, offset: int, language: str | None) -> Iterator[RedFlag]:
    languages = languages_in(folded, language)
    spans = _found_concepts(folded, languages)
    candidates = [rule for rule in _rules() if all(any(name in spans for name in group) for group in rule.needs)]
    if not candidates:
        return
    asserted = _Asserted(folded, languages, spans)
    stretch = ENGLISH_LENGTH if "en" in languages else 1
    for rule in candidates:
        if not any(asserted.of(name) for name in rule.unless):
            evidence = _closest(rule, asserted, rule.within * stretch)
            if evidence:
                yield _flag(rule, evidence, offset)


@cache
def categories() -> Mapping[str, Category]:
    """Every category the rules know, by id."""
    return {
        row["category"]: Category(
            id=row["category"],
            severity="emergency" if row["severity"] == "emergency" else "urgent",
            name={"zh": row["zh"], "en": row["en"]},
            advice={"zh": row["advice_zh"], "en": row["advice_en"]},
            reference=row["reference"],
        )
        for row in rows_of("redflag_categories")
    }


class _Asserted:
    """The places of each concept that the text says are there; looked at only when a rule asks."""

    def __init__(self, folded: str, languages: Sequence[str], spans: _Spans) -> None:
        self._spans = spans
        self._context = Context(folded, languages, (span for found in spans.values() for span in found))
        self._known: _Spans = {}

    def of(self, concept: str) -> list[tuple[int, int]]:
        if concept not in self._known:
            found = self._spans.get(concept, [])
            self._known[concept] = [span for span in found if self._context.status(*span) == "asserted"]
        return self._known[concept]


@cache
def _concepts() -> Mapping[str, tuple[tuple[str, Pattern[str]], ...]]:
    """For each language the concepts and their expressions."""
    return {
        language: tuple(
            (row["concept"], pattern)
            for row in rows_of("redflag_concepts")
            if (pattern := compiled(items(row[language]), language)) is not None
        )
        for language in ("zh", "en")
    }


@cache
def _rules() -> tuple[_Rule, ...]:
    return tuple(
        _Rule(
            id=row["rule"],
            category=row["category"],
            needs=tuple(tuple(group.strip().split("|")) for group in row["needs"].split("+")),
            unless=tuple(name for name in row["unless"].split("|") if name),
            within=int(row["within"] or REACH),
        )
        for row in rows_of("redflag_rules")
    )


def _found_concepts(folded: str, languages: Sequence[str]) -> _Spans:
    found: _Spans = {}
    for language in languages:
        for concept, pattern in _concepts()[language]:
            spans = [hit.span() for hit in pattern.finditer(folded)]
            if spans:
                found.setdefault(concept, []).extend(spans)
    return found


def _closest(rule: _Rule, asserted: _Asserted, reach: int) -> tuple[Evidence, ...]:
    """One finding for each need, the others as near as can be to the first; nothing if they are too far apart."""
    groups = [[Evidence(name, *span) for name in group for span in asserted.of(name)] for group in rule.needs]
    if not all(groups):
        return ()
    for first in groups[0]:
        chosen = [first, *(_nearest(group, first) for group in groups[1:])]
        if max(one.end for one in chosen) - min(one.start for one in chosen) <= reach:
            return tuple(sorted(dict.fromkeys(chosen), key=lambda one: (one.start, one.end)))
    return ()


def _nearest(group: Sequence[Evidence], first: Evidence) -> Evidence:
    return min(group, key=lambda one: abs(one.start - first.start))


def _flag(rule: _Rule, evidence: tuple[Evidence, ...], offset: int) -> RedFlag:
    category = categories()[rule.category]
    return RedFlag(
        category=category.id,
        severity=category.severity,
        evidence=tuple(Evidence(one.concept, one.start + offset, one.end + offset) for one in evidence),
        advice_zh=category.advice["zh"],
        advice_en=category.advice["en"],
        rule=rule.id,
        name_zh=category.name["zh"],
        name_en=category.name["en"],
        reference=category.reference,
    )
