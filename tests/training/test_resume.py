"""Same seed, same run: after a stop, after a kill at any moment, after a failure of the disk."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.kill_resume import FAKE, Death, Lives, Task, campaign, digest_of

from tests.training.conftest import HALF, PARTS, Train
from tests.training.fake import build_fake, fake_config, write_fake_corpus
from tests.training.test_sealed import faults
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import IntegrityError, UsageError, VRBotError
from vrbot.model.weights import tensors_from_bytes
from vrbot.sealed import read_sealed
from vrbot.training.checkpoints import CHOICES, RunFolder
from vrbot.training.description import RunPlan, plan_differences
from vrbot.training.runs import Parts, open_run, train_run


@pytest.fixture(scope="module")
def lives(corpus_path: Path) -> Lives:
    return Lives(Task(FAKE, corpus_path, fake_config(), labels=HALF))


def stopping_after(passes: int) -> Parts:
    """Parts whose model asks to stop, as Ctrl-C does, in its n-th loss of training."""

    def build(*arguments: Any) -> torch.nn.Module:
        model: Any = build_fake(*arguments)
        loss, count = model.loss, 0

        def counted(*things: Any) -> Any:
            nonlocal count
            count += model.training
            if count == passes:
                os.kill(os.getpid(), 2)
            return loss(*things)

        model.loss = counted
        return model  # type: ignore[no-any-return]

    return replace(PARTS, build=build)


def test_the_same_seed_gives_the_same_run_and_another_seed_another(
    train: Train, alone: dict[str, str], tmp_path: Path
) -> None:
    train(tmp_path / "same")
    assert digest_of(tmp_path / "same") == alone
    train(tmp_path / "other", seed=4)
    other = digest_of(tmp_path / "other")
    assert all(other[name] != alone[name] for name in ("state/model.safetensors", "best/model.safetensors", "metrics"))


def test_every_shard_of_every_step_has_its_own_random_numbers(train: Train, tmp_path: Path) -> None:
    seeds: list[tuple[int, int]] = []

    def build(*arguments: Any) -> torch.nn.Module:
        model: Any = build_fake(*arguments)
        loss = model.loss

        def noting(batch: Any, moment: Any) -> Any:
            if model.training:
                seeds.append((torch.initial_seed(), moment.generator.initial_seed()))
            return loss(batch, moment)

        model.loss = noting
        return model  # type: ignore[no-any-return]

    steps = train(tmp_path / "run", parts=replace(PARTS, build=build)).progress.step
    for of_one_kind in zip(*seeds, strict=True):
        assert len(set(of_one_kind)) == len(of_one_kind) == 2 * steps


def test_a_resumed_run_uses_as_many_threads_as_before(corpus_path: Path, tmp_path: Path) -> None:
    plan = RunPlan("fake", corpus_path, fake_config(), 3, HALF)
    former = torch.get_num_threads()
    try:
        train_run(tmp_path / "run", plan, stopping_after(3), threads=former + 1)
        torch.set_num_threads(former)
        train_run(tmp_path / "run", None, PARTS, resume=True)
        assert torch.get_num_threads() == former + 1
    finally:
        torch.set_num_threads(former)


@pytest.mark.parametrize("passes", [1, 9, 20])
def test_a_run_stopped_by_a_signal_saves_and_goes_on_as_if_nothing_had_happened(
    train: Train, alone: dict[str, str], tmp_path: Path, passes: int
) -> None:
    outcome = train(tmp_path / "run", parts=stopping_after(passes))
    assert outcome.status == "interrupted"
    assert outcome.progress.step == (passes + 1) // 2  # two shards a step: the step is finished first
    assert RunFolder(tmp_path / "run").progress() == outcome.progress
    assert train(tmp_path / "run", resume=True).status == "finished"
    assert digest_of(tmp_path / "run") == alone


def test_a_second_signal_stops_at_once_and_loses_only_what_was_not_saved(
    train: Train, alone: dict[str, str], tmp_path: Path
) -> None:
    twice = stopping_after(15)

    def build(*arguments: Any) -> torch.nn.Module:
        model: Any = twice.build(*arguments)
        loss, count = model.loss, 0

        def counted(*things: Any) -> Any:
            nonlocal count
            count += model.training
            if count == 16:
                os.kill(os.getpid(), 15)
            return loss(*things)

        model.loss = counted
        return model  # type: ignore[no-any-return]

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", parts=replace(PARTS, build=build))
    assert train(tmp_path / "run", resume=True).status == "finished"
    assert digest_of(tmp_path / "run") == alone


def test_a_finished_run_has_nothing_left_to_do(train: Train, alone: dict[str, str], tmp_path: Path) -> None:
    train(tmp_path / "run")
    assert train(tmp_path / "run", resume=True).status == "already finished"
    assert digest_of(tmp_path / "run") == alone


DEATHS = [
    Death("saving: write", 2),  # in the middle of the description of the run
    Death("stage 1", 5),
    Death("validation: loss", 1),
    Death("validation: scores", 1),
    *(Death("saving", number) for number in range(1, 40, 3)),
    Death("stage 2", 4),
    Death("saving: rmtree", 2),
    Death("after the last save", 1),
]


def test_a_run_killed_at_every_kind_of_moment_ends_as_one_left_alone(
    lives: Lives, alone: dict[str, str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    endings = [lives.live(run, death) for death in DEATHS]
    assert all(ending.was_killed for ending in endings)
    assert {ending.place for ending in endings} >= {"stage 1", "stage 2", "validation", "saving", "after the last save"}
    assert not lives.live(run).was_killed
    assert digest_of(run) == alone


def test_a_small_campaign_of_random_kills_finds_no_difference(corpus_path: Path, tmp_path: Path) -> None:
    figures = campaign(Task(FAKE, corpus_path, fake_config(), labels=HALF), tmp_path, kills=6, seed=1)
    assert figures["kills"] >= 6
    assert figures["differing"] == {}


@pytest.mark.parametrize("number", [1, 20, 45, 70, 120, 165])
def test_a_disk_that_fails_once_stops_the_run_loudly_and_costs_nothing(
    train: Train, alone: dict[str, str], tmp_path: Path, number: int
) -> None:
    run = tmp_path / "run"
    with (
        pytest.raises((VRBotError, OSError), match="No space left"),
        faults(number, calls=("write", "fsync", "rename")),
    ):
        train(run)
    train(run, resume=RunFolder(run).exists)
    assert digest_of(run) == alone


def test_a_damaged_state_is_refused_and_left_as_it_is(train: Train, tmp_path: Path) -> None:
    train(tmp_path / "run", parts=stopping_after(9))
    for path in sorted((tmp_path / "run" / "state").iterdir()):
        good = path.read_bytes()
        path.write_bytes(good[:-2] + bytes([good[-2] ^ 4]) + good[-1:])
        with pytest.raises(IntegrityError, match=path.name):
            train(tmp_path / "run", resume=True)
        path.write_bytes(good)
    assert train(tmp_path / "run", resume=True).status == "finished"


@pytest.mark.parametrize("name", ["config.yaml", "labels.json", "run.json"])
def test_a_changed_description_is_refused(train: Train, tmp_path: Path, name: str) -> None:
    train(tmp_path / "run", max_epochs=1)
    path = tmp_path / "run" / name
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    with pytest.raises(IntegrityError, match=name):
        train(tmp_path / "run", resume=True, max_epochs=1)


def test_another_corpus_is_refused(train: Train, tmp_path: Path, corpus_path: Path) -> None:
    train(tmp_path / "run", parts=stopping_after(3))
    other = write_fake_corpus(tmp_path / "other", num_sessions=31)
    with pytest.raises(UsageError, match="not the corpus"):
        train_run(tmp_path / "run", RunPlan("fake", other, fake_config(), 3, HALF), PARTS, resume=True)
    moved = shutil.copytree(corpus_path, tmp_path / "moved")
    plan = RunPlan("fake", moved, fake_config(), 3, HALF)
    assert train_run(tmp_path / "run", plan, PARTS, resume=True).status == "finished"


def test_other_settings_are_refused_by_name(train: Train, tmp_path: Path) -> None:
    train(tmp_path / "run", parts=stopping_after(3))
    with pytest.raises(UsageError, match=r"seed is 3, not 5; training\.batch_size is 6, not 7 \(") as caught:
        train(tmp_path / "run", resume=True, seed=5, batch_size=7)
    assert "max_epochs" not in str(caught.value)
    plan = open_run(tmp_path / "run").plan
    assert plan_differences(plan, plan) == []


def test_a_folder_with_a_run_or_with_something_else_is_not_overwritten(train: Train, tmp_path: Path) -> None:
    train(tmp_path / "run", max_epochs=1)
    with pytest.raises(UsageError, match="--resume"):
        train(tmp_path / "run", max_epochs=1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="not a run"):
        train(tmp_path / "mine")
    with pytest.raises(UsageError, match="not a run"):
        train(tmp_path / "nothing", resume=True)
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]
    assert not (tmp_path / "nothing").exists()


def test_two_processes_cannot_train_in_one_folder(train: Train, tmp_path: Path) -> None:
    train(tmp_path / "run", parts=stopping_after(3))
    with RunFolder(tmp_path / "run").locked(), pytest.raises(UsageError, match="another process"):
        train(tmp_path / "run", resume=True)


def test_the_best_model_has_the_averaged_weights_and_the_calibration_it_was_judged_with(
    train: Train, tmp_path: Path
) -> None:
    train(tmp_path / "run")
    description = open_run(tmp_path / "run")
    plan = description.plan
    model: Any = build_fake(plan.model, plan.config, Corpus.open(plan.corpus))
    RunFolder(tmp_path / "run").load_best(model)
    scores = json.loads((tmp_path / "run" / "best" / "scores.json").read_bytes())
    assert scores["measure"] == description.measure == "micro_f1"
    weight = float(model.embedding.weight.detach().abs().mean())
    assert 0 <= scores["scores"]["micro_f1"] - weight < 1e-3  # the fake score: this, and a little noise
    assert model.calibration != 0
    state = read_sealed(tmp_path / "run" / "state")
    own = tensors_from_bytes(state["model.safetensors"])
    average = tensors_from_bytes(state["average.safetensors"])
    assert not torch.equal(own["hidden.weight"], average["hidden.weight"])


def test_what_is_left_to_choose_is_chosen_once_for_the_best_model_by_whoever_finishes_the_run(
    train: Train, tmp_path: Path
) -> None:
    seen: list[dict[str, torch.Tensor]] = []

    def choose(model: torch.nn.Module, *_: Any) -> dict[str, float]:
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return {"word_reward": 0.4}

    def die(*_: Any) -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", parts=replace(PARTS, choose=die))
    best = RunFolder(tmp_path / "run").best
    before = read_sealed(best)
    assert CHOICES not in json.loads(before["scores.json"])
    for _ in range(2):
        status = train(tmp_path / "run", parts=replace(PARTS, choose=choose), resume=True).status
        assert status == "already finished"
    after = read_sealed(best)
    assert json.loads(after["scores.json"]) == {**json.loads(before["scores.json"]), CHOICES: {"word_reward": 0.4}}
    assert after["model.safetensors"] == before["model.safetensors"]
    [weights] = seen
    assert all(
        torch.equal(weights[name], value) for name, value in tensors_from_bytes(after["model.safetensors"]).items()
    )
