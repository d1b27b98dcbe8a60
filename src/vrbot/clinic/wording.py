"""What the two languages share when an entity is put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from vrbot.clinic.grammar import Grammar
from vrbot.clinic.world import Entity


@dataclass(frozen=True)
class Difficulty:
    """How often the patient's words hide the truth from a reader who only looks for names."""

    implied: float  # a finding is only to be inferred ("the thermometer said 38.9")
    colloquial: float  # a finding is put into a clause instead of a name ("I'm burning up")
    short_answer: float  # an answer makes sense only after its question ("the first one")
    denial: float  # the patient volunteers what is not there
    unsure: float  # an absent finding is answered with "hard to say"
    third_person: float  # the patient speaks of what somebody else has
    distraction: float  # the patient names diseases feared and medicines not taken
    typo: float  # share of patient utterances with a slip of the keyboard


DIFFICULTIES = {
    "easy": Difficulty(0.05, 0.1, 0.25, 0.2, 0.03, 0.03, 0.05, 0.02),
    "normal": Difficulty(0.15, 0.22, 0.4, 0.35, 0.08, 0.1, 0.15, 0.08),
    "hard": Difficulty(0.3, 0.35, 0.6, 0.55, 0.12, 0.22, 0.3, 0.2),
}


class Language(Protocol):
    """Puts entities into words of one language; every method draws from the generator passed in."""

    code: str
    grammar: Grammar
    others: tuple[str, ...]

    def spoken(self, entity: Entity, rng: Random, other_name: float = 0.6) -> str:
        """A name as said after "I have"."""

    def named(self, rule: str, entity: Entity, rng: Random) -> str:
        """The rule with this entity in it."""

    def present(self, findings: list[Entity], difficulty: Difficulty, rng: Random) -> tuple[str, list[Entity]]:
        """That these findings are there, and the findings in the order of the words."""

    def absent(self, findings: list[Entity], rng: Random) -> str:
        """That these are not there."""

    def position(self, index: int, count: int) -> str:
        """One of the things asked about, by its place in the question."""

    def duration(self, days: int, rng: Random) -> str:
        """A length of time."""

    def relative(self, relation: str, rng: Random) -> str:
        """A member of the family."""

    def sex(self, sex: str) -> str:
        """Male or female, in words."""

    def number(self, value: int) -> str:
        """A small number in words."""

    def lasts(self, told: str, findings: list[Entity]) -> bool:
        """Whether "for three days" can directly follow these words about the findings."""

    def begin(self, introduction: str, head: str, complaint: str) -> str:
        """The start of the opening; an introduction that is no sentence becomes the subject of the complaint."""

    def join(self, parts: list[str], rng: Random) -> str:
        """The parts of an utterance, with punctuation."""

    def listing(self, slot: str, entities: list[Entity], other_name: float, rng: Random) -> str:
        """Entities as the physician names them in this slot."""

    def finish(self, text: str, person: str) -> str:
        """The utterance with pronouns and capitals; `person` is who `{I}` stands for: I, you, he or she."""

    def slip(self, text: str, rng: Random) -> str:
        """The text with a typing mistake."""


def pick_clause(entity: Entity, language: str, difficulty: Difficulty, rng: Random) -> str | None:
    """A clause that means or implies the finding, or None where it shall be named."""
    wording = entity.wordings[language]
    draw = rng.random()
    if draw < difficulty.implied and wording.implied:
        return rng.choice(wording.implied)
    if draw < difficulty.implied + difficulty.colloquial and wording.said:
        return rng.choice(wording.said)
    return None


def pick_name(entity: Entity, language: str, other_name: float, rng: Random) -> str:
    """A spoken name, with this probability not the first one."""
    spoken = entity.wordings[language].spoken
    if len(spoken) > 1 and rng.random() < other_name:
        return rng.choice(spoken[1:])
    return spoken[0]


def ends_with_name(text: str, findings: list[Entity], language: str) -> bool:
    """Whether the last words are a name of one of the findings."""
    return text.endswith(tuple(name for entity in findings for name in entity.wordings[language].names))


@dataclass(frozen=True)
class Telling:
    """Findings divided into those that are named together and those that have a clause of their own."""

    named: list[Entity]
    clauses: list[tuple[Entity, str]]


def divide(findings: list[Entity], language: str, difficulty: Difficulty, rng: Random) -> Telling:
    """Decide for each finding whether it is named, paraphrased or implied."""
    telling = Telling([], [])
    for entity in findings:
        clause = pick_clause(entity, language, difficulty, rng)
        if clause is None:
            telling.named.append(entity)
        else:
            telling.clauses.append((entity, clause))
    return telling


def chain(pieces: list[tuple[list[Entity], str]], joints: Sequence[str], rng: Random) -> tuple[str, list[Entity]]:
    """The pieces one after the other, each joint used once; and their entities in that order."""
    if len(pieces) > 1 and rng.random() < 0.5:
        pieces = pieces[::-1]
    links = ["", *rng.sample(list(joints), len(pieces) - 1)]
    text = "".join(link + words for link, (_, words) in zip(links, pieces, strict=True))
    return text, [entity for entities, _ in pieces for entity in entities]
