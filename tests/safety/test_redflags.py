"""Red flags on sentences made from templates the rules never read."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.safety.redflag_cases import (
    ABSENT,
    LATER,
    PLAIN,
    SINCE_PLAIN,
    SINGLE,
    STRANGER,
    Case,
    half_rows,
    later,
    later_negatives,
    negatives,
    of_a_stranger,
    positives,
    rows,
)
from vrbot.safety.redflags import NOTICE, categories, scan
from vrbot.safety.tables import items, rows_of

HALVES = {"development": 0, "held out": 1}


def raised(text: str) -> set[str]:
    return {flag.category for flag in scan(text)}


def sensitivity(cases: list[Case]) -> float:
    return sum(case.category in raised(case.text) for case in cases) / len(cases)


def specificity(cases: list[Case]) -> float:
    return sum(not raised(case.text) for case in cases) / len(cases)


def test_there_are_enough_cases_to_measure() -> None:
    assert sum(len(list(positives(half))) for half in (0, 1)) >= 1200
    assert sum(len(list(negatives(half))) for half in (0, 1)) >= 1000
    assert {case.category for case in positives(1)} == set(categories())
    assert sum(len(list(later(name))) for name in LATER) >= 1200
    assert len(list(later_negatives())) >= 1000


@pytest.mark.parametrize("name", LATER)
def test_every_later_set_has_every_category_in_both_languages(name: str) -> None:
    there_was = set(categories()) - SINCE_PLAIN
    assert {(case.category, case.language) for case in later(name)} == {
        (category, language) for category in there_was for language in ("zh", "en")
    }


@pytest.mark.parametrize("name", PLAIN)
def test_every_plain_set_has_every_category_of_a_single_finding_in_both_languages(name: str) -> None:
    wanted = {(category, language) for category in SINGLE for language in ("zh", "en")}
    assert {(case.category, case.language) for case in later(name)} == wanted


def test_no_sentence_stands_in_two_sets() -> None:
    sentences = [row[2] for name in (*LATER, *PLAIN) for row in rows(f"redflag_{name}")]
    sentences += [row[2] for row in rows("redflag_sentences")]
    sentences += [row[3] for name in STRANGER for row in rows(f"redflag_{name}")]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_99_of_100_positives_raise_their_own_category(half: int) -> None:
    assert sensitivity(list(positives(half))) >= 0.99


@pytest.mark.parametrize("name", [*LATER, *PLAIN])
def test_sentences_written_after_the_rules_still_raise_their_category(name: str) -> None:
    assert sensitivity(list(later(name))) >= 0.99


def test_what_a_stranger_wrote_is_judged_right_once_it_was_read() -> None:
    raising, harmless = of_a_stranger("stranger")
    assert sensitivity(raising) >= 0.99
    assert specificity(harmless) >= 0.95


def test_nine_of_ten_plain_sentences_that_nobody_read_raise_their_category() -> None:
    raising, harmless = of_a_stranger("stranger_unread")
    assert sensitivity([case for case in raising if case.kind == "plain"]) >= 0.9
    assert sensitivity(raising) >= 0.75
    assert specificity(harmless) >= 0.9


@pytest.mark.parametrize("kind", [*ABSENT, "similar"])
def test_95_of_100_hard_negatives_written_after_the_rules_raise_nothing(kind: str) -> None:
    assert specificity([case for case in later_negatives() if case.kind == kind]) >= 0.95


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
@pytest.mark.parametrize("kind", [*ABSENT, "similar"])
def test_95_of_100_hard_negatives_of_every_kind_raise_nothing(kind: str, half: int) -> None:
    assert specificity([case for case in negatives(half) if case.kind == kind]) >= 0.95


def test_the_rules_need_no_model_and_none_of_its_parts() -> None:
    program = (
        "import sys\n"
        "from vrbot.safety import medication, redflags\n"
        "assert [one.category for one in redflags.scan('我呕血了')] == ['gi_bleeding']\n"
        "assert medication.check('华法林和布洛芬一起吃', medication.PatientFacts())\n"
        "loaded = {name for name in sys.modules if name.split('.')[0] in ('torch', 'transformers')}\n"
        "own = {name for name in sys.modules if name.startswith(('vrbot.model', 'vrbot.agent', 'vrbot.nets'))}\n"
        "assert not loaded | own, loaded | own\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", ["zh", "en"])
def test_negating_a_positive_removes_it_and_negating_that_brings_it_back(language: str) -> None:
    negate, twice = {"zh": ("没有{}", "不是没有{}"), "en": ("There is no {}", "It is not that there is no {}")}[
        language
    ]
    nouns = [(category, words) for category, code, words in rows("redflag_nouns") if code == language]
    assert [words for category, words in nouns if category in raised(negate.format(words))] == []
    assert [words for category, words in nouns if category not in raised(twice.format(words))] == []


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("没有发烧，但是胸口压榨样疼，出冷汗", "acute_coronary"),
        ("No fever, but crushing chest pain and sweating", "acute_coronary"),
        ("去年做过手术，现在呕血了", "gi_bleeding"),
        ("I had an ulcer years ago and now I am vomiting blood", "gi_bleeding"),
        ("我同事没事，我自己呕血了", "gi_bleeding"),
        ("my friend is fine, but I'm vomiting blood", "gi_bleeding"),
        ("我妈突然嘴歪，右手抬不起来", "stroke"),
    ],
)
def test_what_holds_for_another_finding_time_or_person_does_not_hide_this_one(text: str, category: str) -> None:
    assert category in raised(text)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("I can't breathe", "severe_asthma"),
        ("Help, I cannot breathe", "severe_asthma"),
        ("我突然喘不上气", "severe_asthma"),
        ("我无法呼吸", "severe_asthma"),
        ("my lips are blue", "severe_asthma"),
        ("My baby is not breathing", "cardiac_arrest"),
        ("孩子没有呼吸了", "cardiac_arrest"),
        ("He has no pulse", "cardiac_arrest"),
        ("My husband is unconscious", "unresponsive"),
        ("人晕倒了叫不醒", "unresponsive"),
        ("He collapsed and is not responding", "unresponsive"),
        ("crushing chest pain", "acute_coronary"),
        ("胸口压榨样疼痛半小时", "acute_coronary"),
        ("bleeding won't stop", "severe_bleeding"),
        ("大出血止不住", "severe_bleeding"),
        ("anaphylaxis", "anaphylaxis"),
        ("过敏性休克", "anaphylaxis"),
    ],
)
def test_the_plainest_emergency_needs_no_second_finding(text: str, category: str) -> None:
    assert category in raised(text)


def test_no_pulse_in_a_cold_leg_is_the_legs_and_no_pulse_at_all_is_the_hearts() -> None:
    assert raised("He has no pulse") == {"cardiac_arrest"}
    assert raised("my leg is cold, white and has no pulse") == {"limb_ischaemia"}
    assert raised("右脚冰凉剧痛，摸不到脉搏") == {"limb_ischaemia"}


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("He collapsed early this morning and is not responding", "unresponsive"),
        ("I called the doctor by phone, he is not responding to my voice", "unresponsive"),
        ("叫他起床怎么都叫不醒", "unresponsive"),
        ("My baby is fine but my husband is unconscious", "unresponsive"),
        ("His airway is blocked and he can't breathe", "severe_asthma"),
        ("No blocked nose, but I can't breathe", "severe_asthma"),
        ("工作时突然喘不上气", "severe_asthma"),
        ("We pulled him out of the swimming pool and his lips are blue", "severe_asthma"),
        ("My husband always snores, but now he is not breathing", "cardiac_arrest"),
        ("My wife is pregnant and has no pulse", "cardiac_arrest"),
        ("I missed my period and now I am bleeding heavily", "severe_bleeding"),
    ],
)
def test_what_makes_a_finding_harmless_must_be_said_of_that_finding(text: str, category: str) -> None:
    assert category in raised(text)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("没有外伤史胸痛半小时出冷汗", "acute_coronary"),
        ("从来没有这么胸痛过，出冷汗", "acute_coronary"),
        ("无明显诱因胸痛半小时，出冷汗", "acute_coronary"),
        ("没有吃东西就胸痛，出冷汗", "acute_coronary"),
        ("没有高血压今天胸痛出冷汗", "acute_coronary"),
        ("I have never had chest pain like this, and I am sweating", "acute_coronary"),
        ("Chest pain for no reason with sweating", "acute_coronary"),
    ],
)
def test_a_denial_of_something_else_does_not_reach_the_finding(text: str, category: str) -> None:
    assert category in raised(text)


@pytest.mark.parametrize(
    "text",
    [
        "没有外伤史、胸痛和冷汗",
        "否认胸痛史，出汗多",
        "从来没有胸痛，出冷汗",
        "没有呼吸困难",
        "I have never had chest pain, I am sweating",
    ],
)
def test_a_denial_still_reaches_what_it_denies(text: str) -> None:
    assert raised(text) == set()


@pytest.mark.parametrize(
    "text",
    ["我的胸口没有疼，也没出汗", "My chest does not hurt, no sweating", "会不会呕血？", "If I vomit blood, what then?"],
)
def test_a_negation_inside_a_finding_or_a_question_raises_nothing(text: str) -> None:
    assert raised(text) == set()


def test_a_language_given_leaves_out_the_other_ones_rules() -> None:
    mixed = "呕血了。I want to kill myself"
    assert {flag.category for flag in scan(mixed, "zh")} == {"gi_bleeding"}
    assert {flag.category for flag in scan(mixed, "en")} == {"suicidal_intent"}
    assert raised(mixed) == {"gi_bleeding", "suicidal_intent"}


def test_findings_too_far_apart_are_not_one_picture() -> None:
    assert "acute_coronary" not in raised("胸痛。" + "天气很好。" * 60 + "打球出汗了")


def test_a_flag_behind_a_very_long_text_is_found_at_its_place() -> None:
    text = "今天天气很好。" * 3000 + "我呕血了"
    (flag,) = scan(text)
    assert [text[one.start : one.end] for one in flag.evidence] == ["呕血"]


def test_emergencies_come_before_what_is_only_urgent() -> None:
    assert [flag.severity for flag in scan("被流浪狗咬了流血。后来我呕血了")] == ["emergency", "urgent"]


@given(st.text(max_size=200))
def test_no_text_makes_the_scan_fail_and_evidence_lies_inside_it(text: str) -> None:
    for flag in scan(text):
        assert all(0 <= one.start < one.end <= len(text) for one in flag.evidence)


FRAGMENTS = [
    "胸痛",
    "没有",
    "不",
    "冷汗",
    "如果",
    "，",
    "。",
    "去年",
    "同事",
    "chest pain",
    " no ",
    "sweating",
    "if ",
    "39",
    "/",
    "\ud800",
    "İ",
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join))
def test_no_heap_of_cues_and_findings_makes_the_scan_fail(text: str) -> None:
    assert scan(text) == scan(text)


@given(st.sampled_from(half_rows("redflag_sentences", 0)), st.text(alphabet="好的嗯。\n ", max_size=20))
def test_what_is_said_before_in_its_own_line_changes_nothing(row: tuple[str, ...], before: str) -> None:
    assert raised(row[2]) <= raised(f"{before}\n{row[2]}")


def test_an_utterance_takes_about_a_millisecond() -> None:
    texts = [case.text for case in positives(0)]
    scan(texts[0])
    begun = time.process_time()
    for text in texts:
        scan(text)
    assert (time.process_time() - begun) / len(texts) < 0.004  # about 1 ms; a loaded machine may need more


def test_every_rule_is_whole() -> None:
    concepts = {row["concept"] for row in rows_of("redflag_concepts")}
    used = set()
    for row in rows_of("redflag_rules"):
        assert row["category"] in categories()
        used |= {name for group in row["needs"].split("+") for name in group.strip().split("|")}
        used |= {name for name in row["unless"].split("|") if name}
    assert used == concepts
    assert len({row["rule"] for row in rows_of("redflag_rules")}) == len(rows_of("redflag_rules"))
    assert {row["category"] for row in rows_of("redflag_rules")} == set(categories())
    assert all(items(row["zh"]) and items(row["en"]) for row in rows_of("redflag_concepts"))


def test_every_category_has_advice_in_both_languages_and_a_source() -> None:
    assert len(categories()) >= 30
    for category in categories().values():
        assert all(category.advice.values())
        assert all(category.name.values())
        assert category.reference
    assert "clinician" in NOTICE["en"]
    assert "临床医生" in NOTICE["zh"]
