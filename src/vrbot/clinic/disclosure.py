"""What a patient gives away, or only seems to: each sentence together with what it truly makes known.

Present findings, medicines taken, tests done and known conditions enter the state; denied, doubtful, feared, merely
offered and other people's do not. Words and truth are written in the same place so that they cannot part.
"""

from __future__ import annotations

from random import Random

from vrbot.clinic.chart import Chart
from vrbot.clinic.grammar import fill
from vrbot.clinic.patient import Condition, Patient
from vrbot.clinic.wording import Difficulty, Language
from vrbot.clinic.world import Entity, World

COMMON_COMPLAINTS = (
    "cough",
    "fever",
    "runny_nose",
    "sore_throat",
    "diarrhoea",
    "vomiting",
    "rash",
    "itching",
    "headache",
    "red_eyes",
    "stuffy_nose",
    "abdominal_pain",
    "sneezing",
    "dizziness",
    "trouble_falling_asleep",
    "low_back_pain",
    "palpitations",
    "joint_pain",
    "constipation",
)
"""What people readily tell about others."""


class Disclosure:
    """The sentences of one patient; each method writes into the chart what its sentence reveals."""

    def __init__(
        self, world: World, language: Language, patient: Patient, difficulty: Difficulty, chart: Chart, rng: Random
    ) -> None:
        self.world, self.language, self.patient = world, language, patient
        self.difficulty, self.chart, self.rng = difficulty, chart, rng

    # -- what is there

    def symptoms(self, symptoms: list[str]) -> str:
        """These symptoms, named, paraphrased or implied."""
        if not symptoms:
            return ""
        entities = [self.entity(symptom) for symptom in symptoms]
        text, order = self.language.present(entities, self.difficulty, self.rng)
        self.chart.learn(*(entity.id for entity in order))
        return text

    def unsaid_symptoms(self) -> list[str]:
        """What the patient has and nobody has mentioned yet, most telling first."""
        said = {*self.chart.known, *self.chart.asked}
        return [symptom for symptom in self.patient.symptoms if symptom not in said]

    def condition(self, condition: Condition) -> str:
        """A long-standing disease, perhaps with its medicine."""
        self.chart.conditions.add(condition.disease)
        if self.rng.random() < self.difficulty.implied + 0.1:
            self.chart.learn(condition.disease)
            return {one.id: one.implied for one in self.world.background}[condition.disease][self.language.code]
        if self.rng.random() < 0.5:
            self.chart.learn(condition.disease)
            return self.named("condition_alone", condition.disease)
        disease = self.language.spoken(self.entity(condition.disease), self.rng)
        template = self.phrase("condition")
        medicine = self.language.spoken(self.entity(condition.medicine), self.rng)
        in_order = (condition.disease, condition.medicine)
        self.chart.learn(*(in_order if template.index("[x]") < template.index("[m]") else reversed(in_order)))
        return fill(template, {"x": disease, "m": medicine})

    def circumstance(self, attribute: str) -> str:
        """A habit or an occasion that may have to do with it."""
        self.chart.learn(attribute)
        return self.rng.choice(self.entity(attribute).wordings[self.language.code].said)

    def taken(self, medicine: str) -> str:
        """A medicine already tried, perhaps given by who writes."""
        self.chart.learn(medicine)
        self.chart.medicines_settled = True
        rule = "taken" if self.patient.relation is None else "given"
        return fill(self.phrase(rule), {"x": self.language.spoken(self.entity(medicine), self.rng)})

    def allergy(self, rule: str) -> str:
        """What the patient cannot take; the medicine named is not taken, only the allergy is there."""
        kind = self.patient.allergy or ""
        self.chart.allergy, self.chart.allergy_settled = kind, True
        self.chart.learn("drug_allergy")
        return fill(self.phrase(rule), {"x": self.world.allergies[kind][self.language.code]})

    def pregnancy(self) -> str:
        """That she is pregnant."""
        self.chart.learn("pregnancy")
        return fill(self.phrase("pregnant_yes"), {"n": self.language.number(2 + self.patient.age % 6)})

    def test_result(self, test: str, rule: str, found: bool) -> str:
        """A test done and what came of it."""
        self.chart.results[test] = found
        self.chart.learn(test)
        column = f"{self.language.code}_{'found' if found else 'normal'}"
        result = self.rng.choice(self.world.results[test][column].split(";"))
        spoken = self.language.spoken(self.entity(test), self.rng)
        return fill(self.phrase(rule), {"t": spoken, "bt": self.bare(test), "r": result})

    # -- what would mislead a reader who only looks for names

    def denial(self) -> str:
        """Something the patient does not have, said unasked."""
        absent = self._absent_symptoms(self.rng.choice((1, 2)))
        self.chart.denied.update(absent)
        return self.language.absent([self.entity(one) for one in absent], self.rng) if absent else ""

    def someone_else(self) -> str:
        """What another person has."""
        other = self.rng.choice(self.language.others)
        if self.rng.random() < 0.3:
            shared = [one.id for one in self.world.background if not self.world.diseases[one.id].sex]
            disease = self.language.spoken(self.entity(self.rng.choice(shared)), self.rng)
            return fill(self.phrase("other_disease"), {"other": other, "x": disease})
        skipped = {*self.chart.known, *self.patient.symptoms, *self.patient.implied_symptoms}
        symptom = self.rng.choice([one for one in COMMON_COMPLAINTS if one not in skipped])
        by_relative = self.patient.relation is not None and self.rng.random() < 0.5
        content = {"other": other, "x": self.language.spoken(self.entity(symptom), self.rng)}
        return fill(self.phrase("other_self" if by_relative else "other_person"), content)

    def medicine_not_taken(self) -> str:
        """A medicine that was offered, or lies at home."""
        usual = self.world.diseases[self.patient.disease].medicines
        offered = [one for one in usual if one not in self.chart.known and one not in self.patient.taken]
        return self.named("not_taken", self.rng.choice(offered)) if offered else ""

    def _absent_symptoms(self, count: int) -> list[str]:
        department = self.world.diseases[self.patient.disease].department
        nearby = dict.fromkeys(
            symptom
            for disease in self.world.diseases.values()
            if disease.department == department and disease.sex in ("", self.patient.sex)
            for symptom in disease.typical
        )
        said = {
            *self.patient.symptoms,
            *self.patient.implied_symptoms,
            *self.chart.known,
            *self.chart.denied,
            *self.chart.asked,
        }
        open_ones = [symptom for symptom in nearby if symptom not in said]
        return self.rng.sample(open_ones, min(count, len(open_ones)))

    # -- words

    def entity(self, entity: str) -> Entity:
        """The entity with this id."""
        return self.world.entities[entity]

    def bare(self, entity: str) -> str:
        """One of its names, without article or verb."""
        return self.rng.choice(self.entity(entity).wordings[self.language.code].names)

    def named(self, rule: str, entity: str) -> str:
        """The rule with this entity in it."""
        return self.language.named(rule, self.entity(entity), self.rng)

    def phrase(self, rule: str) -> str:
        """One wording of the rule."""
        return self.language.grammar.expand(rule, self.rng)
