"""Simulated consultations that several tests look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pytest

from vrbot.clinic.chart import Act
from vrbot.clinic.consultation import consult, language_of
from vrbot.clinic.patient import Patient, draw_disease, draw_patient
from vrbot.clinic.physician import Physician
from vrbot.clinic.wording import DIFFICULTIES
from vrbot.clinic.world import LANGUAGES, load_world
from vrbot.dialogue.session import Turn

NUM_CONSULTATIONS = 250


@dataclass(frozen=True)
class Snapshot:
    """The chart at one turn, before the physician acts."""

    known: tuple[str, ...]
    denied: frozenset[str]
    prescribed: tuple[str, ...]
    results: Mapping[str, bool]
    diagnosis: str
    act: Act


@dataclass(frozen=True)
class Consultation:
    """A patient's hidden truth, what was said, and what the chart held at every turn."""

    patient: Patient
    turns: tuple[Turn, ...]
    snapshots: tuple[Snapshot, ...]


def consultations(language: str, difficulty: str, count: int) -> list[Consultation]:
    """Some consultations with everything that is known about them."""
    world = load_world()
    physician = Physician(world)
    held = []
    for number in range(count):
        rng = Random(f"tests/{number}")
        patient = draw_patient(world, draw_disease(world, tuple(world.departments), rng), rng)
        snapshots: list[Snapshot] = []
        turns = consult(
            physician,
            patient,
            language_of(language),
            DIFFICULTIES[difficulty],
            rng,
            lambda chart, style, act, kept=snapshots: kept.append(  # type: ignore[misc]
                Snapshot(
                    known=tuple(chart.known),
                    denied=frozenset(chart.denied),
                    prescribed=tuple(chart.prescribed),
                    results=dict(chart.results),
                    diagnosis=chart.diagnosis,
                    act=act,
                )
            ),
        )
        held.append(Consultation(patient, turns, tuple(snapshots)))
    return held


@pytest.fixture(scope="session")
def clinic() -> dict[str, list[Consultation]]:
    """Consultations of hard difficulty, by language."""
    return {language: consultations(language, "hard", NUM_CONSULTATIONS) for language in LANGUAGES}
