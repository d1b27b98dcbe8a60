"""The clinic's own small medical world: diseases, symptoms, medicines, tests and circumstances, in Chinese and English.

Everything here was written for this project from general medical knowledge. It is fictional, for demonstration and
measurement only, and must not be used to treat anybody. The content stands in the CSV files beside this module; lists
in a cell are separated by ";" (phrases) or by a space (ids). A name is written as it is said after "I have": an English
name with its article ("a cough"), a Chinese noun with its verb ("有皮疹"); `Entity.names` holds the bare words.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

LANGUAGES = ("zh", "en")
INVERSES = {
    "contains_symptom": "symptom_of",
    "to_treat": "treated_by",
    "adverse_reaction": "adverse_reaction_of",
    "complication_to": "complication_to",
    "related_to": "related_to",
    "caused_by": "lead_to",
    "check_item": "checked_for",
}
"""The relations of the paper's graphs; the two that are their own inverse are symmetric."""

RELATIONS = tuple(sorted({*INVERSES, *INVERSES.values()}))
SHARED_SYMPTOMS_OF_RELATED = 3
"""Diseases that share this many symptoms are easily confused, hence `related_to`."""

Row = Mapping[str, str]


@dataclass(frozen=True)
class Wording:
    """How one entity is worded in one language; the first name is the canonical one."""

    spoken: tuple[str, ...]  # with the article or verb it is said with
    said: tuple[str, ...] = ()  # colloquial clauses that mean it
    implied: tuple[str, ...] = ()  # clauses it follows from
    asked: tuple[str, ...] = ()  # questions after it
    denied: tuple[str, ...] = ()  # clauses that deny it

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(bare_name(name) for name in self.spoken)


@dataclass(frozen=True)
class Entity:
    """Something the conversation can be about; `kind` is disease, symptom, medicine, test or attribute."""

    id: str
    kind: str
    wordings: Mapping[str, Wording]

    def name(self, language: str) -> str:
        return self.wordings[language].names[0]


@dataclass(frozen=True)
class Disease:
    """What is known about a disease; entries are entity ids, the most usual first."""

    id: str
    department: str
    weight: int
    ages: tuple[int, int]
    days: tuple[int, int]
    sex: str
    typical: tuple[str, ...]
    occasional: tuple[str, ...]
    tests: tuple[str, ...]
    confirming: frozenset[str]  # those of the tests that find something; the rest rule something else out
    medicines: tuple[str, ...]
    causes: tuple[str, ...]
    complications: tuple[str, ...]
    urgent: bool
    contagious: bool


@dataclass(frozen=True)
class Medicine:
    """Who may take a medicine, how, and what it can do besides."""

    id: str
    kind: str
    form: str
    min_age: int
    avoid: tuple[str, ...]
    adverse: tuple[str, ...]


@dataclass(frozen=True)
class Background:
    """A long-standing condition a patient may bring along."""

    id: str
    share: float
    age_low: int
    medicines: tuple[str, ...]
    implied: Mapping[str, str]


@dataclass(frozen=True)
class World:
    """All of it; mappings keep the order of the files, so iteration is the same everywhere."""

    entities: Mapping[str, Entity]
    diseases: Mapping[str, Disease]
    medicines: Mapping[str, Medicine]
    departments: Mapping[str, Mapping[str, str]]
    background: tuple[Background, ...]
    allergies: Mapping[str, Mapping[str, str]]
    results: Mapping[str, Row]
    kind_of: Mapping[str, tuple[str, ...]]  # symptom -> the more general symptoms it is a case of
    avoidable: frozenset[str]  # circumstances one can do something about
    adult: frozenset[str]  # circumstances of grown-ups

    def of_kind(self, kind: str) -> tuple[str, ...]:
        return tuple(entity.id for entity in self.entities.values() if entity.kind == kind)

    def name(self, entity: str, language: str) -> str:
        return self.entities[entity].name(language)

    def triples(self, language: str) -> list[tuple[str, str, str]]:
        """Every fact (head, relation, tail) and its inverse, by canonical name, sorted and without repeats."""
        named = {
            (self.name(head, language), relation, self.name(tail, language)) for head, relation, tail in self._facts()
        }
        return sorted(named | {(tail, INVERSES[relation], head) for head, relation, tail in named})

    def aliases(self, language: str) -> dict[str, str]:
        """Every other name -> the canonical name."""
        return {
            other: entity.name(language)
            for entity in self.entities.values()
            for other in entity.wordings[language].names[1:]
        }

    def lexicon(self, language: str) -> dict[str, list[str]]:
        """Every name an entity can be found by -> the canonical names it means."""
        meanings: dict[str, list[str]] = {}
        for entity in self.entities.values():
            for name in entity.wordings[language].names:
                meanings.setdefault(name, []).append(entity.name(language))
        return meanings

    def typed_names(self, language: str) -> list[tuple[str, str]]:
        """(canonical name, type) of every entity."""
        return [(entity.name(language), entity.kind) for entity in self.entities.values()]

    def _facts(self) -> Iterator[tuple[str, str, str]]:
        for disease in self.diseases.values():
            for relation, tails in (
                ("contains_symptom", disease.typical + disease.occasional),
                ("check_item", disease.tests),
                ("caused_by", disease.causes),
                ("complication_to", disease.complications),
            ):
                yield from ((disease.id, relation, tail) for tail in tails)
            yield from ((medicine, "to_treat", disease.id) for medicine in disease.medicines)
        for medicine in self.medicines.values():
            yield from ((medicine.id, "adverse_reaction", symptom) for symptom in medicine.adverse)
        yield from self._confusable()

    def _confusable(self) -> Iterator[tuple[str, str, str]]:
        known = list(self.diseases.values())
        for position, one in enumerate(known):
            for other in known[position + 1 :]:
                shared = {*one.typical, *one.occasional} & {*other.typical, *other.occasional}
                if len(shared) >= SHARED_SYMPTOMS_OF_RELATED:
                    yield one.id, "related_to", other.id


def bare_name(spoken: str) -> str:
    """The name without the article or verb it is said with."""
    for prefix in ("a ", "an ", "有"):
        if spoken.startswith(prefix):
            return spoken[len(prefix) :]
    return spoken


@cache
def load_world() -> World:
    """The world, read once from the files beside this module."""
    diseases = _rows("diseases")
    kinds = {
        "disease": diseases,
        "symptom": _rows("symptoms"),
        "medicine": _rows("medicines"),
        "test": _rows("tests"),
        "attribute": _rows("attributes"),
    }
    return World(
        entities={row["id"]: _entity(row, kind) for kind, rows in kinds.items() for row in rows},
        diseases={row["id"]: _disease(row) for row in diseases},
        medicines={row["id"]: _medicine(row) for row in kinds["medicine"]},
        departments={row["id"]: {"zh": row["zh"], "en": row["en"]} for row in _rows("departments")},
        background=tuple(_background(row) for row in _rows("background")),
        allergies={row["kind"]: {"zh": row["zh"], "en": row["en"]} for row in _rows("allergies")},
        results={row["id"]: row for row in kinds["test"]},
        kind_of={row["id"]: tuple(row["kind_of"].split()) for row in kinds["symptom"]},
        avoidable=frozenset(row["id"] for row in kinds["attribute"] if row["avoidable"] == "1"),
        adult=frozenset(row["id"] for row in kinds["attribute"] if row["adult"] == "1"),
    )


def _rows(name: str) -> list[dict[str, str]]:
    text = files("vrbot.clinic").joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _phrases(row: Row, column: str) -> tuple[str, ...]:
    return tuple(phrase for phrase in row.get(column, "").split(";") if phrase)


def _entity(row: Row, kind: str) -> Entity:
    wordings = {
        language: Wording(
            spoken=_phrases(row, language),
            said=_phrases(row, f"{language}_said"),
            implied=_phrases(row, f"{language}_implied"),
            asked=_phrases(row, f"{language}_asked"),
            denied=_phrases(row, f"{language}_denied"),
        )
        for language in LANGUAGES
    }
    return Entity(row["id"], kind, wordings)


def _disease(row: Row) -> Disease:
    tests = row["tests"].split()  # a mark of exclamation: done to rule something out
    return Disease(
        id=row["id"],
        department=row["department"],
        weight=int(row["weight"]),
        ages=(int(row["age_low"]), int(row["age_high"])),
        days=(int(row["days_low"]), int(row["days_high"])),
        sex=row["sex"],
        typical=tuple(row["typical"].split()),
        occasional=tuple(row["occasional"].split()),
        tests=tuple(test.removeprefix("!") for test in tests),
        confirming=frozenset(test for test in tests if not test.startswith("!")),
        medicines=tuple(row["medicines"].split()),
        causes=tuple(row["causes"].split()),
        complications=tuple(row["complications"].split()),
        urgent=row["urgent"] == "1",
        contagious=row["contagious"] == "1",
    )


def _medicine(row: Row) -> Medicine:
    return Medicine(
        id=row["id"],
        kind=row["kind"],
        form=row["form"],
        min_age=int(row["min_age"]),
        avoid=tuple(row["avoid"].split()),
        adverse=tuple(row["adverse"].split()),
    )


def _background(row: Row) -> Background:
    return Background(
        id=row["id"],
        share=float(row["share"]),
        age_low=int(row["age_low"]),
        medicines=tuple(row["medicines"].split()),
        implied={language: row[f"{language}_implied"] for language in LANGUAGES},
    )
