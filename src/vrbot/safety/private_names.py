"""Names of people in Chinese and English text, told from the words around them; the lists stand in names.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from re import Pattern

_HAN = r"[\u3400-\u9fff]"
_WORD = r"[A-Z][\w'’-]+"
_TITLED = re.compile(
    rf"\b(?:(?:Mr|Mrs|Ms|Mx|Dr|Prof)\.?|Miss|Professor|Doctor|Nurse|Madam) (?P<name>{_WORD}(?: {_WORD}){{0,2}})"
)
_LOWER_NAMED = re.compile(r"(?i:my name is|my name's) (?P<name>[a-z]+ (?!and\b|from\b|i\b|with\b)[a-z]{2,})")
_CAPITALISED = re.compile(
    r"\b(?P<first>[A-Z][a-z]+) (?P<last>(?:[A-Z]\. )?(?:O'|Mc|Mac)?[A-Z][a-z'’-]+(?:-[A-Z][a-z]+)?)"
)


@dataclass(frozen=True)
class _Names:
    chinese: tuple[Pattern[str], ...]
    english: tuple[Pattern[str], ...]
    medical: Pattern[str]
    first_names: frozenset[str]
    not_names: frozenset[str]

    def is_no_name(self, word: str) -> bool:
        """Also with an ending: "I'll", "We're"."""
        return word.replace("’", "'").split("'")[0] in self.not_names


def names_in(text: str) -> Iterator[tuple[int, int]]:
    """Where people are named; a medical eponym ("Bell's palsy") is no person."""
    names = _names()
    for pattern in names.chinese:
        yield from (hit.span("name") for hit in pattern.finditer(text))
    medical = list(medical_eponyms_in(text))
    for start, end in _english(text, names):
        if not any(begin < end and start < stop for begin, stop in medical):
            yield start, end


def medical_eponyms_in(text: str) -> Iterator[tuple[int, int]]:
    """Where a disease, sign or test carries somebody's name."""
    return (hit.span() for hit in _names().medical.finditer(text))


def _english(text: str, names: _Names) -> Iterator[tuple[int, int]]:
    for pattern in names.english:
        for hit in pattern.finditer(text):
            start, end = hit.span("name")
            words = text[start:end].split()
            while words and names.is_no_name(words[-1]):
                end -= len(words.pop()) + 1
            if words and not names.is_no_name(words[0]):
                yield start, end
    for hit in _LOWER_NAMED.finditer(text):
        yield hit.span("name")
    for hit in _CAPITALISED.finditer(text):
        if hit["first"] in names.first_names and not names.is_no_name(hit["last"].split()[-1]):
            yield hit.span()


@cache
def _names() -> _Names:
    table = json.loads(files("vrbot.safety").joinpath("names.json").read_text(encoding="utf-8"))
    eponyms = "|".join(sorted({re.escape(name) for name in table["eponyms"].split()}))
    of_medicine = rf"{_WORD}(?:['’]s?)?(?: {_WORD}(?:['’]s)?)? (?:{table['medical_nouns']})\b"
    likely = rf"(?i:{table['english_likely_cues']})[,:]? (?P<name>{_WORD} {_WORD})"
    sure = rf"(?:(?i:{table['english_name_cues']})(?: is)?\s?[:,]? )"
    return _Names(
        chinese=_chinese(table),
        english=(
            _TITLED,
            re.compile(rf"{sure}(?P<name>{_WORD}(?: [A-Z]\b\.?)?(?: {_WORD}){{0,2}})"),
            re.compile(likely),
        ),
        medical=re.compile(rf"\b{of_medicine}|\b(?:{eponyms})(?:-[A-Z]\w+)?(?:['’]s?) \w+"),
        first_names=frozenset(table["first_names"].split()),
        not_names=frozenset(table["not_names"].split()),
    )


def _chinese(table: Mapping[str, str]) -> tuple[Pattern[str], ...]:
    """After a sure cue any characters, after a likely one only those of given names; before a title; before a sex."""
    given = table["given"]
    surname = _surname(table, table["rarely_surnames"])
    lone = _surname(table, table["not_before_title"])
    goes_on = rf"(?=[\s，,。；;：:、！!？?（(）)】\[]|$|[{table['goes_on_with']}]|一[直周])"
    sure = rf"(?:{table['sure_cues']})(?:是|为|叫|[:：\s]){{0,2}}"
    likely = rf"(?:{table['likely_cues']}|(?:{table['relatives']})(?:叫|是|名叫)?)[:：，,\s]?"
    full = rf"{surname}[{given}]{{2}}|{surname}[{given}]"
    return tuple(
        re.compile(pattern)
        for pattern in (
            rf"{sure}(?P<name>{surname}(?:{_HAN}{{2}}{goes_on}|{_HAN}{goes_on}|[{given}]{{1,2}}))",
            rf"{likely}(?P<name>(?:{full}){goes_on})",
            rf"(?P<name>{full}|(?<!{_HAN}){lone}|(?<=[找问请是给的跟由让谢]){lone})(?:{table['titles_after']})",
            rf"(?:(?<=[\s，,。；;：:\n])|^)(?P<name>{surname}{_HAN}{{1,2}})(?=[，,、\s]{{1,2}}(?:男|女|性别))",
        )
    )


def _surname(table: Mapping[str, str], without: str) -> str:
    """A surname; 谢 only where it is not the second half of a thank-you."""
    single = "".join(sorted(set(table["surnames"]) - set(without) - {"谢"}))
    return f"(?:{'|'.join(table['compound_surnames'])}|(?<!谢)谢|[{single}])"
