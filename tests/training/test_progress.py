"""Stages, learning rate, validations and the end of a run follow from where it stands."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrbot.config import TrainingSettings
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

SETTINGS = TrainingSettings(max_epochs=4, stage_one_epochs=1.5, validate_every_epochs=0.3, patience=2)


def validations(settings: TrainingSettings, num_batches: int) -> list[float]:
    """The positions at which a run validates that never improves nor loses patience."""
    settings = settings.model_copy(update={"patience": 10_000})
    progress, found = first_progress(settings), []
    while progress.finished is None:
        epochs_done = position(progress, num_batches)
        if validation_is_due(progress, settings, epochs_done):
            found.append(epochs_done)
            progress = judge(progress, settings, epochs_done, loss=1.0, score=0.0).progress
        else:
            progress = after_step(progress, num_batches)
    return found


@given(every=st.sampled_from([0.1, 0.3, 0.5, 1.0, 2.5]), num_batches=st.integers(1, 40), max_epochs=st.integers(1, 4))
def test_every_interval_is_validated_once_and_the_end_always(every: float, num_batches: int, max_epochs: int) -> None:
    found = validations(TrainingSettings(validate_every_epochs=every, max_epochs=max_epochs), num_batches)
    assert found[-1] == max_epochs
    assert found == sorted(set(found))
    for number in range(1, math.floor(max_epochs / every + 1e-9) + 1):
        due = number * every
        first_step_there = math.ceil(round(due * num_batches, 6)) / num_batches
        assert any(math.isclose(place, first_step_there) for place in found)


def test_the_learning_rate_falls_in_a_line_from_first_to_last() -> None:
    rates = [learning_rate(SETTINGS, done) for done in (0, 1, 2, 3, 4)]
    assert rates[0] == SETTINGS.learning_rate
    assert rates[-1] == pytest.approx(SETTINGS.final_learning_rate)
    assert all(math.isclose(a - b, rates[0] - rates[1]) for a, b in itertools.pairwise(rates))


def test_without_time_for_stage_one_a_run_begins_in_stage_two() -> None:
    assert first_progress(TrainingSettings(stage_one_epochs=0)).stage == 2
    assert first_progress(SETTINGS).stage == 1


@pytest.mark.parametrize(("done", "over"), [(0.0, False), (1.49, False), (1.5, True), (3.0, True)])
def test_stage_one_ends_after_its_share_of_epochs(done: float, over: bool) -> None:
    assert stage_is_over(Progress(stage=1), SETTINGS, done) is over
    assert not stage_is_over(Progress(stage=2), SETTINGS, done)


def test_stage_one_ends_early_when_its_loss_stops_falling() -> None:
    progress = Progress(stage=1, step=5)
    for loss, stage in [(3.0, 1), (2.0, 1), (2.1, 1), (2.0, 2)]:
        progress = judge(progress, SETTINGS, 0.5, loss=loss, score=1.0).progress
        assert progress.stage == stage
    assert (progress.waited, progress.best_score, progress.finished) == (0, None, None)


def test_stage_two_ends_when_the_score_stops_rising_whatever_the_loss_does() -> None:
    progress = Progress(stage=2, step=5)
    best: list[bool] = []
    for number, score in enumerate((1.0, 2.0, 1.5, 2.0)):
        verdict = judge(progress, SETTINGS, 2.0, loss=9.0 - number, score=score)
        progress, best = verdict.progress, [*best, verdict.is_best]
    assert best == [True, True, False, False]
    assert progress.finished is not None
    assert progress.best_score == 2.0


def test_the_first_validation_of_stage_two_replaces_the_best_of_stage_one() -> None:
    first = judge(Progress(stage=1, step=5), SETTINGS, 0.5, loss=1.0, score=50.0).progress
    second = replace(second_stage(first), step=6)
    assert judge(second, SETTINGS, 1.6, loss=1.0, score=10.0).is_best


@pytest.mark.parametrize("nothing", [math.nan, math.inf])
def test_what_is_not_a_number_is_never_an_improvement(nothing: float) -> None:
    progress = Progress(stage=1, step=5, stage_loss=2.0, best_score=1.0)
    verdict = judge(progress, SETTINGS, 0.5, loss=nothing, score=math.nan)
    assert (verdict.is_best, verdict.progress.waited, verdict.progress.stage_loss) == (False, 1, 2.0)


def test_progress_comes_back_from_its_dictionary() -> None:
    progress = Progress(stage=2, step=7, epoch=1, index=3, best_score=0.1 + 0.2, finished="why")
    assert Progress.from_dict(progress.as_dict()) == progress
