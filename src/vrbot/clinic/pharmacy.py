"""Which medicines a patient may have."""

from __future__ import annotations

from random import Random

from vrbot.clinic.chart import Chart
from vrbot.clinic.world import World

COMBINED = frozenset(("tb_drug",))
"""Purposes for which several medicines are given together; for every other one is enough."""

ANTIBIOTICS = frozenset(("penicillin", "cephalosporin", "macrolide", "quinolone", "tetracycline", "antibiotic_urinary"))

NEXT_CHOICE = 0.25
"""How much less likely each next medicine in a disease's list is than the one before."""


def may_take(world: World, chart: Chart, medicine: str) -> bool:
    """Whether age, allergy and what is known leave this medicine possible."""
    facts = world.medicines[medicine]
    risks = {*chart.known, *chart.conditions} - {chart.diagnosis}
    return chart.age >= facts.min_age and facts.kind != chart.allergy and not risks & {*facts.avoid}


def purpose_of(world: World, medicine: str) -> str:
    """What the medicine is for; two for the same purpose are not given together."""
    kind = world.medicines[medicine].kind
    return "antibiotic" if kind in ANTIBIOTICS else kind


def choose_medicines(world: World, chart: Chart, count: int, rng: Random) -> tuple[str, ...]:
    """Up to `count` medicines for the diagnosis that this patient may take and has not had, usual ones first."""
    had = {*chart.known, *chart.prescribed}
    left = [
        medicine
        for medicine in world.diseases[chart.diagnosis].medicines
        if medicine not in had and may_take(world, chart, medicine)
    ]
    chosen: list[str] = []
    served = {purpose_of(world, medicine) for medicine in chart.prescribed} - COMBINED
    while len(chosen) < count:
        left = [medicine for medicine in left if purpose_of(world, medicine) not in served]
        if not left:
            break
        weights = [NEXT_CHOICE**rank for rank in range(len(left))]
        chosen.append(left.pop(rng.choices(range(len(left)), weights=weights)[0]))
        served |= {purpose_of(world, chosen[-1])} - COMBINED
    return tuple(chosen)
