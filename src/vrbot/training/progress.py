"""Where a run stands, and what that decides: the stage, the learning rate, when to validate, when to stop."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from vrbot.config import TrainingSettings

_ROUNDING = 1e-9  # 0.1 * 3 is a little more than 0.3


@dataclass(frozen=True)
class Progress:
    """Everything the loop must remember beside tensors; equal for equal runs, so it holds no clock time."""

    stage: int
    step: int = 0  # steps done
    epoch: int = 0
    index: int = 0  # batches done of this epoch
    intervals: int = 0  # validation intervals that lay behind at the last validation
    validated_step: int = -1
    waited: int = 0  # validations in a row that brought nothing, in this stage
    stage_loss: float | None = None  # lowest validation loss of this stage
    best_score: float | None = None  # of this stage
    best_step: int = -1
    finished: str | None = None  # why, when it is

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Progress:
        return cls(**{field.name: content[field.name] for field in fields(cls)})


def first_progress(settings: TrainingSettings) -> Progress:
    """The beginning: stage 1, unless it is given no time."""
    return Progress(stage=1 if settings.stage_one_epochs > 0 else 2)


def position(progress: Progress, num_batches: int) -> float:
    """How many epochs lie behind; `num_batches` are those of the current epoch."""
    return progress.epoch + progress.index / num_batches


def after_step(progress: Progress, num_batches: int) -> Progress:
    """One batch later."""
    index = progress.index + 1
    if index < num_batches:
        return replace(progress, step=progress.step + 1, index=index)
    return replace(progress, step=progress.step + 1, epoch=progress.epoch + 1, index=0)


def learning_rate(settings: TrainingSettings, epochs_done: float) -> float:
    """Falls in a straight line from the first to the final rate over the whole budget."""
    done = min(epochs_done / settings.max_epochs, 1.0)
    return settings.learning_rate + (settings.final_learning_rate - settings.learning_rate) * done


def stage_is_over(progress: Progress, settings: TrainingSettings, epochs_done: float) -> bool:
    """Whether stage 1 has had its time."""
    return progress.stage == 1 and epochs_done >= settings.stage_one_epochs - _ROUNDING


def second_stage(progress: Progress) -> Progress:
    """Stage 2 is judged afresh: its first validation replaces the best model of stage 1."""
    return replace(progress, stage=2, waited=0, stage_loss=None, best_score=None, best_step=-1)


def intervals_behind(settings: TrainingSettings, epochs_done: float) -> int:
    return math.floor(epochs_done / settings.validate_every_epochs + _ROUNDING)


def validation_is_due(progress: Progress, settings: TrainingSettings, epochs_done: float) -> bool:
    """After every interval, and at the end of the budget."""
    if progress.validated_step == progress.step or progress.step == 0:
        return False
    return progress.epoch >= settings.max_epochs or intervals_behind(settings, epochs_done) > progress.intervals


@dataclass(frozen=True)
class Verdict:
    """What a validation means for the run."""

    progress: Progress
    is_best: bool


def judge(progress: Progress, settings: TrainingSettings, epochs_done: float, *, loss: float, score: float) -> Verdict:
    """Stage 1 waits for the loss, stage 2 for the score; no patience left ends the stage.

    Something that is not a number is never an improvement.
    """
    is_best = progress.best_score is None or score > progress.best_score
    lower = math.isfinite(loss) and (progress.stage_loss is None or loss < progress.stage_loss)
    improved = lower if progress.stage == 1 else is_best
    after = replace(
        progress,
        validated_step=progress.step,
        intervals=intervals_behind(settings, epochs_done),
        waited=0 if improved else progress.waited + 1,
        stage_loss=loss if lower else progress.stage_loss,
        best_score=_number(score) if is_best else progress.best_score,
        best_step=progress.step if is_best else progress.best_step,
    )
    if after.epoch >= settings.max_epochs:
        return Verdict(replace(after, finished="the budget of epochs is used up"), is_best)
    if after.waited < settings.patience:
        return Verdict(after, is_best)
    if after.stage == 1:
        return Verdict(second_stage(after), is_best)
    return Verdict(replace(after, finished=f"{after.waited} validations in a row brought nothing better"), is_best)


def _number(score: float) -> float | None:
    return score if math.isfinite(score) else None
