"""Simulated physicians: a policy that asks, tests, diagnoses, prescribes, advises and answers.

The policy sees only the chart (what has been said so far), never the hidden patient. Ordering a test counts as
category `diagnosis`; explaining a medicine counts as `prescribe_medicine`; advice and closing count as `chitchat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from vrbot.clinic.answers import answer, avoidable_causes
from vrbot.clinic.chart import Act, Chart
from vrbot.clinic.differential import Differential
from vrbot.clinic.patient import ADULT_AGE
from vrbot.clinic.pharmacy import choose_medicines
from vrbot.clinic.world import Disease, World

MIN_QUESTIONS, MAX_QUESTIONS = 2, 5


@dataclass(frozen=True)
class Style:
    """How one physician works and talks; of a tuple of counts one is drawn each time."""

    name: str  # also the suffix of the phrases
    certainty: float  # diagnoses from this belief on
    symptoms_asked: tuple[int, ...]
    medicines_given: tuple[int, ...]
    tests_ordered: tuple[int, ...]
    explains: float  # how often the reply says why
    other_name: float  # how often an entity is called by another name than its first
    sharpness: float  # how closely the most telling question is followed


STYLES = (
    Style("terse", 0.75, (1, 2), (1, 1, 2), (1,), 0.1, 0.5, 60.0),
    Style("polite", 0.85, (2, 2, 3), (2,), (1, 2), 0.35, 0.4, 80.0),
    Style("long", 0.9, (2, 3, 3), (2, 2, 3), (2,), 0.6, 0.3, 100.0),
)


class Physician:
    """The policy; `decide` depends on the chart, the style and the random draws alone."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.differential = Differential(world)

    def decide(self, chart: Chart, style: Style, rng: Random) -> Act:
        """The next act."""
        if chart.num_turns == 0 and rng.random() < 0.05:
            return Act("d_wait", "chitchat")
        if chart.question is not None:
            return answer(self.world, self.differential, chart, chart.question, rng)
        if chart.leaving:
            return Act("d_close", "chitchat")
        if not chart.diagnosis:
            return self._investigate(chart, style, rng)
        if chart.report:
            return self._follow_up(chart, rng)
        if not chart.prescribed:
            return self._treat(chart, style, rng)
        return self._advise(chart, rng)

    # -- before the diagnosis

    def _investigate(self, chart: Chart, style: Style, rng: Random) -> Act:
        belief = self.differential.belief(chart)
        best = self.differential.likeliest(belief)
        confident = round(float(belief.max()), 9) >= style.certainty
        enough = chart.num_questions >= MIN_QUESTIONS and confident
        if not enough and chart.num_questions < MAX_QUESTIONS:
            question = self._inquire(chart, belief, best, style, rng)
            if question is not None:
                return question
        tests = [test for test in best.tests if test not in chart.results]
        hurry = best.urgent or bool(chart.tests_ordered)
        if tests and not hurry and rng.random() < (0.55 if confident else 0.85):
            return _order(tests, best, confident, style, rng)
        return _diagnose(chart, best, style, rng)

    def _inquire(
        self, chart: Chart, belief: NDArray[np.float64], best: Disease, style: Style, rng: Random
    ) -> Act | None:
        draw = rng.random()
        if chart.num_questions >= 1 and not chart.medicines_settled and draw < 0.1:
            return Act("d_ask_medicine", "ask_symptoms")
        if chart.num_questions >= 1 and not chart.circumstances_settled and draw > 0.7:
            causes = self._open_causes(chart, best)
            if causes:
                if causes[0] in self.world.diseases:
                    return Act("d_history", "ask_symptoms", {"disease": causes[:1]})
                return Act("d_circumstance", "ask_symptoms", {"questions": causes[:1]})
        count = rng.choice(style.symptoms_asked)
        symptoms = self.differential.telling_symptoms(chart, belief, count, style.sharpness, rng)
        if not symptoms:
            return None
        if len(symptoms) == 1 or rng.random() < 0.3:
            return Act("d_question", "ask_symptoms", {"questions": symptoms[:2]})
        return Act("d_ask", "ask_symptoms", {"symptoms": symptoms})

    def _open_causes(self, chart: Chart, disease: Disease) -> tuple[str, ...]:
        skipped = {*chart.known, *chart.asked} | (self.world.adult if chart.age < ADULT_AGE else frozenset())
        return tuple(cause for cause in disease.causes if cause not in skipped)

    # -- after it

    def _treat(self, chart: Chart, style: Style, rng: Random) -> Act:
        disease = self.world.diseases[chart.diagnosis]
        if not chart.allergy_settled and not disease.urgent and rng.random() < 0.5:
            allergy = {"allergy": ("drug_allergy",)}
            if chart.sex == "female" and 18 <= chart.age <= 45 and "pregnancy" not in chart.known:
                return Act("d_allergy_pregnancy", "ask_symptoms", {**allergy, "pregnancy": ("pregnancy",)})
            return Act("d_allergy", "ask_symptoms", allergy)
        medicines = choose_medicines(self.world, chart, rng.choice(style.medicines_given), rng)
        if not medicines:
            return self._advise(chart, rng)
        slots = {"medicines": medicines}
        if disease.urgent:
            return Act("d_prescribe_urgent", "prescribe_medicine", slots)
        adverse = self.world.medicines[medicines[0]].adverse[:1]
        draw = rng.random()
        if draw < style.explains / 2:
            return Act("d_prescribe_disease", "prescribe_medicine", {"disease": (disease.id,), **slots})
        if draw > 1 - style.explains / 2 and adverse and len(medicines) == 1:
            return Act("d_prescribe_adverse", "prescribe_medicine", {**slots, "adverse": adverse})
        return Act("d_prescribe", "prescribe_medicine", slots)

    def _follow_up(self, chart: Chart, rng: Random) -> Act:
        replacement = choose_medicines(self.world, chart, 1, rng)
        if chart.report == "side_effect":
            reactions = self.world.medicines
            culprit = next(one for one in chart.prescribed if chart.side_effect in reactions[one].adverse)
            slots = {"adverse": (chart.side_effect,), "old": (culprit,)}
            if replacement and rng.random() < 0.5:
                return Act("d_replace_adverse", "prescribe_medicine", {**slots, "medicines": replacement})
            return Act("d_tolerate_adverse", "prescribe_medicine", slots)
        if chart.report == "worse" and replacement:
            return Act("d_switch", "prescribe_medicine", {"medicines": replacement})
        if chart.report == "worse" or rng.random() < 0.3:
            return Act("d_review", "chitchat")
        return Act("d_continue", "prescribe_medicine", {"medicines": tuple(chart.prescribed[:1])})

    def _advise(self, chart: Chart, rng: Random) -> Act:
        avoid = avoidable_causes(self.world, chart)[:2]
        if chart.advised or not avoid or rng.random() < 0.25:
            return Act("d_advice_plain", "chitchat")
        return Act("d_advice", "chitchat", {"avoid": avoid})


def _order(tests: Sequence[str], best: Disease, confident: bool, style: Style, rng: Random) -> Act:
    ordered = tuple(tests[: rng.choice(style.tests_ordered)])
    if confident and rng.random() < style.explains + 0.2:
        return Act("d_test_suspect", "diagnosis", {"disease": (best.id,), "tests": ordered})
    return Act("d_test", "diagnosis", {"tests": ordered})


def _diagnose(chart: Chart, best: Disease, style: Style, rng: Random) -> Act:
    named = {"disease": (best.id,)}
    if best.urgent:
        return Act("d_urgent", "diagnosis", named)
    evidence = tuple(symptom for symptom in best.typical if symptom in chart.known)[:2]
    causes = tuple(cause for cause in best.causes if cause in chart.known)[:1]
    if rng.random() < style.explains:
        if causes and rng.random() < 0.5:
            return Act("d_diagnose_cause", "diagnosis", {**named, "cause": causes})
        if len(evidence) == 2:
            return Act("d_diagnose_evidence", "diagnosis", {**named, "evidence": evidence})
    return Act("d_diagnose", "diagnosis", named)
