"""The loop: shards to gradients to a step, validation, the best model, and a state to resume from at any moment.

Every random number of a step comes from (seed, step, shard), so a run that was killed and resumed, and a run on
several processes, is the same run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from vrbot.config import TrainingSettings
from vrbot.dialogue.batching import Limits, SessionBatch, bucketed_batches, collate, sequential_batches
from vrbot.dialogue.splits import Split
from vrbot.dialogue.supervision import LabelMasks
from vrbot.errors import UsageError, VRBotError
from vrbot.model.contract import Moment, StudiesLabels
from vrbot.training.checkpoints import RunFolder
from vrbot.training.distributed import Workers
from vrbot.training.gradients import clear_gradient, clip_gradient, cut_into_shards
from vrbot.training.observe import Observer, Report
from vrbot.training.optimiser import Optimiser, WeightAverage, rate_factors, trainable
from vrbot.training.progress import (
    Progress,
    after_step,
    first_progress,
    judge,
    learning_rate,
    position,
    second_stage,
    stage_is_over,
    validation_is_due,
)
from vrbot.training.randomness import Use, derived_seed
from vrbot.training.steps import ShardReport, StepData, gradients_of_step, mean_terms

Validate = Callable[[torch.nn.Module], Mapping[str, float | None]]
"""Scores of a model on validation data; may change buffers of the model (calibration), never its parameters."""

LOSS = "loss"


@dataclass(frozen=True)
class TrainingData:
    """What is learnt from, and what judges it; masks say which labels may be used (None: all there are)."""

    train: Split
    valid: Split
    train_masks: LabelMasks | None = None
    valid_masks: LabelMasks | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Outcome:
    """How training ended, and where it stands."""

    status: Literal["finished", "interrupted"]
    progress: Progress


def turns_with(data: TrainingData, needed: Sequence[str]) -> NDArray[np.bool_]:
    """Which training turns have labels of all these kinds that may be used."""
    labels, masks = data.train.labels, data.train_masks
    there = {"state": labels.state_known, "category": labels.category >= 0, "keywords": labels.keywords_known}
    if masks is not None:
        allowed = {"state": masks.state, "category": masks.category, "keywords": masks.keywords}
        there = {kind: known & allowed[kind] for kind, known in there.items()}
    found: NDArray[np.bool_] = np.ones(data.train.num_turns, dtype=bool)
    for kind in needed:
        found = found & there[kind]
    return found


def sessions_with(data: TrainingData, needed: Sequence[str]) -> NDArray[np.int64] | None:
    """The sessions that a model which learns only from turns with these labels can learn from; None: from all."""
    if not needed:
        return None
    turns = np.repeat(np.arange(data.train.num_sessions), data.train.turns_per_session)
    return np.unique(turns[turns_with(data, needed)])


class Trainer:
    """Trains a `DialogueModel` in place; `run` may be called once.

    `validate` gives scores of which `measure` is maximised; without it the validation loss is minimised.
    With a `folder` the run can be resumed from its state there (`resume`).
    """

    def __init__(
        self,
        model: Any,
        settings: TrainingSettings,
        data: TrainingData,
        *,
        seed: int,
        validate: Validate | None = None,
        measure: str = "micro_f1",
        folder: RunFolder | None = None,
        workers: Workers | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        if data.train.num_turns == 0 or data.valid.num_turns == 0:
            raise UsageError(
                "training needs dialogues to learn from and dialogues to validate on: one of the two is empty"
            )
        self.model, self.settings, self.data, self.seed = model, settings, data, seed
        self.workers = workers or Workers()
        self.validate, self.measure = validate, measure if validate else LOSS
        self.folder, self.observers = folder, observers if self.workers.is_first else ()
        self.workers.own_shards(settings.shards)  # refuses a number that cannot be dealt out
        model.to(self.workers.device)
        for student in (model, getattr(model, "objective", None)):
            if isinstance(student, StudiesLabels):
                student.study(model, self._all_turns)
        self.optimiser = Optimiser(trainable(model), settings, rate_factors(model))
        self.average = WeightAverage(self.optimiser.parameters, settings.average_decay)
        self.progress = first_progress(settings)
        self._batches: tuple[int, list[NDArray[np.int64]]] = (-1, [])
        self._usable = sessions_with(data, getattr(model, "needed_labels", ()))

    def _all_turns(self) -> Iterator[SessionBatch]:
        """The training turns with what may be known of them, in a fixed order, long and short dialogues mixed: who
        looks at some of them only sees what all are like."""
        batches = sequential_batches(self.data.train, self.settings.batch_size, self.settings.max_rows)
        for place in np.random.default_rng(0).permutation(len(batches)):
            yield collate(self.data.train, batches[place], self.data.train_masks, self.data.limits)

    def resume(self) -> None:
        """Goes back to the state in the folder."""
        assert self.folder is not None
        self.progress = self.folder.load_state(self.model, self.optimiser, self.average)

    def run(self, wants_to_stop: Callable[[], bool] = lambda: False) -> Outcome:
        """Trains to the end, or until somebody wants to stop; what is done by then is saved."""
        stopping = False
        with self._observed():
            while self.progress.finished is None and not stopping:
                if validation_is_due(self.progress, self.settings, self.epochs_done):
                    self._validation()
                else:
                    self._step()
                stopping = any(self.workers.gather(wants_to_stop()))
                if stopping or self.progress.validated_step == self.progress.step or self._checkpoint_is_due():
                    self._save()
        return Outcome("interrupted" if self.progress.finished is None else "finished", self.progress)

    @property
    def epochs_done(self) -> float:
        return position(self.progress, max(len(self._epoch_batches()), 1))

    def _checkpoint_is_due(self) -> bool:
        return self.progress.step % self.settings.checkpoint_every_steps == 0

    def _epoch_batches(self) -> list[NDArray[np.int64]]:
        """The batches of the current epoch, in order."""
        epoch, settings = self.progress.epoch, self.settings
        if self._batches[0] != epoch:
            batches = bucketed_batches(
                self.data.train,
                settings.batch_size,
                seed=self.seed,
                epoch=epoch,
                max_rows=settings.max_rows,
                among=self._usable,
            )
            self._batches = (epoch, batches)
        return self._batches[1]

    def _step(self) -> None:
        if stage_is_over(self.progress, self.settings, self.epochs_done):
            self.progress = second_stage(self.progress)
        progress, batches = self.progress, self._epoch_batches()
        sessions = batches[progress.index]
        parameters = list(self.optimiser.parameters.values())
        turns = int(self.data.train.turns_per_session[sessions].sum())
        data = StepData(self.data.train, self.data.train_masks, self.data.limits)
        self.model.train()
        reports = gradients_of_step(
            self.model,
            parameters,
            data,
            cut_into_shards(sessions, self.settings.shards),
            self._moment_of,
            turns,
            self.workers,
        )
        self._refuse_unless_finite(reports)
        norm = clip_gradient(parameters, self.settings.gradient_clip)
        if not math.isfinite(norm):
            names = [self.data.train.session_ids[each] for each in sessions.tolist()]
            raise VRBotError(self._not_finite("gradient", names))
        rate = learning_rate(self.settings, self.epochs_done)
        self.optimiser.step(rate)
        clear_gradient(parameters)
        self.progress = after_step(progress, len(batches))
        self.average.update(self.progress.step)
        values = {**mean_terms(reports, turns), "gradient_norm": norm, "learning_rate": rate, "turns": float(turns)}
        self._report(Report("train", self.progress.step, self.epochs_done, progress.stage, turns, values))

    def _moment_of(self, shard: int) -> Moment:
        """Seeds torch (dropout) and a generator for one shard of the current step."""
        derived = derived_seed(self.seed, Use.STEP, self.progress.step, shard)
        torch.manual_seed(derived)
        generator = torch.Generator(self.workers.device).manual_seed(derived)
        return Moment(self.progress.step, self.progress.stage, generator)

    def _refuse_unless_finite(self, reports: Sequence[ShardReport]) -> None:
        bad = [name for report in reports for name in report.bad_sessions]
        if bad:
            raise VRBotError(self._not_finite("loss", bad))

    def _not_finite(self, what: str, names: Sequence[str]) -> str:
        dialogues = ", ".join(repr(name) for name in names)
        return (
            f"the {what} is not finite in step {self.progress.step + 1} (epoch {self.progress.epoch + 1}, stage "
            f"{self.progress.stage}), dialogues {dialogues}: look at them and leave them out of the corpus, or start "
            f"a run with a lower training.learning_rate than {self.settings.learning_rate}; this step is not saved"
        )

    def _validation(self) -> None:
        for observer in self.observers:
            observer.validating()
        progress, epochs_done = self.progress, self.epochs_done
        self.model.eval()
        with torch.no_grad(), self.average.in_place():
            values = self.workers.by_the_first(self._scores)
            self.workers.copy_from_first(list(self.model.buffers()))
        score = -values[LOSS] if self.measure == LOSS else values[self.measure]
        verdict = judge(progress, self.settings, epochs_done, loss=values[LOSS], score=score)
        self.progress = verdict.progress
        self._report(Report("valid", progress.step, epochs_done, progress.stage, 0, values, verdict.is_best))
        if verdict.is_best and self.folder is not None:
            scores = {"step": progress.step, "stage": progress.stage, "measure": self.measure, "scores": _plain(values)}
            folder = self.folder
            self.workers.by_the_first(lambda: folder.save_best(self.model, self.average.averages, scores))

    def _scores(self) -> dict[str, float]:
        values = {LOSS: self._validation_loss()}
        if self.validate is not None:
            torch.manual_seed(derived_seed(self.seed, Use.VALIDATION, self.progress.step))
            found = self.validate(self.model)
            self.model.eval()
            values |= {name: float(value) for name, value in found.items() if value is not None}
        if self.measure not in values:
            raise UsageError(f"validation gives no {self.measure!r} to choose the best model by, only {sorted(values)}")
        return values

    def _validation_loss(self) -> float:
        """Loss per turn of the validation dialogues, with the same noise at every validation."""
        data, total = self.data, 0.0
        for number, sessions in enumerate(
            sequential_batches(data.valid, self.settings.batch_size, self.settings.max_rows)
        ):
            seed = derived_seed(self.seed, Use.VALIDATION_LOSS, number)
            torch.manual_seed(seed)
            generator = torch.Generator(self.workers.device).manual_seed(seed)
            batch = collate(data.valid, sessions, data.valid_masks, data.limits).to(self.workers.device)
            moment = Moment(self.progress.step, self.progress.stage, generator)
            total += float(self.model.loss(batch, moment).total)
        return total / data.valid.num_turns

    def _save(self) -> None:
        folder = self.folder
        if folder is None:
            return
        for name, parameter in self.optimiser.parameters.items():
            if not torch.isfinite(parameter).all():
                raise VRBotError(f"{name} is not finite after step {self.progress.step}: lower training.learning_rate")
        for observer in self.observers:
            observer.saving()
        self.workers.by_the_first(lambda: folder.save_state(self.model, self.optimiser, self.average, self.progress))

    def _report(self, report: Report) -> None:
        for observer in self.observers:
            observer.reported(report)

    @contextmanager
    def _observed(self) -> Iterator[None]:
        begun: list[Observer] = []
        try:
            for observer in self.observers:
                observer.started(self.progress, self.settings.max_epochs)
                begun.append(observer)
            yield
        finally:
            for observer in begun:
                observer.ended()


def _plain(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
