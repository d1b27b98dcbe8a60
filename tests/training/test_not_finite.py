"""What is not finite stops the run, names the dialogues, and is never saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.kill_resume import digest_of

from tests.training.conftest import PARTS, Train
from tests.training.fake import build_fake
from vrbot.errors import UsageError, VRBotError
from vrbot.model.contract import BatchLoss
from vrbot.training.checkpoints import RunFolder
from vrbot.training.runs import Parts

SICK = "train-17"


def spoiled(kind: str, first_step: int) -> Parts:
    """Parts whose model fails on one dialogue: in the loss of the session, in the sum only, or in the gradient only."""

    def build(*arguments: Any) -> torch.nn.Module:
        model: Any = build_fake(*arguments)
        loss = model.loss

        def spoiled_loss(batch: Any, moment: Any) -> BatchLoss:
            found: BatchLoss = loss(batch, moment)
            if not model.training or SICK not in batch.session_ids or moment.step < first_step:
                return found
            if kind == "session":
                bad = torch.tensor([name == SICK for name in batch.session_ids])
                total = found.total * torch.nan
                return replace(found, total=total, per_session=found.per_session.masked_fill(bad, torch.inf))
            if kind == "sum":
                return replace(found, total=found.total / 0.0)
            zero = (model.hidden.weight * 0).abs().sum()
            return replace(found, total=found.total + zero.sqrt())  # finite, but its slope is 0 times infinity

        model.loss = spoiled_loss
        return model  # type: ignore[no-any-return]

    return replace(PARTS, build=build)


@pytest.mark.parametrize("kind", ["session", "sum", "gradient"])
@pytest.mark.parametrize("shards", [1, 2])
def test_the_run_stops_names_the_dialogue_and_keeps_the_checkpoint_before(
    train: Train, tmp_path: Path, kind: str, shards: int
) -> None:
    with pytest.raises(VRBotError, match="is not finite") as caught:
        train(tmp_path / "bad", shards=shards, checkpoint_every_steps=1, parts=spoiled(kind, 6))
    message = str(caught.value)
    assert f"'{SICK}'" in message
    assert ("gradient" in message) == (kind == "gradient")
    assert message.count("'train-") == 1 or kind != "session"
    saved = RunFolder(tmp_path / "bad").progress()
    assert saved is not None
    assert f"in step {saved.step + 1} " in message
    train(tmp_path / "bad", shards=shards, checkpoint_every_steps=1, resume=True)
    train(tmp_path / "good", shards=shards, checkpoint_every_steps=1)
    assert digest_of(tmp_path / "bad") == digest_of(tmp_path / "good")


def test_a_validation_without_the_measure_is_refused_by_name(train: Train, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'macro_f1'.*\['loss', 'micro_f1'\]"):
        train(tmp_path / "run", parts=replace(PARTS, measure="macro_f1"))


def test_without_a_validation_the_lowest_loss_is_best(train: Train, tmp_path: Path) -> None:
    outcome = train(tmp_path / "run", parts=replace(PARTS, validation=None), stage_one_epochs=0)
    assert outcome.progress.best_score is not None
    assert outcome.progress.best_score == -(outcome.progress.stage_loss or 0)
