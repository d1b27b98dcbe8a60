"""A tiny clinic, and the smoke plan run on it once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.invented import AtOnce
from vrbot.experiments.folder import ExperimentFolder
from vrbot.experiments.plans import plan_of
from vrbot.experiments.runner import begin, jobs_of, run_experiment
from vrbot.experiments.smoke import smoke_corpus

SMOKE = plan_of("smoke")


class SmokeAtOnce(AtOnce):
    plan = SMOKE


@pytest.fixture(scope="session")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return smoke_corpus(tmp_path_factory.mktemp("experiments"), dialogues=12)


@pytest.fixture(scope="session")
def smoked(clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> ExperimentFolder:
    """The smoke plan, finished; tests read it only."""
    folder = begin(tmp_path_factory.mktemp("smoke") / "out", SMOKE, [clinic], settings={"training.max_epochs": 1})
    outcome = run_experiment(folder, jobs_of(SMOKE, folder.setup()), launch=SmokeAtOnce, pause=0)
    assert len(outcome.finished) == 5
    return folder
