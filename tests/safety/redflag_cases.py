"""Sentences with and without red flags, put together from templates that the rules never read.

Of the entries of a kind every second one is held out: rules were first written while looking at the development half
(0) only. `later` sentences, and `later_negatives`, were written after the rules had been frozen, set by set;
docs/safety.md says how each set did when it was first looked at, which is the honest figure. Then its misses were read
and mended, and now all of them guard against falling back. The sets of `STRANGER` are of an author who never saw the
rules; the misses of the second of them nobody has read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
ABSENT = ("negated", "other_person", "hypothetical", "history")
LATER = ("fresh", "last", "round_1", "round_2", "round_3", "round_4")
PLAIN = ("plain_1", "plain_2", "plain_3")
"""Sets of the plainest emergencies: one finding, said in few words."""

STRANGER = ("stranger", "stranger_unread")

SINGLE = ("acute_coronary", "anaphylaxis", "cardiac_arrest", "severe_asthma", "severe_bleeding", "unresponsive")
"""The categories the plain sets are about."""

SINCE_PLAIN = frozenset(("cardiac_arrest", "severe_bleeding", "unresponsive"))
"""Categories that came with the plain sets; the sets of `LATER` are older."""


@dataclass(frozen=True)
class Case:
    """A text; `category` is the red flag it must raise, or the one it is about but must not raise."""

    text: str
    language: str
    category: str
    kind: str


@cache
def rows(name: str) -> tuple[tuple[str, ...], ...]:
    """The lines of a template file, in their columns."""
    lines = (TEMPLATES / f"{name}.txt").read_text("utf-8").splitlines()
    return tuple(tuple(line.split("|")) for line in lines if line and not line.startswith("#"))


@cache
def half_rows(name: str, half: int) -> tuple[tuple[str, ...], ...]:
    """Every second line of each group of lines that differ in the last column only."""
    seen: dict[tuple[str, ...], int] = {}
    kept = []
    for row in rows(name):
        group = tuple(row[:-1])
        place = seen[group] = seen.get(group, -1) + 1
        if place % 2 == half:
            kept.append(row)
    return tuple(kept)


def positives(half: int) -> Iterator[Case]:
    """Texts that must raise their category."""
    frames = half_rows("redflag_frames", half)
    for wording, source in (("said", "redflag_sentences"), ("affirmed", "redflag_nouns")):
        for category, language, words in half_rows(source, half):
            for kind, frame_language, frame in frames:
                if kind == wording and frame_language == language:
                    yield Case(frame.format(x=words), language, category, kind)


def later(name: str) -> Iterator[Case]:
    """Sentences of a set of `LATER` or `PLAIN`, written after the rules, in every frame."""
    for category, language, words in rows(f"redflag_{name}"):
        for kind, frame_language, frame in rows("redflag_frames"):
            if kind == "said" and frame_language == language:
                yield Case(frame.format(x=words), language, category, name)


def negatives(half: int) -> Iterator[Case]:
    """Texts that must raise nothing."""
    frames = half_rows("redflag_frames", half)
    for category, language, words in half_rows("redflag_nouns", half):
        for kind, frame_language, frame in frames:
            if kind in ABSENT and frame_language == language:
                yield Case(frame.format(x=words), language, category, kind)
    for language, text in half_rows("redflag_similar", half):
        yield Case(text, language, "", "similar")


def later_negatives() -> Iterator[Case]:
    """Texts that must raise nothing, in frames and words written after the rules."""
    for category, language, words in rows("redflag_nouns"):
        for kind, frame_language, frame in rows("redflag_absent_3"):
            if frame_language == language:
                yield Case(frame.format(x=words), language, category, kind)
    for name in ("redflag_similar_3", "redflag_similar_4", "redflag_similar_5", "redflag_similar_6"):
        for language, text in rows(name):
            yield Case(text, language, "", "similar")


def of_a_stranger(name: str) -> tuple[list[Case], list[Case]]:
    """Sentences of a set of `STRANGER`, without frames: those that must raise their category, and harmless ones."""
    cases = [Case(text, language, category, kind) for category, language, kind, text in rows(f"redflag_{name}")]
    return [case for case in cases if case.category != "none"], [case for case in cases if case.category == "none"]
