"""A corpus and a way to train on it, for all tests of training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.kill_resume import digest_of

from tests.training.fake import build_fake, fake_choice, fake_config, fake_validation, write_fake_corpus
from vrbot.training.description import LabelFractions, RunPlan
from vrbot.training.runs import Parts, RunOutcome, train_run

PARTS = Parts(build_fake, fake_validation, fake_choice, tensorboard=False)
HALF = LabelFractions(0.5, 0.5)

Train = Callable[..., RunOutcome]


@pytest.fixture(scope="session")
def corpus_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fake_corpus(tmp_path_factory.mktemp("training"))


@pytest.fixture(scope="session")
def train(corpus_path: Path) -> Train:
    """Trains the fake model into a folder; settings of training are changed by name."""

    def run(out: Path, *, resume: bool = False, seed: int = 3, parts: Parts = PARTS, **changes: Any) -> RunOutcome:
        plan = RunPlan("fake", corpus_path, fake_config(**changes), seed, HALF)
        return train_run(out, plan, parts, resume=resume, threads=1)

    return run


@pytest.fixture(scope="session")
def alone(train: Train, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digest of a run that was left alone."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    train(folder)
    return digest_of(folder)
