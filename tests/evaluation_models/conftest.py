"""The tiny corpus, and runs that were really trained on it, for a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.tiny import SETTINGS, tiny_corpus
from vrbot.baselines.catalogue import build_model
from vrbot.config import recipe
from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.validation import MERIT, build_validation, choose_decoding
from vrbot.training.description import RunPlan
from vrbot.training.runs import Parts, train_run

__all__ = ["tiny_corpus"]

TRAINING = {"training.max_epochs": 2, "training.stage_one_epochs": 1.0, "training.batch_size": 4}


def train_tiny(model: str, corpus: Corpus, out: Path, seed: int = 1) -> Path:
    config = recipe("small").with_settings({**SETTINGS, **TRAINING})
    plan = RunPlan(model, corpus.directory, config, seed)
    train_run(out, plan, Parts(build_model, build_validation, choose_decoding, MERIT, tensorboard=False), threads=1)
    return out


@pytest.fixture(scope="session")
def run_folder(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny("vrbot", corpus, tmp_path_factory.mktemp("runs") / "vrbot")


@pytest.fixture(scope="session")
def other_run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny("seq2seq", corpus, tmp_path_factory.mktemp("runs") / "seq2seq")
