"""Which medicines the tables know, what they contain, and where a text names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from vrbot.knowledge.linking import Linker
from vrbot.safety.tables import items, rows_of

Level = Literal["info", "caution", "stop"]
LEVELS: tuple[Level, ...] = ("info", "caution", "stop")

LONGEST_CLAUSE = 300
"""Nobody looks further back than this many characters for the beginning of a clause."""

_CLAUSE_END = re.compile(r"[，,。；;！!？?：:\n]|\.(?!\d)|但是?|\bbut\b")


@dataclass(frozen=True)
class Drug:
    """A medicine; `parts` are the drugs it is made of (itself, unless it is a combination)."""

    id: str
    name: Mapping[str, str]
    parts: tuple[str, ...]
    classes: frozenset[str]
    pregnancy: Level | None
    breast_feeding: Level | None
    min_age: float
    child_level: Level | None


class DrugMention(NamedTuple):
    """A drug or a class of drugs named at `text[start:end]`."""

    id: str
    surface: str
    start: int
    end: int


def level_of(cell: str) -> Level | None:
    """The level a cell names; None for an empty one."""
    return next((level for level in LEVELS if level == cell), None)


@cache
def drugs() -> Mapping[str, Drug]:
    """Every medicine of the table, by id."""
    return {row["drug"]: _drug(row) for row in rows_of("drugs")}


def tags_of(part: str) -> frozenset[str]:
    """What rules may call this drug or class: its own id and its classes."""
    drug = drugs().get(part)
    return frozenset((part,)) | (drug.classes if drug else frozenset())


def name_of(identifier: str, language: str) -> str:
    """A drug's or a class's name; an id the tables do not know stands for itself."""
    drug = drugs().get(identifier)
    return drug.name[language] if drug else _class_names().get((identifier, language), identifier.replace("_", " "))


def find_drugs(text: str) -> list[DrugMention]:
    """The medicines named in a text, under any of their names, in order."""
    linker, ids = _drug_linker()
    return [DrugMention(ids[one.entities[0]], one.surface, one.start, one.end) for one in linker.find(text)]


def find_drugs_and_classes(text: str) -> list[DrugMention]:
    """As `find_drugs`, and classes of medicines ("sulfa drugs", "头孢")."""
    linker, ids = _allergen_linker()
    return [DrugMention(ids[one.entities[0]], one.surface, one.start, one.end) for one in linker.find(text)]


def clause_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the clause that holds `start:end` begins and ends."""
    earliest = max(0, start - LONGEST_CLAUSE)
    begin = max((hit.end() for hit in _CLAUSE_END.finditer(text, earliest, start)), default=earliest)
    following = _CLAUSE_END.search(text, end)
    return begin, following.start() if following else len(text)


def _drug(row: Mapping[str, str]) -> Drug:
    zh, en = items(row["zh"]), items(row["en"])
    return Drug(
        id=row["drug"],
        name={"zh": (zh or en)[0], "en": (en or zh)[0]},
        parts=tuple(row["ingredients"].split()) or (row["drug"],),
        classes=frozenset(row["classes"].split()),
        pregnancy=level_of(row["pregnancy"]),
        breast_feeding=level_of(row["breast_feeding"]),
        min_age=float(row["min_age"]),
        child_level=level_of(row["child_level"]),
    )


@cache
def _class_names() -> Mapping[tuple[str, str], str]:
    return {(row["class"], code): items(row[code])[0] for row in rows_of("drug_classes") for code in ("zh", "en")}


@cache
def _drug_linker() -> tuple[Linker, tuple[str, ...]]:
    return _linker({row["drug"]: items(row["zh"]) + items(row["en"]) for row in rows_of("drugs")})


@cache
def _allergen_linker() -> tuple[Linker, tuple[str, ...]]:
    named = {row["class"]: items(row["zh"]) + items(row["en"]) for row in rows_of("drug_classes")}
    named |= {row["drug"]: items(row["zh"]) + items(row["en"]) for row in rows_of("drugs")}
    return _linker(named)


def _linker(named: Mapping[str, tuple[str, ...]]) -> tuple[Linker, tuple[str, ...]]:
    ids = tuple(named)
    surfaces = {surface: (number,) for number, names in enumerate(named.values()) for surface in names}
    return Linker(surfaces), ids
