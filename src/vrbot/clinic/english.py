"""English wording.

Phrases are written in the first person with marks for what changes with the person: `{I}`, `{my}`, `{me}`,
`{myself}`, `{I'm}`, `{I've}`, and `{keep|keeps}` for verbs. The patient's own words are finished for I, he or she, the
physician's for you, he or she.
"""

from __future__ import annotations

import re
from random import Random

from vrbot.clinic.grammar import Grammar, fill, load_grammar
from vrbot.clinic.wording import Difficulty, chain, divide, ends_with_name, pick_name
from vrbot.clinic.world import Entity, bare_name

_PERSONS = {
    "I": {"I": "I", "my": "my", "me": "me", "myself": "myself", "I'm": "I'm", "I've": "I've"},
    "you": {"I": "you", "my": "your", "me": "you", "myself": "yourself", "I'm": "you're", "I've": "you've"},
    "he": {"I": "he", "my": "his", "me": "him", "myself": "himself", "I'm": "he's", "I've": "he's"},
    "she": {"I": "she", "my": "her", "me": "her", "myself": "herself", "I'm": "she's", "I've": "she's"},
}
_LASTING = ("{I've} had ", " been having ", "{I've} been ")
_NAMED = {"{I}": "", "{I've}": " has", "{I'm}": " is", "{my}": "'s"}
_MARK = re.compile(r"\{([^{}]+)\}")
_START = re.compile(r"(^|[.?!] )([a-z])")
_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_ORDINALS = ("the first one", "the second one", "the third one")


class English:
    """Puts entities into English words."""

    code: str = "en"
    others: tuple[str, ...] = ("colleague", "neighbour", "brother", "sister", "cousin", "flatmate", "classmate")

    def __init__(self) -> None:
        self.grammar: Grammar = load_grammar("en")

    def spoken(self, entity: Entity, rng: Random, other_name: float = 0.6) -> str:
        return pick_name(entity, "en", other_name, rng)

    def named(self, rule: str, entity: Entity, rng: Random) -> str:
        name = self.spoken(entity, rng)
        content = {"x": name, "bare": bare_name(name), "clause": f"{{I}} {{have|has}} {name}"}
        return fill(self.grammar.expand(rule, rng), content)

    def present(self, findings: list[Entity], difficulty: Difficulty, rng: Random) -> tuple[str, list[Entity]]:
        telling = divide(findings, "en", difficulty, rng)
        pieces = [([entity], clause) for entity, clause in telling.clauses]
        if telling.named:
            names = _series([self.spoken(entity, rng) for entity in telling.named], "and")
            pieces.insert(0, (telling.named, fill(self.grammar.expand("present", rng), {"x": names})))
        return chain(pieces, self.grammar.rules["joined"], rng)

    def absent(self, findings: list[Entity], rng: Random) -> str:
        if len(findings) > 1 and rng.random() < 0.6:
            names = [self.spoken(entity, rng) for entity in findings]
            bare = _series([bare_name(name) for name in names], "or")
            return fill(self.grammar.expand("absent_all", rng), {"x": _series(names, "or"), "bare": bare})
        return " and ".join(self._denial(entity, rng) for entity in findings)

    def _denial(self, entity: Entity, rng: Random) -> str:
        denied = entity.wordings["en"].denied
        if denied and rng.random() < 0.5:
            return rng.choice(denied)
        return self.named("absent_disease" if entity.kind == "disease" else "absent", entity, rng)

    def position(self, index: int, count: int) -> str:
        return "the last one" if index == count - 1 and count > 2 else _ORDINALS[index]

    def duration(self, days: int, rng: Random) -> str:
        if days <= 10:
            return _amount(days, "day")
        if days <= 27:
            return rng.choice((_amount(max(2, round(days / 7)), "week"), f"{days} days"))
        if days <= 330:
            return _amount(max(1, round(days / 30)), "month")
        return _amount(max(1, round(days / 365)), "year")

    def relative(self, relation: str, rng: Random) -> str:
        return relation

    def sex(self, sex: str) -> str:
        return sex

    def number(self, value: int) -> str:
        return _NUMBERS[value] if value < len(_NUMBERS) else str(value)

    def lasts(self, told: str, findings: list[Entity]) -> bool:
        return ends_with_name(told, findings, "en") and any(tense in told for tense in _LASTING)

    def begin(self, introduction: str, head: str, complaint: str) -> str:
        if not introduction or introduction.endswith(" "):
            return introduction + head + complaint
        for mark, ending in _NAMED.items():
            if complaint.startswith(mark):
                return head + introduction + ending + complaint.removeprefix(mark)
        return f"{introduction} is not well. {head}{complaint}"

    def join(self, parts: list[str], rng: Random) -> str:
        text = ""
        for part in parts:
            body = part.strip()
            if not body:
                continue
            closed = body[-1] in ".?!:,"
            text += (" " if text else "") + body + ("" if closed else ".")
        return text

    def listing(self, slot: str, entities: list[Entity], other_name: float, rng: Random) -> str:
        if slot == "questions":
            return " and ".join(self._question(entity, rng) for entity in entities)
        names = [self.spoken(entity, rng, 0.0 if slot == "pregnancy" else other_name) for entity in entities]
        if slot.startswith("any_"):
            return _series([bare_name(name) for name in names], "or")
        asking = slot in ("symptoms", "missing", "allergy")
        bare = slot in ("pregnancy", "avoid", "cause")
        return _series([bare_name(name) if bare else name for name in names], "or" if asking else "and")

    def _question(self, entity: Entity, rng: Random) -> str:
        wording = entity.wordings["en"]
        return rng.choice(wording.asked or (f"{{do|does}} {{I}} have {wording.spoken[0]}",))

    def finish(self, text: str, person: str) -> str:
        text = _MARK.sub(lambda match: _for_person(match[1], person), text)
        return _START.sub(lambda match: match[1] + match[2].upper(), text)

    def slip(self, text: str, rng: Random) -> str:
        words = text.split(" ")
        places = [place for place, word in enumerate(words) if len(word) > 4 and word.isalpha()]
        if not places or rng.random() < 0.2:
            return text.replace("'", "") if "'" in text else text.lower()
        place = rng.choice(places)
        word = words[place]
        letter = rng.randrange(1, len(word) - 2)
        kind = rng.randrange(3)
        if kind == 0:
            word = word[:letter] + word[letter + 1] + word[letter] + word[letter + 2 :]
        elif kind == 1:
            word = word[:letter] + word[letter + 1 :]
        else:
            word = word[:letter] + word[letter] + word[letter:]
        words[place] = word
        return " ".join(words)


def _series(names: list[str], conjunction: str) -> str:
    if len(names) == 1:
        return names[0]
    return ", ".join(names[:-1]) + f" {conjunction} " + names[-1]


def _amount(count: int, unit: str) -> str:
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"{'a' if count == 1 and unit != 'day' else number} {unit}{'' if count == 1 else 's'}"


def _for_person(mark: str, person: str) -> str:
    if "|" in mark:
        first, third = mark.split("|")
        if person == "you":
            return {"am": "are", "was": "were"}.get(first, first)
        return first if person == "I" else third
    return _PERSONS[person][mark]
