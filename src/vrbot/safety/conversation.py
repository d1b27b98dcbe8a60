"""What a whole conversation tells of the patient: their own words, bare answers with their questions, advice sent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from vrbot.safety.against import advised_against
from vrbot.safety.ages import age_answered, youngest
from vrbot.safety.allergens import ALLERGY
from vrbot.safety.facts import PatientFacts, extract_facts
from vrbot.safety.medicines import DrugMention, clause_around, find_drugs, find_drugs_and_classes
from vrbot.safety.patterns import readable

LONGEST_BARE = 20
"""A clause of an answer with more characters than this beside the names says something of its own."""

_SENTENCE = re.compile(r"[^。！!?？；;\n.]*(?:\.\d[^。！!?？；;\n.]*)*[。！!?？；;\n.]?")
_ASKS = re.compile(r"[?？]\s*\Z|[吗呢]|什么|哪些|多大|几岁|有没有|是不是|\b(?:what|which|any|how old)\b")
_YES = re.compile(
    r"\W*(?:yes|yeah|yep|yup|i am|i do|i have|correct|right|是的?|有的?|对的?|嗯+|会的?|确实)(?=\W|\Z)", re.IGNORECASE
)
_TO_STATEMENT = (
    (re.compile(r"[?？吗呢]"), ""),
    (re.compile(r"有没有"), "有"),
    (re.compile(r"是不是|是否"), "是"),
    (re.compile(r"\b(?:are|were) you\b"), "i am"),
    (re.compile(r"\b(?:do|did) you\b"), "i"),
    (re.compile(r"\bhave you\b"), "i have"),
)
_CLAUSE = re.compile(r"[，,。.!！?？;；\n]")
_SAYS_MORE = re.compile(
    r"没|不|无|吃|服|用|打|可以|\b(?:no|not|never|none|nothing|fine|okay|ok|take|taking|took|on|use|used|tolerate)\b|n't\b"
)


def facts_of(conversation: Sequence[tuple[str, str]], draft: str = "") -> PatientFacts:
    """What is known of the patient before `draft` is sent; each turn holds what patient and physician said.

    What the physician's messages advised counts as taken, unless a later message or the draft itself stops it.
    """
    facts = extract_facts("\n".join(patient for patient, _ in conversation))
    for (_, question), (answer, _) in pairwise(conversation):
        told = facts_answered(question, answer)
        medicines = {key: name for key, name in facts.medicines.items() if key not in told.allergies}
        ages = youngest((facts.age_years, told.age_years))
        facts = replace(replace(facts, medicines=medicines).joined(told), age_years=ages)
    advised: Mapping[str, str] = {}
    for _, message in conversation:
        advised = _after(advised, message)
    advised = {key: name for key, name in advised.items() if not _settles(draft, key, name)}
    return replace(facts, medicines={**advised, **facts.medicines})


def facts_answered(question: str, answer: str) -> PatientFacts:
    """What an answer tells only together with its question: a yes, a bare name, a bare number."""
    questions = [readable(one) for one in _SENTENCE.findall(question) if _ASKS.search(one)]
    facts, replied = PatientFacts(), readable(answer)
    for asked in questions:
        if _YES.match(replied):
            facts = facts.joined(extract_facts(_stated(asked)))
        if ALLERGY.search(asked):
            facts = facts.joined(PatientFacts(allergies=_bare_names(replied)))
        facts = facts.joined(PatientFacts(age_years=age_answered(asked, replied)))
    return facts


def _stated(question: str) -> str:
    for pattern, words in _TO_STATEMENT:
        question = pattern.sub(words, question)
    return question


def _bare_names(answer: str) -> frozenset[str]:
    """The medicines and classes an answer names without saying anything of its own about them."""
    found = set()
    for clause in _CLAUSE.split(answer):
        names = find_drugs_and_classes(clause)
        rest = clause
        for name in names:
            rest = rest.replace(name.surface, " ")
        if len(rest.strip()) <= LONGEST_BARE and not _SAYS_MORE.search(rest):
            found |= {name.id for name in names}
    return frozenset(found)


def _after(advised: Mapping[str, str], message: str) -> Mapping[str, str]:
    """What is advised after one more message; what it only asks about changes nothing."""
    meant = [one for one in find_drugs(message) if not _only_mentioned(message, one)]
    stopped = {one.id for one in meant if advised_against(message, one)}
    kept = {key: name for key, name in advised.items() if key not in stopped}
    return {**kept, **{one.id: one.surface for one in meant if not advised_against(message, one)}}


def _only_mentioned(message: str, mention: DrugMention) -> bool:
    """Whether the sentence asks, or speaks of an allergy."""
    for sentence in _SENTENCE.finditer(message):
        if sentence.start() <= mention.start < sentence.end():
            begin, end = clause_around(message, mention.start, mention.end)
            asks = sentence.group().rstrip().endswith(("?", "？")) or "吗" in sentence.group()
            return asks or ALLERGY.search(message[begin:end].lower()) is not None
    return False


def _settles(draft: str, advised: str, name: str) -> bool:
    """Whether a draft stops what was advised, or only says it again by the same name."""
    named = [one for one in find_drugs(draft) if one.id == advised]
    return bool(named) and all(advised_against(draft, one) or one.surface == name for one in named)
