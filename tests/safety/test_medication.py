"""Medication checks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.safety.redflag_cases import rows
from vrbot.safety.medication import MedicationFinding, PatientFacts, check, extract_facts
from vrbot.safety.medicines import LEVELS, drugs, find_drugs, name_of
from vrbot.safety.tables import items, rows_of

FRAMES = {
    "zh": (("{}", "{}"), ("医生你好，{}。", "建议：{}，注意休息。"), ("{}，最近感冒了", "考虑到您的情况，{}")),
    "en": (
        ("{}", "{}"),
        ("Hello doctor, {}.", "My advice: {}, and get some rest."),
        ("{}, I feel poorly", "For now {}"),
    ),
}


def medication_cases() -> Iterator[tuple[tuple[str, str, str], str, str]]:
    """(kind, level, drug), what the patient says, what the physician writes."""
    for kind, level, drug, zh_patient, zh_advice, en_patient, en_advice in rows("medication_cases"):
        for code, patient, advice in (("zh", zh_patient, zh_advice), ("en", en_patient, en_advice)):
            for said, written in FRAMES[code]:
                yield (kind, level, drug), said.format(patient), written.format(advice)


def is_right(expected: tuple[str, str, str], findings: tuple[MedicationFinding, ...]) -> bool:
    """The finding expected is there, and none of another kind."""
    if expected[0] == "none":
        return not findings
    named = {(one.kind, one.level, name) for one in findings for name in (one.drug, one.ingredient)}
    return expected in named and {one.kind for one in findings} == {expected[0]}


def test_every_one_of_500_cases_is_judged_right() -> None:
    cases = list(medication_cases())
    wrong = [
        (said, written)
        for expected, said, written in cases
        if not is_right(expected, check(written, extract_facts(said)))
    ]
    assert len(cases) >= 500
    assert wrong == []


def test_keywords_are_checked_as_text_is() -> None:
    patient = PatientFacts(allergies=frozenset(("penicillin_g",)))
    (finding,) = check(["多喝水", "阿莫西林"], patient)
    assert (finding.kind, finding.level, finding.item, finding.surface) == ("allergy", "stop", 1, "阿莫西林")


def test_two_medicines_of_one_text_are_checked_against_each_other() -> None:
    assert [one.kind for one in check("华法林和布洛芬一起吃", PatientFacts())] == ["interaction"]
    assert [one.kind for one in check("西替利嗪加氯雷他定", PatientFacts())] == ["duplicate"]


def test_alternatives_are_not_taken_together() -> None:
    assert check("西替利嗪或氯雷他定", PatientFacts()) == ()
    assert check("cetirizine or loratadine", PatientFacts()) == ()


def test_the_gravest_finding_comes_first() -> None:
    patient = extract_facts("我怀孕了，有哮喘")
    levels = [LEVELS.index(one.level) for one in check("布洛芬", patient)]
    assert levels == sorted(levels, reverse=True)
    assert len(levels) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("宝宝八个月，对头孢过敏", PatientFacts(age_years=8 / 12, allergies=frozenset(("cephalosporin",)))),
        ("I'm 34 and not pregnant", PatientFacts(age_years=34)),
        ("怀孕三个月", PatientFacts(pregnant=True)),
        ("十二岁，哮喘", PatientFacts(age_years=12, conditions=frozenset(("asthma",)))),
        ("没有高血压，也没有糖尿病", PatientFacts()),
        ("可以吃布洛芬吗？", PatientFacts()),
        ("我在吃华法林", PatientFacts(medicines={"warfarin": "华法林"})),
    ],
)
def test_facts_are_read_from_the_patients_words(text: str, expected: PatientFacts) -> None:
    assert extract_facts(text) == expected


def test_facts_at_both_ends_of_a_long_text_are_read() -> None:
    facts = extract_facts("有哮喘。" + "今天天气很好。" * 2000 + "我在吃华法林，5岁")
    assert facts.conditions == {"asthma"}
    assert set(facts.medicines) == {"warfarin"}
    assert facts.age_years == 5


def test_facts_given_and_facts_read_are_joined() -> None:
    joined = PatientFacts(age_years=5, allergies=frozenset(("nsaid",))).joined(extract_facts("有哮喘，我在吃华法林"))
    assert joined.age_years == 5
    assert joined.allergies == {"nsaid"}
    assert joined.conditions == {"asthma"}
    assert set(joined.medicines) == {"warfarin"}


@pytest.mark.parametrize("drug", sorted(drugs()))
def test_every_name_of_a_drug_finds_it(drug: str) -> None:
    row = next(row for row in rows_of("drugs") if row["drug"] == drug)
    for name in items(row["zh"]) + items(row["en"]):
        assert [mention.id for mention in find_drugs(f"吃 {name} 。")] == [drug]


@pytest.mark.parametrize("drug", sorted(drugs()))
def test_whoever_is_allergic_to_a_drug_is_never_given_it(drug: str) -> None:
    findings = check(name_of(drug, "en"), PatientFacts(allergies=frozenset(drugs()[drug].parts)))
    assert any(one.kind == "allergy" and one.level == "stop" for one in findings)


@given(st.text(max_size=120), st.text(max_size=120))
def test_no_text_makes_the_checks_fail_and_spans_are_where_they_say(said: str, written: str) -> None:
    text = written + " 布洛芬"
    for finding in check(text, extract_facts(said + "哮喘")):
        assert text[finding.start : finding.end] == finding.surface


def test_what_is_advised_against_is_not_proposed() -> None:
    patient = extract_facts("胃溃疡")
    assert check("不要吃布洛芬", patient) == ()
    assert check("Ibuprofen must not be taken", patient) == ()
    assert [one.kind for one in check("不要喝酒，可以吃布洛芬", patient)] == ["contraindication"]


def test_the_tables_name_only_what_there_is() -> None:
    known = set(drugs()) | {name for drug in drugs().values() for name in drug.classes} | {"alcohol"}
    conditions = {row["condition"] for row in rows_of("conditions")}
    assert {part for drug in drugs().values() for part in drug.parts} <= set(drugs())
    assert {row["what"] for row in rows_of("contraindications")} <= known
    assert {row["condition"] for row in rows_of("contraindications")} <= conditions
    assert {row[side] for row in rows_of("interactions") for side in ("one", "other")} <= known
    assert {row[side] for row in rows_of("allergies") for side in ("allergen", "affected")} <= known
    assert {row["class"] for table in ("duplicates", "drug_classes") for row in rows_of(table)} <= known
    rules = [row for table in ("contraindications", "interactions", "allergies") for row in rows_of(table)]
    assert all(row["level"] in LEVELS and row["zh"] and row["en"] and row["reference"] for row in rules)
