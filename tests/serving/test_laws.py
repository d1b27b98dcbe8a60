"""The desk's promises under chance: sequences of events, kills, tamperings."""

from __future__ import annotations

from pathlib import Path

from benchmarks.store_kills import kill_campaign
from benchmarks.tampering import tampering_campaign
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.serving.approval_machine import ApprovalMachine
from tests.serving.conftest import OpenStore
from vrbot.serving.chain import FileWitness


def test_no_sequence_of_events_shows_a_patient_what_was_not_approved() -> None:
    few = settings(max_examples=200, stateful_step_count=15, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(ApprovalMachine, settings=few)


def test_no_acknowledged_turn_is_lost_when_the_writer_is_killed(database: str, tmp_path: Path) -> None:
    figures = kill_campaign(database, FileWitness(tmp_path / "desk.witness"), kills=12, seed=1)
    assert figures.kills == 12
    assert figures.acknowledged > 0
    assert (figures.lost, figures.gaps, figures.faults) == (0, 0, ())


def test_every_tampering_is_found(database: str, open_store: OpenStore) -> None:
    figures = tampering_campaign(open_store(database), tamperings=200, seed=1)
    assert sum(figures.tried.values()) == 200
    assert len(figures.tried) == 8
    assert figures.missed == ()
