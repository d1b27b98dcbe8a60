"""The command line with the fake model: `python -m tests.training.command train ...`, also under torchrun."""

from __future__ import annotations

import sys
import time
from typing import Any

from tests.training.fake import FakeModel, build_fake, fake_choice, fake_validation
from vrbot.cli import train
from vrbot.cli.main import run
from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus

__all__ = ["build", "fake_choice", "fake_validation"]


class SlowModel(FakeModel):
    """Leaves time to be interrupted."""

    def loss(self, *arguments: Any) -> Any:
        time.sleep(0.03)
        return super().loss(*arguments)


def build(name: str, config: Config, corpus: Corpus) -> FakeModel:
    if name == "slow":
        return SlowModel(len(corpus.vocabulary.words), config.network.embedding_size)
    return build_fake(name, config, corpus)


def use_fake() -> None:
    train.MODELS, train.VALIDATION = f"{__name__}:build", f"{__name__}:fake_validation"
    train.CHOICE, train.MEASURE = f"{__name__}:fake_choice", "micro_f1"


if __name__ == "__main__":
    use_fake()
    sys.exit(run(sys.argv[1:]))
