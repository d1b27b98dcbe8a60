"""What is known of a patient for medication checks: given, or read out of the patient's words by rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from re import Pattern

from vrbot.safety.ages import age_in, youngest
from vrbot.safety.allergens import ALLERGY, NO_ALLERGY, is_allergen
from vrbot.safety.context import Context
from vrbot.safety.medicines import DrugMention, clause_around, find_drugs, find_drugs_and_classes
from vrbot.safety.patterns import compiled, languages_in, readable
from vrbot.safety.tables import items, rows_of

PIECE, OVERLAP = 2000, 200
"""A long text is read in pieces, so that the time grows with its length only."""

_PREGNANT = re.compile(r"怀孕|孕妇|(?<!备)孕\S{1,3}(?:周|个月)|妊娠|有身孕|\bpregnan(?!cy test)\w*|\bexpecting a baby")
_BREAST_FEEDING = re.compile(r"哺乳|喂奶|母乳喂养|\bbreast[ -]?feed\w*|\bnursing my\b")
_ASKING = re.compile(r"能不能|可不可以|可以[吃用服]|能[吃用服]|要不要|\b(?:can|could|may|should) i\b|吗$|吗[？?]")
_TAKING = re.compile(
    r"(?<!\bnot )(?<!n't )\b(?:take|taking|took|am on|i'm on|use|using)\s+(?:some |my )?\Z"
    r"|(?<![没不])(?:吃|服用?|用)[了着过]?\Z"
)
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
    facts, ages = PatientFacts(), []
    for offset in range(0, max(1, len(text) - OVERLAP), PIECE - OVERLAP):
        read = _facts_of(readable(text[offset : offset + PIECE]))
        facts = facts.joined(read)
        ages.append(read.age_years)
    return replace(facts, age_years=youngest(ages))


def _facts_of(folded: str) -> PatientFacts:
    languages = languages_in(folded)
    context = Context(folded, languages)
    names = find_drugs_and_classes(folded)
    allergens = [
        one for one in names if is_allergen(folded, one, names) and not _of_relative(folded, one.start, one.end)
    ]
    places = {(one.start, one.end) for one in allergens}
    taken = [one for one in find_drugs(folded) if _is_taken(folded, context, one)]
    return PatientFacts(
        age_years=age_in(folded),
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


def _is_taken(folded: str, context: Context, mention: DrugMention) -> bool:
    begin, end = clause_around(folded, mention.start, mention.end)
    if _ASKING.search(folded[begin : end + 1]):
        return False
    told = folded[begin : mention.start]
    if ALLERGY.search(folded, begin, end):
        return bool(NO_ALLERGY.search(folded, begin, end) and _TAKING.search(told))
    return context.status(mention.start, mention.end) == "asserted"


def _inside(mention: DrugMention, places: set[tuple[int, int]]) -> bool:
    return any(start <= mention.start and mention.end <= end for start, end in places)


def _said(pattern: Pattern[str], folded: str, context: Context) -> bool:
    return any(context.status(*hit.span()) == "asserted" for hit in pattern.finditer(folded))
