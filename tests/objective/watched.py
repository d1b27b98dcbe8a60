"""An objective that keeps its terms, with gradient, for the tests to look at."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tests.model.tiny import tiny_vrbot
from vrbot.config import Config
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.contract import BatchLoss, Moment
from vrbot.model.vrbot import VRBot
from vrbot.objective.variational import VariationalObjective


class WatchedObjective(VariationalObjective):
    """The terms of the latest batch, [N] each, are in `seen`."""

    seen: dict[str, Tensor]

    def _total(self, batch: SessionBatch, terms: dict[str, Tensor], *rest: Any) -> BatchLoss:
        self.seen = dict(terms)
        return super()._total(batch, terms, *rest)


def watched_vrbot(config: Config, corpus: Corpus, *, name: str = "vrbot", scale: float = 2.0) -> VRBot:
    """A tiny model whose objective is watched."""
    model = tiny_vrbot(config, corpus, name=name, scale=scale)
    objective = model.objective
    assert isinstance(objective, VariationalObjective)
    model.objective = WatchedObjective(objective.settings, objective.preference, objective.labels)
    return model


def terms_of(model: VRBot, batch: SessionBatch, moment: Moment) -> dict[str, Tensor]:
    """Every term of every turn, with gradient; each call computes them anew."""
    model.loss(batch, moment)
    assert isinstance(model.objective, WatchedObjective)
    return model.objective.seen
