"""How the physician answers what the patient asks; the answers follow from the chart and the world alone."""

from __future__ import annotations

from random import Random

from vrbot.clinic.chart import Act, Chart, Question
from vrbot.clinic.differential import Differential
from vrbot.clinic.pharmacy import COMBINED, choose_medicines, may_take, purpose_of
from vrbot.clinic.world import World

POSSIBLE = 0.1
"""A feared disease believed in this much is not ruled out."""

LASTING_DAYS = 60
"""A disease that can last this long is not better within a week."""


def answer(world: World, differential: Differential, chart: Chart, question: Question, rng: Random) -> Act:
    """The reply to the patient's question."""
    if question.kind == "ask_worry":
        return _about_fear(world, differential, chart, question.subject)
    if question.kind == "ask_medicine":
        return _about_other_medicine(world, chart, question.subject)
    if question.kind == "object_allergy":
        replacement = choose_medicines(world, chart, 1, rng)
        if replacement:
            return Act("d_replace", "prescribe_medicine", {"medicines": replacement})
        return Act("d_review", "chitchat")
    if question.kind in ("ask_side_effects", "ask_usage"):
        return _about_prescribed(world, chart, question.kind)
    return _about_disease(world, chart, question.kind)


def avoidable_causes(world: World, chart: Chart) -> tuple[str, ...]:
    """What the patient had better leave, what is known of them first."""
    causes = [cause for cause in world.diseases[chart.diagnosis].causes if cause in world.avoidable]
    return tuple(sorted(causes, key=lambda cause: cause not in chart.known))


def _about_fear(world: World, differential: Differential, chart: Chart, feared: str) -> Act:
    facts = world.diseases[feared]
    missing = tuple(symptom for symptom in facts.typical if symptom in chart.denied)[:1]
    named = {"disease": (feared,)}
    if missing:
        return Act("d_worry_no", "diagnosis", {**named, "missing": missing})
    believed = round(float(differential.belief(chart)[differential.diseases.index(facts)]), 9)
    possible = not chart.diagnosis and believed > POSSIBLE
    return Act("d_worry_maybe" if possible else "d_worry_plain", "diagnosis", named)


def _about_other_medicine(world: World, chart: Chart, medicine: str) -> Act:
    named = {"medicine": (medicine,)}
    risks = {*chart.known, *chart.conditions} - {chart.diagnosis}
    reasons = tuple(risk for risk in world.medicines[medicine].avoid if risk in risks)[:1]
    if reasons:
        return Act("d_medicine_avoid", "prescribe_medicine", {"condition": reasons, **named})
    useful = medicine in world.diseases[chart.diagnosis].medicines
    doubled = purpose_of(world, medicine) in {purpose_of(world, one) for one in chart.prescribed} - COMBINED
    fits = useful and not doubled and may_take(world, chart, medicine)
    return Act("d_medicine_yes" if fits else "d_medicine_no", "prescribe_medicine", named)


def _about_prescribed(world: World, chart: Chart, kind: str) -> Act:
    medicine = chart.prescribed[0]
    named = {"medicine": (medicine,)}
    if kind == "ask_usage":
        return Act("d_usage", "prescribe_medicine", named)
    adverse = world.medicines[medicine].adverse[:2]
    if not adverse:
        return Act("d_side_effects_none", "prescribe_medicine", named)
    return Act("d_side_effects", "prescribe_medicine", {**named, "adverse": adverse})


def _about_disease(world: World, chart: Chart, kind: str) -> Act:
    disease = world.diseases[chart.diagnosis]
    if kind == "ask_serious":
        if not disease.complications:
            return Act("d_serious_mild", "chitchat")
        rule = "d_serious_urgent" if disease.urgent else "d_serious"
        return Act(rule, "diagnosis", {"complications": disease.complications[:1]})
    if kind == "ask_contagious":
        return Act("d_contagious_yes" if disease.contagious else "d_contagious_no", "chitchat")
    if kind == "ask_cause":
        causes = tuple(sorted(disease.causes, key=lambda cause: cause not in chart.known))
        if not causes:
            return Act("d_cause_unknown", "chitchat")
        return Act("d_cause", "diagnosis", {"cause": causes[:1]})
    if kind == "ask_review":
        return Act("d_review_long" if disease.days[1] >= LASTING_DAYS else "d_review", "chitchat")
    avoid = avoidable_causes(world, chart)[:2]
    return Act("d_diet", "chitchat", {"avoid": avoid}) if avoid else Act("d_diet_plain", "chitchat")
