"""The physician's differential: how likely each disease is, and which symptoms would tell most about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from vrbot.clinic.chart import Chart
from vrbot.clinic.world import Disease, World

TYPICAL, OCCASIONAL, STRAY = 0.8, 0.3, 0.02
"""How likely a physician thinks a symptom is, given a disease that has it as typical, occasional, or not at all."""

FOUND, NOT_FOUND = math.log(2.5), math.log(0.4)
"""What a test result adds to the log odds of a disease the test is made for."""

WORTH_A_QUESTION = 0.03
"""Diseases less likely than this give no reason to ask."""

EXPECTED_WEIGHT = 0.1
NUM_CANDIDATES = 8
OF_WOMEN = frozenset(("menstrual_changes", "heavy_periods"))


class Differential:
    """Naive Bayes over the world's diseases."""

    def __init__(self, world: World) -> None:
        self.kind_of = world.kind_of
        self.diseases = tuple(world.diseases.values())
        self.symptoms = world.of_kind("symptom")
        self.columns = {symptom: column for column, symptom in enumerate(self.symptoms)}
        self.likelihood = np.array([self._row(disease) for disease in self.diseases])  # [diseases, symptoms]
        self.noise = _entropy(self.likelihood)

    def belief(self, chart: Chart) -> NDArray[np.float64]:
        """One probability per disease, given what the chart says."""
        score = np.log([_prior(disease, chart) for disease in self.diseases])
        for entity in chart.known:
            if entity in self.columns:
                score += np.log(self.likelihood[:, self.columns[entity]])
        for entity in sorted(chart.denied & self.columns.keys()):
            score += np.log1p(-self.likelihood[:, self.columns[entity]])
        for test, found in chart.results.items():
            score += np.array([_evidence(test, found, disease) for disease in self.diseases])
        weights = np.exp(score - score.max())
        return np.asarray(weights / weights.sum())

    def likeliest(self, belief: NDArray[np.float64]) -> Disease:
        """The disease believed in most; rounding makes ties fall the same way on every machine."""
        return self.diseases[int(np.round(belief, 9).argmax())]

    def telling_symptoms(
        self, chart: Chart, belief: NDArray[np.float64], count: int, sharpness: float, rng: Random
    ) -> tuple[str, ...]:
        """Up to `count` open symptoms, drawn by how much their answer would tell (mutual information, in nats).

        Likelier symptoms are preferred a little, and those of hardly possible diseases left out.
        """
        expected = belief @ self.likelihood
        gain = np.round(_entropy(expected) - belief @ self.noise + EXPECTED_WEIGHT * expected, 6)
        candidates = self._open_symptoms(chart, belief)
        candidates.sort(key=lambda symptom: (-gain[self.columns[symptom]], symptom))
        return _draw_by_gain(
            [(symptom, float(gain[self.columns[symptom]])) for symptom in candidates[:NUM_CANDIDATES]],
            count,
            sharpness,
            rng,
        )

    def _open_symptoms(self, chart: Chart, belief: NDArray[np.float64]) -> list[str]:
        skipped = {*chart.known, *chart.asked, *chart.denied, *(OF_WOMEN if chart.sex == "male" else ())}
        skipped |= {general for symptom in chart.known for general in self.kind_of.get(symptom, ())}
        wanted = dict.fromkeys(
            symptom
            for disease, probability in zip(self.diseases, np.round(belief, 9), strict=True)
            if probability >= WORTH_A_QUESTION
            for symptom in disease.typical + disease.occasional
        )
        ruled_out = chart.denied
        return [one for one in wanted if one not in skipped and not ruled_out & {*self.kind_of[one]}]

    def _row(self, disease: Disease) -> list[float]:
        return [
            TYPICAL if symptom in disease.typical else OCCASIONAL if symptom in disease.occasional else STRAY
            for symptom in self.symptoms
        ]


def _draw_by_gain(
    candidates: Sequence[tuple[str, float]], count: int, sharpness: float, rng: Random
) -> tuple[str, ...]:
    left = list(candidates)
    chosen: list[str] = []
    while left and len(chosen) < count:
        weights = [math.exp(sharpness * (gain - left[0][1])) for _, gain in left]
        chosen.append(left.pop(rng.choices(range(len(left)), weights=weights)[0])[0])
    return tuple(chosen)


def _prior(disease: Disease, chart: Chart) -> float:
    low, high = disease.ages
    fits = (1.0 if disease.sex in ("", chart.sex) else 0.02) * (1.0 if low <= chart.age <= high else 0.05)
    return disease.weight * fits * (0.02 if disease.id in chart.conditions else 1.0)


def _evidence(test: str, found: bool, disease: Disease) -> float:
    if test in disease.confirming:
        return FOUND if found else NOT_FOUND
    return 0.0


def _entropy(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Entropy of a coin with this probability, in nats."""
    return -(probability * np.log(probability) + (1 - probability) * np.log1p(-probability))
