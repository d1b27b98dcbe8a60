"""A tiny corpus, tiny agents and a tiny run, for all tests of agents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.model.tiny import config_for, tiny_config, tiny_corpus, tiny_model
from vrbot.agent.card import Facts
from vrbot.agent.pretrained import Pretrained
from vrbot.agent.respond import Agent
from vrbot.baselines.catalogue import build_model
from vrbot.dialogue.corpus import Corpus
from vrbot.model.world import world_of
from vrbot.training.description import RunPlan
from vrbot.training.runs import Parts, train_run

__all__ = ["tiny_corpus"]

MakeAgent = Callable[..., Agent]


@pytest.fixture(scope="session")
def make_agent(corpus: Corpus) -> MakeAgent:
    """An agent with fresh weights: `make_agent(name, form, seed=0)`, with settings changed as in `tiny_config`."""

    def make(name: str = "vrbot", form: str = "small", seed: int = 0, **changes: Any) -> Agent:
        config = config_for(name, tiny_config(form, **changes))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("vrbot.model.world.NGRAM_BUCKETS", 256)
            world = world_of(corpus)
        model = tiny_model(name, config, corpus, seed=seed)
        parameters = sum(parameter.numel() for parameter in model.parameters())  # type: ignore[attr-defined]
        scores = {"micro_f1": 12.345, "bleu_2": None}
        facts = Facts(name, parameters, 7, {"state": 0.25}, "micro_f1", 40, scores, "0")
        return Agent(Pretrained(facts, config, corpus, world, model))  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one epoch."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    config = tiny_config(training__max_epochs=1, training__stage_one_epochs=0.5, decoding__beam=2)
    plan = RunPlan("vrbot", corpus.directory, config, seed=3)
    train_run(folder, plan, Parts(build_model, tensorboard=False), threads=1)
    return folder
