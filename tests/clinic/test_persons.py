"""Laws of who speaks of whom: patients say "I" of their own findings, and that word alone proves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.clinic.conftest import Consultation, consultations
from vrbot.clinic.chinese import Chinese
from vrbot.clinic.english import English
from vrbot.clinic.grammar import load_grammar, slots_of
from vrbot.clinic.reference import NameFinder
from vrbot.clinic.world import LANGUAGES, load_world

WORLD = load_world()
NUM_CONSULTATIONS = 400
REACH = 4
"""So many characters (Chinese) or words (English) before a mention are looked at, within its clause."""

FIRST_PERSON = {"zh": {"我"}, "en": {"i", "i'm", "i've", "i'd", "my", "me", "myself"}}
RELATIVES = {
    "zh": ("儿子", "女儿", "孩子", "爸", "父亲", "妈", "母亲", "老公", "老婆", "爱人"),
    "en": ("son", "daughter", "father", "mother", "husband", "wife"),
}


@dataclass(frozen=True)
class Said:
    """A finding named by the patient, and what stands before it in its clause."""

    turn: int
    own: bool  # the finding is in the state
    before: list[str]  # at most `REACH` characters or words, in small letters

    def in_first_person(self, language: str) -> bool:
        return bool(FIRST_PERSON[language] & set(self.before))


@cache
def held(language: str) -> list[Consultation]:
    return consultations(language, "normal", NUM_CONSULTATIONS)


@cache
def finder(language: str) -> NameFinder:
    return NameFinder(WORLD, language)


def findings_said(consultation: Consultation, language: str) -> Iterator[Said]:
    """Every symptom and disease named by the patient."""
    names = {entity.name(language) for entity in WORLD.entities.values() if entity.kind in ("symptom", "disease")}
    for number, turn in enumerate(consultation.turns):
        for mention in finder(language).linker.find(turn.patient):
            name = finder(language).names[mention.entities[0]]
            if name in names:
                clause = re.split(r"[，。？！、；,.?!;:]| (?=[\u4e00-\u9fff])", turn.patient[: mention.start])[
                    -1
                ].lower()
                words = list(clause) if language == "zh" else clause.split()
                yield Said(number, name in (turn.state or ()), words[-REACH:])


def share_own(said: list[Said]) -> float:
    return sum(one.own for one in said) / len(said)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_first_person_word_before_a_finding_hardly_tells_whose_it_is(language):
    said = [one for consultation in held(language) for one in findings_said(consultation, language)]
    in_first_person = [one for one in said if one.in_first_person(language)]
    assert len(in_first_person) > 0.2 * len(said)
    assert abs(share_own(in_first_person) - share_own(said)) < 0.15


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_first_person_word_right_before_a_finding_does_not_speak_against_the_patient(language):
    patients = [one for one in held(language) if one.patient.relation is None]
    said = [one for consultation in patients for one in findings_said(consultation, language)]
    direct = [one for one in said if FIRST_PERSON[language] & set(one.before[-2 if language == "en" else -1 :])]
    assert len(direct) > 40
    assert share_own(direct) > share_own(said) - 0.1


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_denial_is_said_in_the_first_person_too(language):
    said = [one for consultation in held(language) for one in findings_said(consultation, language)]
    others = [one for one in said if not one.own]
    assert sum(one.in_first_person(language) for one in others) > 0.15 * len(others)


@pytest.mark.parametrize("language", LANGUAGES)
def test_many_who_write_for_themselves_open_in_the_first_person(language):
    patients = [one for one in held(language) if one.patient.relation is None]
    openings = [
        any(one.turn == 0 and one.own and one.in_first_person(language) for one in findings_said(patient, language))
        for patient in patients
    ]
    assert sum(openings) > len(openings) / 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_who_writes_for_a_relative_sometimes_names_the_relative_before_the_finding(language):
    proxies = [one for one in held(language) if one.patient.relation is not None]
    said = [one for proxy in proxies for one in findings_said(proxy, language)]
    joint = "" if language == "zh" else " "
    named = [one for one in said if re.search("|".join(RELATIVES[language]), joint.join(one.before))]
    assert sum(one.own for one in named) >= 5


@pytest.mark.parametrize("language", LANGUAGES)
def test_some_say_in_one_breath_what_they_have_and_for_how_long(language):
    length = r"(有|已经|都)?(.天|.个星期|半个月|.个月|.年|好几年)了" if language == "zh" else r" for (about )?\w+ \w+"
    symptoms = {entity.name(language) for entity in WORLD.entities.values() if entity.kind == "symptom"}
    plain = 0
    for consultation in held(language):
        opening = consultation.turns[0].patient
        mentions = finder(language).linker.find(opening)
        ends = [one.end for one in mentions if finder(language).names[one.entities[0]] in symptoms]
        plain += any(re.compile(length).match(opening, end) for end in ends)
    assert plain > 0.03 * NUM_CONSULTATIONS


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_reply_that_names_nothing_is_a_short_whole_sentence(language):
    rules = load_grammar(language).rules
    replies = [one for rule, ones in rules.items() if rule.startswith("d_") for one in ones if not slots_of(one)]
    assert len(replies) > 40
    for reply in replies:
        size = len(re.findall(r"\w", reply)) if language == "zh" else len(reply.split())
        low, high = (6, 30) if language == "zh" else (4, 18)
        assert low <= size <= high, reply
        assert reply.endswith(("。", "？", "！") if language == "zh" else (".", "?", "!")), reply


@pytest.mark.parametrize(("person", "text"), [("I", "我咳嗽"), ("he", "他咳嗽"), ("she", "她咳嗽")])
def test_chinese_phrases_follow_the_person(person, text):
    assert Chinese().finish("{我}咳嗽", person) == text


@pytest.mark.parametrize(
    ("introduction", "complaint", "text"),
    [
        ("My son is 6. ", "{I've} got a fever", "My son is 6. He's got a fever"),
        ("my son", "{I've} got a fever", "My son has got a fever"),
        ("my son", "{I} {have|has} a fever", "My son has a fever"),
        ("my son", "{I'm} burning up", "My son is burning up"),
        ("my son", "{my} head hurts", "My son's head hurts"),
        ("my son", "there's a fever", "My son is not well. There's a fever"),
    ],
)
def test_an_english_relative_is_named_once_and_then_he_or_she(introduction, complaint, text):
    assert English().finish(English().begin(introduction, "", complaint), "he") == text


def test_a_chinese_relative_is_named_once():
    assert Chinese().begin("我儿子", "", "这几天{我}咳嗽，{我}还发烧") == "我儿子这几天咳嗽，{我}还发烧"
    assert Chinese().begin("我儿子6岁，", "", "{我}咳嗽") == "我儿子6岁，{我}咳嗽"
