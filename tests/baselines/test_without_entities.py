"""A corpus without entities: what needs them says so before anything is written, the rest trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.tiny import config_for, sessions, tiny_config, write_splits
from vrbot.baselines.catalogue import CATALOGUE, build_model
from vrbot.dialogue.preparation import prepare
from vrbot.errors import UsageError
from vrbot.training.description import RunPlan
from vrbot.training.runs import Parts, RunOutcome, train_run

CONTENT = {"seq2seq", "hred", "vhred", "hred-bert", "transformer", "ccm", "nkd", "postks"}
"""Systems that learn from words alone."""


@pytest.fixture(scope="module")
def nameless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nameless")
    write_splits(folder / "source", sessions())
    prepare(folder / "source", folder / "corpus")
    return folder / "corpus"


def train(name: str, corpus: Path, out: Path) -> RunOutcome:
    config = config_for(name, tiny_config(training__max_epochs=1, training__stage_one_epochs=0.5))
    plan = RunPlan(name, corpus, config)
    return train_run(out, plan, Parts(build_model, tensorboard=False), threads=1)


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in CONTENT])
def test_a_system_with_states_or_actions_is_refused_before_its_folder_is_written(
    name: str, nameless: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"corpus has no entities: .* --graph, --lexicon or --entities"):
        train(name, nameless, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")  # the judge of hred-bert has nothing to judge
@pytest.mark.parametrize("name", sorted(CONTENT))
def test_a_system_that_learns_from_words_alone_trains(name: str, nameless: Path, tmp_path: Path) -> None:
    assert train(name, nameless, tmp_path / "run").status == "finished"
