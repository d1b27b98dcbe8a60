"""Private details taken out of text before it is kept for training: typed placeholders, and where they came from.

Rules in Chinese and English for names, telephone, identity, record and bank numbers, addresses, dates, hospitals, mail,
WeChat and QQ. Medical words and measurements stay. Rules miss things: a person must look before text leaves the house.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from vrbot.clinic.world import load_world
from vrbot.knowledge.linking import Linker
from vrbot.safety.private_names import medical_eponyms_in, names_in
from vrbot.safety.private_numbers import numbers_in
from vrbot.safety.private_places import places_in
from vrbot.safety.tables import items, lines_of, rows_of

KINDS = ("NAME", "PHONE", "ID", "ADDRESS", "DATE", "HOSPITAL", "RECORD", "EMAIL", "WECHAT", "QQ", "BANK")
_PLACEHOLDER = re.compile(rf"\[(?:{'|'.join(KINDS)})\]")


@dataclass(frozen=True)
class PrivateSpan:
    """Where a detail stood in the original and where its placeholder stands in the text; not the detail itself."""

    kind: str
    start: int
    end: int
    placed_start: int
    placed_end: int


@dataclass(frozen=True)
class Deidentified:
    """The text with placeholders, and the spans in order."""

    text: str
    spans: tuple[PrivateSpan, ...]

    def original_offset(self, offset: int) -> int:
        """The place in the original of a place in the text; inside a placeholder, the start of what it stands for."""
        shift = 0
        for span in self.spans:
            if offset < span.placed_start:
                break
            if offset < span.placed_end:
                return span.start
            shift = span.end - span.placed_end
        return offset + shift


def deidentify(text: str) -> Deidentified:
    """The text without the private details the rules find; doing it again changes nothing."""
    found: list[tuple[str, int, int]] = []
    while True:
        result = _replaced(text, found)
        more = [
            (kind, result.original_offset(start), result.original_offset(end - 1) + 1)
            for kind, start, end in _details(result.text)
        ]
        if not more:
            return result
        found = sorted([*found, *more], key=lambda one: one[1])


def _details(text: str) -> list[tuple[str, int, int]]:
    """Details that overlap neither each other, nor a placeholder, nor (where words can mislead) a medical term."""
    taken = _marked(text, (hit.span() for hit in _PLACEHOLDER.finditer(text)))
    medical = _marked(text, (*_medical_terms(text), *medical_eponyms_in(text)))
    kept: list[tuple[str, int, int]] = []
    for kind, start, end in _candidates(text):
        misled = kind in ("NAME", "ADDRESS", "HOSPITAL") and any(medical[start:end])
        if start < end and not misled and not any(taken[start:end]):
            kept.append((kind, start, end))
            taken[start:end] = b"\1" * (end - start)
    return kept


def _candidates(text: str) -> Iterator[tuple[str, int, int]]:
    yield from numbers_in(text)
    yield from places_in(text)
    yield from (("NAME", start, end) for start, end in names_in(text))


def _marked(text: str, spans: Iterable[tuple[int, int]]) -> bytearray:
    """One byte for each character, not zero inside the spans."""
    marks = bytearray(len(text))
    for start, end in spans:
        marks[start:end] = b"\1" * (end - start)
    return marks


def _replaced(text: str, found: list[tuple[str, int, int]]) -> Deidentified:
    pieces: list[str] = []
    spans: list[PrivateSpan] = []
    read, written = 0, 0
    for kind, start, end in found:
        placeholder = f"[{kind}]"
        pieces += [text[read:start], placeholder]
        placed = written + start - read
        written, read = placed + len(placeholder), end
        spans.append(PrivateSpan(kind, start, end, placed, written))
    return Deidentified("".join([*pieces, text[read:]]), tuple(spans))


def _medical_terms(text: str) -> Iterator[tuple[int, int]]:
    return ((mention.start, mention.end) for mention in _medical_linker().find(text))


@cache
def _medical_linker() -> Linker:
    world = load_world()
    names = {
        name for entity in world.entities.values() for code in ("zh", "en") for name in entity.wordings[code].names
    }
    names |= {name for row in rows_of("drugs") for code in ("zh", "en") for name in items(row[code])}
    names |= {term for line in lines_of("kept_terms") for term in items(line)}
    return Linker(dict.fromkeys(names, (0,)))
