"""What is known of a patient for medication checks: given, or read out of the patient's words by rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from re import Pattern

from vrbot.safety.context import Context
from vrbot.safety.medicines import DrugMention, clause_around, find_drugs, find_drugs_and_classes
from vrbot.safety.patterns import compiled, languages_in, readable
from vrbot.safety.tables import items, rows_of

PIECE, OVERLAP = 2000, 200
"""A long text is read in pieces, so that the time grows with its length only."""

_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九十")} | {"两": 2, "俩": 2}
_NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
)
_WORDS = {word: number for number, word in enumerate(_NUMBER_WORDS)} | {"a": 1, "an": 1}
_NUMBER = r"(\d{1,3}(?:\.\d)?|[一二两三四五六七八九十]{1,3})"
_ENGLISH_NUMBER = rf"(\d{{1,3}}(?:\.\d)?|{'|'.join(_WORDS)})"
_CHILD = r"(?:小?宝宝?|婴儿?|孩子?|娃|儿子|女儿|小孩)"
_YEARS = (
    re.compile(rf"{_NUMBER}周?岁"),
    re.compile(rf"\b{_ENGLISH_NUMBER}[ -]years?[ -]old\b"),
    re.compile(
        rf"\b(?:aged?|(?:son|daughter|child|kid|boy|girl|he|she) is|i'?m|i am) {_ENGLISH_NUMBER}\b"
        r"(?! ?(?:month|week|day|hour|kg|%))(?! \w+ pregnant)"
    ),
)
_MONTHS = (
    re.compile(rf"{_NUMBER}个半?月大?的?{_CHILD}"),
    re.compile(rf"{_CHILD}(?:才|刚|现在)?{_NUMBER}个半?月"),
    re.compile(rf"\b{_ENGLISH_NUMBER}[ -]months?[ -]old\b"),
)
_PREGNANT = re.compile(r"怀孕|孕妇|(?<!备)孕\S{1,3}(?:周|个月)|妊娠|有身孕|\bpregnan(?!cy test)\w*|\bexpecting a baby")
_BREAST_FEEDING = re.compile(r"哺乳|喂奶|母乳喂养|\bbreast[ -]?feed\w*|\bnursing my\b")
_ALLERGY = re.compile(r"过敏|皮试阳性|\ballerg\w+|\breaction to\b")
_NO_ALLERGY = re.compile(
    r"不过敏|[没无]有?\S{0,6}过敏|否认\S{0,8}过敏|\b(?:not|no|never|denies|without)\b[^,.;]{0,25}allerg|皮试阴性"
)
_ASKING = re.compile(r"能不能|可不可以|可以[吃用服]|能[吃用服]|要不要|\b(?:can|could|may|should) i\b|吗$|吗[？?]")
_RELATIVE = re.compile(
    r"我(?:妈妈?|爸爸?|母亲|父亲|姐姐?|哥哥?|奶奶|爷爷|家人)|\bmy (?:mother|father|sister|brother|mum|mom|dad)\b"
)
_NOT_ME = re.compile(r"我(?:没事|不|没有?|自己没)|\bi(?: am|'m) not\b|\bnot me\b|\bi (?:do not|don't)\b")


@dataclass(frozen=True)
class PatientFacts:
    """Age in years if known; conditions, allergies (drugs or classes) and medicines by the ids of the tables."""

    age_years: float | None = None
    pregnant: bool = False
    breast_feeding: bool = False
    conditions: frozenset[str] = frozenset()
    allergies: frozenset[str] = frozenset()
    medicines: Mapping[str, str] = field(default_factory=dict)  # id -> as it was named, "" if it was given

    def joined(self, other: PatientFacts) -> PatientFacts:
        """What either says; the other's age counts where both have one."""
        return PatientFacts(
            age_years=self.age_years if other.age_years is None else other.age_years,
            pregnant=self.pregnant or other.pregnant,
            breast_feeding=self.breast_feeding or other.breast_feeding,
            conditions=self.conditions | other.conditions,
            allergies=self.allergies | other.allergies,
            medicines={**self.medicines, **other.medicines},
        )


def extract_facts(text: str) -> PatientFacts:
    """What the patient's words tell; what they deny, only ask, or say of somebody else is left out."""
    facts = PatientFacts()
    for offset in range(0, max(1, len(text) - OVERLAP), PIECE - OVERLAP):
        facts = facts.joined(_facts_of(readable(text[offset : offset + PIECE])))
    return facts


def _facts_of(folded: str) -> PatientFacts:
    languages = languages_in(folded)
    context = Context(folded, languages)
    allergens = [one for one in find_drugs_and_classes(folded) if _is_allergen(folded, one)]
    places = {(one.start, one.end) for one in allergens}
    taken = [one for one in find_drugs(folded) if _is_taken(folded, context, one)]
    return PatientFacts(
        age_years=_age(folded),
        pregnant=_said(_PREGNANT, folded, context),
        breast_feeding=_said(_BREAST_FEEDING, folded, context),
        conditions=frozenset(
            name
            for code in languages
            for name, pattern in _conditions()[code]
            if any(_holds(context, folded, *hit.span()) for hit in pattern.finditer(folded))
        ),
        allergies=frozenset(one.id for one in allergens),
        medicines={one.id: one.surface for one in taken if not _inside(one, places)},
    )


@cache
def _conditions() -> Mapping[str, tuple[tuple[str, Pattern[str]], ...]]:
    return {
        code: tuple(
            (row["condition"], pattern)
            for row in rows_of("conditions")
            if (pattern := compiled(items(row[code]), code)) is not None
        )
        for code in ("zh", "en")
    }


def _holds(context: Context, folded: str, start: int, end: int) -> bool:
    """A condition of the past still counts: an ulcer that bled may bleed again."""
    return context.status(start, end) in ("asserted", "history") and not _of_relative(folded, start, end)


def _of_relative(folded: str, start: int, end: int) -> bool:
    begin, stop = clause_around(folded, start, end)
    return bool(_RELATIVE.search(folded[begin:stop]) and _NOT_ME.search(folded, stop))


def _is_allergen(folded: str, mention: DrugMention) -> bool:
    begin, end = clause_around(folded, mention.start, mention.end)
    clause = folded[begin:end]
    if _NO_ALLERGY.search(clause) or _of_relative(folded, mention.start, mention.end):
        return False
    return bool(_ALLERGY.search(clause) or _ALLERGY.match(folded, end + 1))


def _is_taken(folded: str, context: Context, mention: DrugMention) -> bool:
    begin, end = clause_around(folded, mention.start, mention.end)
    clause = folded[begin : end + 1]
    if _ASKING.search(clause) or _ALLERGY.search(clause):
        return False
    return context.status(mention.start, mention.end) == "asserted"


def _inside(mention: DrugMention, places: set[tuple[int, int]]) -> bool:
    return any(start <= mention.start and mention.end <= end for start, end in places)


def _said(pattern: Pattern[str], folded: str, context: Context) -> bool:
    return any(context.status(*hit.span()) == "asserted" for hit in pattern.finditer(folded))


def _age(folded: str) -> float | None:
    for patterns, unit in ((_MONTHS, 12.0), (_YEARS, 1.0)):
        for pattern in patterns:
            hit = pattern.search(folded)
            if hit:
                return _number(hit.group(1)) / unit
    return None


def _number(text: str) -> float:
    if text in _WORDS:
        return float(_WORDS[text])
    if text[0].isdigit():
        return float(text)
    tens, ten, ones = text.partition("十")
    if not ten:
        return float(_DIGITS[text[-1]])
    return 10.0 * (_DIGITS.get(tens, 1) if tens else 1) + (_DIGITS.get(ones, 0) if ones else 0)
