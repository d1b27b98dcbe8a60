"""Simulated patients: who they are, what they really have, and what they will say about it if asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from vrbot.clinic.world import Disease, World

TYPICAL_SHARE, OCCASIONAL_SHARE = 0.82, 0.3
"""How often a disease shows its typical and its occasional symptoms."""

STRAY_SYMPTOMS = ("fatigue", "headache", "dizziness", "poor_appetite", "low_back_pain", "cough")
STRAY_SHARE = 0.05
CIRCUMSTANCE_SHARE = 0.6
CHILD_AGE, ADULT_AGE, ELDER_AGE = 13, 16, 62


@dataclass(frozen=True)
class Condition:
    """A long-standing disease and the medicine taken for it."""

    disease: str
    medicine: str


@dataclass(frozen=True)
class Patient:
    """The hidden truth of one consultation; entries are entity ids."""

    disease: str
    age: int
    sex: str  # "male" or "female"
    relation: str | None  # whom the speaker writes for: None for themselves, else "son", "mother", ...
    days: int
    symptoms: tuple[str, ...]  # those present, most telling first
    circumstances: tuple[str, ...]
    conditions: tuple[Condition, ...]
    allergy: str | None  # a kind of medicine
    pregnant: bool
    taken: tuple[str, ...]  # medicines already tried for this illness
    tested: tuple[str, ...]  # tests already done
    curiosity: int  # questions the patient will ask after the prescription
    comes_back: bool
    implied_symptoms: frozenset[str]  # more general forms of the symptoms: true as well, though never volunteered


def draw_patient(world: World, disease: Disease, rng: Random) -> Patient:
    """A patient with this disease; everything else is drawn."""
    low, high = disease.ages
    age = rng.randint(low, high)
    sex = disease.sex or rng.choice(("male", "female"))
    conditions = _conditions(world, disease, age, sex, rng)
    pregnant = sex == "female" and 22 <= age <= 40 and rng.random() < 0.08
    symptoms = _symptoms(disease, sex, rng)
    allergy = rng.choice(tuple(world.allergies)) if rng.random() < 0.18 else None
    return Patient(
        disease=disease.id,
        age=age,
        sex=sex,
        relation=_relation(age, sex, rng),
        days=rng.randint(*disease.days) if rng.random() < 0.6 else disease.days[0] + 1,
        symptoms=symptoms,
        circumstances=tuple(
            cause
            for cause in disease.causes
            if world.entities[cause].kind == "attribute"
            and (age >= ADULT_AGE or cause not in world.adult)
            and rng.random() < CIRCUMSTANCE_SHARE
        ),
        conditions=conditions,
        allergy=allergy,
        pregnant=pregnant,
        taken=_tried_medicines(world, disease, age, allergy, rng),
        tested=(rng.choice(disease.tests),) if rng.random() < 0.15 else (),
        curiosity=rng.choice((0, 1, 1, 2, 2, 3)),
        comes_back=not disease.urgent and rng.random() < 0.4,
        implied_symptoms=frozenset(general for one in symptoms for general in world.kind_of[one]),
    )


def draw_disease(world: World, departments: Sequence[str], rng: Random) -> Disease:
    """A disease of these departments, common ones more often."""
    candidates = [disease for disease in world.diseases.values() if disease.department in departments]
    return rng.choices(candidates, weights=[disease.weight for disease in candidates])[0]


def _symptoms(disease: Disease, sex: str, rng: Random) -> tuple[str, ...]:
    def possible(symptom: str) -> bool:
        return sex == "female" or symptom not in ("menstrual_changes", "heavy_periods")

    present = [symptom for symptom in disease.typical if rng.random() < TYPICAL_SHARE]
    if len(present) < 2:
        present = list(disease.typical[:2])
    present += [symptom for symptom in disease.occasional if possible(symptom) and rng.random() < OCCASIONAL_SHARE]
    known = {*disease.typical, *disease.occasional}
    present += [symptom for symptom in STRAY_SYMPTOMS if symptom not in known and rng.random() < STRAY_SHARE]
    return tuple(present)


def _conditions(world: World, disease: Disease, age: int, sex: str, rng: Random) -> tuple[Condition, ...]:
    found = []
    for background in world.background:
        fits = age >= background.age_low and world.diseases[background.id].sex in ("", sex)
        share = background.share * (2.0 if background.id in disease.causes else 1.0)
        if fits and background.id != disease.id and rng.random() < share:
            found.append(Condition(background.id, rng.choice(background.medicines)))
    return tuple(found[:2])


def _tried_medicines(world: World, disease: Disease, age: int, allergy: str | None, rng: Random) -> tuple[str, ...]:
    if disease.urgent or rng.random() > 0.35:
        return ()
    usual = [
        medicine
        for medicine in disease.medicines
        if world.medicines[medicine].min_age <= age
        and world.medicines[medicine].kind != allergy
        and world.medicines[medicine].form != "injection"
    ]
    return (rng.choice(usual),) if usual else ()


def _relation(age: int, sex: str, rng: Random) -> str | None:
    male = sex == "male"
    if age < CHILD_AGE:
        return "son" if male else "daughter"
    if age >= ELDER_AGE and rng.random() < 0.45:
        return "father" if male else "mother"
    if age >= 25 and rng.random() < 0.12:
        return "husband" if male else "wife"
    return None
