"""Sentences with invented private details and medical words, whose places are known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.safety.private_values import MAKERS
from tests.safety.redflag_cases import half_rows, rows

KINDS = {"name": "NAME", "phone": "PHONE", "id": "ID", "address": "ADDRESS", "date": "DATE", "hospital": "HOSPITAL"} | {
    "record": "RECORD",
    "email": "EMAIL",
    "wechat": "WECHAT",
    "qq": "QQ",
    "bank": "BANK",
}
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class PrivateCase:
    """A text; `private` and `medical` hold (kind, start, end)."""

    text: str
    private: tuple[tuple[str, int, int], ...]
    medical: tuple[tuple[str, int, int], ...]


def private_cases(half: int, num_spans: int, seed: int = 1) -> Iterator[PrivateCase]:
    """Sentences of one half of the templates until they hold `num_spans` private details."""
    rng = Random(seed + half)
    templates = half_rows("private_sentences", half)
    made = 0
    while made < num_spans:
        for language, template in templates:
            case = _filled(template, language, half, rng)
            made += len(case.private)
            yield case


def _filled(template: str, language: str, half: int, rng: Random) -> PrivateCase:
    text, read = "", 0
    private: list[tuple[str, int, int]] = []
    medical: list[tuple[str, int, int]] = []
    terms = [term for code, term in half_rows("kept_terms", half) if code == language]
    values = [row[0] for row in rows("kept_values")][half::2]
    for slot in _SLOT.finditer(template):
        text += template[read : slot.start()]
        name, read = slot.group(1), slot.end()
        if name in KINDS:
            value = MAKERS[name](language, half, rng)
            private.append((KINDS[name], len(text), len(text) + len(value)))
        else:
            value = rng.choice(terms if name == "term" else values)
            medical.append((name, len(text), len(text) + len(value)))
        text += value
    return PrivateCase(text + template[read:], tuple(private), tuple(medical))
