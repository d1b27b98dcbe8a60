"""Medication checks on any text or list of keywords: allergy, condition, interaction, pregnancy, age, duplicates.

They look at what a text proposes under any Chinese or English name the tables know, against what is known of the
patient. The tables hold general facts with their sources and must be reviewed by a clinician; silence is no clearance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from vrbot.safety.against import advised_against
from vrbot.safety.facts import PatientFacts, extract_facts
from vrbot.safety.medicines import (
    LEVELS,
    Drug,
    DrugMention,
    Level,
    drugs,
    find_drugs,
    level_of,
    name_of,
    tags_of,
)
from vrbot.safety.tables import NOTICE, rows_of

__all__ = ["NOTICE", "MedicationFinding", "PatientFacts", "check", "extract_facts"]

Kind = Literal["allergy", "contraindication", "interaction", "pregnancy", "breast_feeding", "child_age", "duplicate"]
_ALTERNATIVE = re.compile(r"或|\bor\b|/")
_LABELS = "manufacturer's labelling; BNF and Chinese package inserts"


@dataclass(frozen=True)
class MedicationFinding:
    """A medicine at `start:end` of the text (of keyword `item`) that does not go with `against`.

    `ingredient` is the part of the medicine it is about. Level "stop" asks for a reason before the text may pass.
    """

    kind: Kind
    level: Level
    drug: str
    ingredient: str
    against: str
    surface: str
    item: int
    start: int
    end: int
    message_zh: str
    message_en: str
    reference: str
    rule: str


class _Verdict(NamedTuple):
    level: Level
    zh: str
    en: str
    reference: str
    rule: str


@dataclass(frozen=True)
class _Proposal:
    mention: DrugMention
    item: int
    drug: Drug


def check(text_or_keywords: str | Sequence[str], patient: PatientFacts) -> tuple[MedicationFinding, ...]:
    """Everything known to speak against the medicines proposed, the gravest first.

    A medicine the text advises against is not proposed.
    """
    texts = [text_or_keywords] if isinstance(text_or_keywords, str) else list(text_or_keywords)
    proposals = _proposals(texts)
    found = [finding for proposal in proposals for finding in _alone(proposal, patient)]
    found += [finding for proposal in proposals for finding in _with_taken(proposal, patient)]
    for position, later in enumerate(proposals):
        for earlier in proposals[:position]:
            if not _are_alternatives(texts, earlier, later):
                found += _together(later, earlier.drug.id, earlier.mention.surface)
    return tuple(sorted(found, key=lambda one: (-LEVELS.index(one.level), one.item, one.start, one.rule)))


def _proposals(texts: Sequence[str]) -> list[_Proposal]:
    """The medicines proposed, each once."""
    found: dict[str, _Proposal] = {}
    for item, text in enumerate(texts):
        for mention in find_drugs(text):
            if mention.id not in found and not advised_against(text, mention):
                found[mention.id] = _Proposal(mention, item, drugs()[mention.id])
    return list(found.values())


def _are_alternatives(texts: Sequence[str], earlier: _Proposal, later: _Proposal) -> bool:
    between = texts[later.item][earlier.mention.end : later.mention.start]
    return earlier.item == later.item and len(between) < 12 and _ALTERNATIVE.search(between) is not None


def _alone(proposal: _Proposal, patient: PatientFacts) -> Iterator[MedicationFinding]:
    drug = proposal.drug
    for part in drug.parts:
        for allergen in sorted(patient.allergies):
            verdict = _allergy(part, allergen)
            if verdict:
                yield _finding("allergy", proposal, part, allergen, verdict)
        for condition in sorted(patient.conditions):
            verdict = _gravest(_rules("contraindications", "what", "condition"), tags_of(part), frozenset((condition,)))
            if verdict:
                yield _finding("contraindication", proposal, part, condition, verdict)
    if patient.pregnant and drug.pregnancy:
        yield _finding("pregnancy", proposal, drug.id, "pregnancy", _state("pregnancy", drug.pregnancy))
    if patient.breast_feeding and drug.breast_feeding:
        yield _finding(
            "breast_feeding", proposal, drug.id, "breast_feeding", _state("breast_feeding", drug.breast_feeding)
        )
    if patient.age_years is not None and patient.age_years < drug.min_age:
        yield _finding("child_age", proposal, drug.id, "age", _age_verdict(drug))


def _with_taken(proposal: _Proposal, patient: PatientFacts) -> Iterator[MedicationFinding]:
    for taken, surface in patient.medicines.items():
        yield from _together(proposal, taken, surface)
    if "alcohol" in patient.conditions:
        yield from _together(proposal, "alcohol", "")


def _together(proposal: _Proposal, other: str, surface: str) -> Iterator[MedicationFinding]:
    """What speaks against this medicine beside another one."""
    others = drugs()[other].parts if other in drugs() else (other,)
    shared = [part for part in proposal.drug.parts if part in others]
    if shared:
        same_words = other == proposal.drug.id and surface == proposal.mention.surface
        yield _finding("duplicate", proposal, shared[0], other, _same_ingredient("info" if same_words else "caution"))
        return
    verdict = _same_class(proposal.drug.parts, others)
    if verdict:
        yield _finding("duplicate", proposal, proposal.drug.parts[0], other, verdict)
    for part in proposal.drug.parts:
        verdicts = [_interaction(part, another) for another in others]
        gravest = max((one for one in verdicts if one), key=lambda one: LEVELS.index(one.level), default=None)
        if gravest:
            yield _finding("interaction", proposal, part, other, gravest)


def _allergy(part: str, allergen: str) -> _Verdict | None:
    if part == allergen:
        return _Verdict("stop", "对该药过敏", "allergic to this medicine", "patient's own statement", "allergy-same")
    return _gravest(_rules("allergies", "affected", "allergen"), tags_of(part), tags_of(allergen))


def _interaction(one: str, other: str) -> _Verdict | None:
    rules = _rules("interactions", "one", "other")
    there = _gravest(rules, tags_of(one), tags_of(other))
    back = _gravest(rules, tags_of(other), tags_of(one))
    named = [(_names_a_drug(found), found) for found in (there, back) if found]
    return max(named, key=lambda pair: (pair[0], LEVELS.index(pair[1].level)), default=(0, None))[1]


def _names_a_drug(verdict: _Verdict) -> int:
    return sum(name in drugs() for name in verdict.rule.split(":", 1)[1].split("+"))


def _same_ingredient(level: Level) -> _Verdict:
    return _Verdict(level, "含相同成分，可能重复用药", "holds the same ingredient", _LABELS, "duplicate-ingredient")


def _same_class(parts: Sequence[str], others: Sequence[str]) -> _Verdict | None:
    here = frozenset().union(*(tags_of(part) for part in parts))
    there = frozenset().union(*(tags_of(part) for part in others))
    for row in rows_of("duplicates"):
        level = level_of(row["level"])
        if level and row["class"] in here & there:
            return _Verdict(level, row["zh"], row["en"], _LABELS, f"duplicate:{row['class']}")
    return None


def _state(state: str, level: Level) -> _Verdict:
    words = {"pregnancy": ("妊娠期", "pregnancy"), "breast_feeding": ("哺乳期", "breast-feeding")}[state]
    zh, en = {
        "stop": (f"{words[0]}禁用", f"not to be used in {words[1]}"),
        "caution": (f"{words[0]}慎用，需权衡利弊", f"only if the benefit outweighs the risk in {words[1]}"),
        "info": (f"{words[0]}使用请核对说明书", f"check the label for {words[1]}"),
    }[level]
    return _Verdict(level, zh, en, f"{_LABELS}; UKTIS and LactMed", f"{state}:{level}")


def _age_verdict(drug: Drug) -> _Verdict:
    limit = f"{drug.min_age:g}" if drug.min_age >= 1 else f"{drug.min_age * 12:.0f}/12"
    zh, en = f"{limit}岁以下不宜使用", f"not for children under {limit} years"
    return _Verdict(drug.child_level or "caution", zh, en, f"{_LABELS}; BNF for Children", f"child_age:{drug.id}")


@cache
def _rules(table: str, one: str, other: str) -> Mapping[tuple[str, str], _Verdict]:
    """The rules of a table by the pair they are about."""
    found = {}
    for row in rows_of(table):
        level = level_of(row["level"])
        if level:
            rule = f"{table}:{row[one]}+{row[other]}"
            found[row[one], row[other]] = _Verdict(level, row["zh"], row["en"], row["reference"], rule)
    return found


def _gravest(
    rules: Mapping[tuple[str, str], _Verdict], ones: frozenset[str], others: frozenset[str]
) -> _Verdict | None:
    """The rule that fits best: one that names the drug itself before one for its class, then the graver."""
    fitting = [rules[one, other] for one in ones for other in others if (one, other) in rules]
    return max(fitting, key=lambda one: (_names_a_drug(one), LEVELS.index(one.level), one.rule), default=None)


def _finding(kind: Kind, proposal: _Proposal, part: str, against: str, verdict: _Verdict) -> MedicationFinding:
    mention = proposal.mention
    return MedicationFinding(
        kind=kind,
        level=verdict.level,
        drug=proposal.drug.id,
        ingredient=part,
        against=against,
        surface=mention.surface,
        item=proposal.item,
        start=mention.start,
        end=mention.end,
        message_zh=f"{mention.surface}（{name_of(part, 'zh')}）与{_named(against, 'zh')}：{verdict.zh}",
        message_en=f"{mention.surface} ({name_of(part, 'en')}) and {_named(against, 'en')}: {verdict.en}",
        reference=verdict.reference,
        rule=verdict.rule,
    )


_STATES = {
    "pregnancy": ("妊娠", "pregnancy"),
    "breast_feeding": ("哺乳", "breast-feeding"),
    "age": ("年龄", "age"),
    "alcohol": ("饮酒", "alcohol"),
}


def _named(against: str, language: str) -> str:
    if against in _STATES:
        return _STATES[against][0 if language == "zh" else 1]
    for row in rows_of("conditions"):
        if row["condition"] == against:
            return row["zh"].split(";")[0] if language == "zh" else against.replace("_", " ")
    return name_of(against, language)
