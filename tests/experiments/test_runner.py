"""Jobs are done once, side by side, whatever becomes of some of them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.conftest import SMOKE, SmokeAtOnce
from tests.nets.tiny_encoder import tiny_encoder
from vrbot.baselines.catalogue import build_model
from vrbot.errors import UsageError
from vrbot.evaluation.validation import WORD_REWARDS
from vrbot.experiments.folder import REFERENCES, REPLIES, RUN, ExperimentFolder, Job
from vrbot.experiments.job import config_of
from vrbot.experiments.plans import plan_of
from vrbot.experiments.runner import Event, begin, jobs_of, run_experiment, seconds_left

FLEETING = ("wall_seconds", "cpu_seconds", "turns_per_second", "environment")


def lasting(value: Any) -> Any:
    """A result without what the clock, or a commit made meanwhile, decides."""
    if isinstance(value, dict):
        return {name: lasting(part) for name, part in value.items() if name not in FLEETING}
    return value


class Pretended:
    """Jobs that end after some looks; `bad` rows fail, and `most` remembers how many ran at once."""

    def __init__(self, bad: tuple[str, ...] = (), silent: tuple[str, ...] = ()) -> None:
        self.bad, self.silent, self.alive, self.most = bad, silent, 0, 0
        self.order: list[Job] = []

    def __call__(self, folder: ExperimentFolder, job: Job) -> Pretended._Running:
        self.alive += 1
        self.most = max(self.most, self.alive)
        self.order.append(job)
        return self._Running(self, folder, job)

    class _Running:
        def __init__(self, owner: Pretended, folder: ExperimentFolder, job: Job) -> None:
            self.owner, self.folder, self.job, self.looks, self.stopped = owner, folder, job, 0, False

        def poll(self) -> int | None:
            self.looks += 1
            if self.looks < 3 and not self.stopped:
                return None
            self.owner.alive -= 1
            if self.stopped:
                return 130
            if self.job.row in self.owner.bad:
                self.folder.fail(self.job, "ValueError: it\nwent wrong")
                return 1
            if self.job.row in self.owner.silent:
                return -9
            self.folder.job_folder(self.job).mkdir(parents=True, exist_ok=True)
            self.folder.finish(self.job, {"wall_seconds": 10.0})
            return 0

        def stop(self) -> None:
            self.stopped = True


@pytest.fixture
def folder(clinic: Path, tmp_path: Path) -> ExperimentFolder:
    return begin(tmp_path / "out", SMOKE, [clinic])


def test_jobs_run_side_by_side_but_never_more_than_asked_for(folder: ExperimentFolder) -> None:
    jobs, launch = jobs_of(SMOKE, folder.setup()), Pretended()
    outcome = run_experiment(folder, jobs, side_by_side=2, launch=launch, pause=0)
    assert (launch.most, launch.order) == (2, jobs)
    assert set(outcome.finished) == set(jobs)


def test_what_is_finished_is_skipped_and_only_the_rest_is_done(folder: ExperimentFolder) -> None:
    jobs, events = jobs_of(SMOKE, folder.setup()), list[Event]()
    run_experiment(folder, jobs[:2], launch=Pretended(), pause=0)
    again = Pretended()
    outcome = run_experiment(folder, jobs, launch=again, on_event=events.append, pause=0)
    assert outcome.skipped == tuple(jobs[:2])
    assert again.order == jobs[2:]
    assert [event.kind for event in events[:3]] == ["skipped", "skipped", "started"]
    assert (events[-1].done, events[-1].total, events[-1].seconds_left) == (5, 5, 0.0)


def test_a_failed_run_is_recorded_and_does_not_stop_the_others(folder: ExperimentFolder) -> None:
    jobs = jobs_of(SMOKE, folder.setup())
    outcome = run_experiment(folder, jobs, launch=Pretended(("vrbot",), ("seq2seq",)), pause=0)
    assert {job.row for job in outcome.failed} == {"vrbot", "seq2seq"}
    assert [job.row for job in outcome.finished] == [REFERENCES]
    assert folder.failure(Job("clinic", "vrbot", 1)) == "ValueError: it went wrong"
    assert "signal 9" in str(folder.failure(Job("clinic", "seq2seq", 2)))
    outcome = run_experiment(folder, jobs, launch=Pretended(), pause=0)
    assert (len(outcome.skipped), len(outcome.finished)) == (1, 4)
    assert folder.failure(Job("clinic", "vrbot", 1)) is None


def test_a_signal_stops_what_runs_and_starts_no_more(folder: ExperimentFolder) -> None:
    jobs = jobs_of(SMOKE, folder.setup())
    events = []

    def interrupt(event: Event) -> None:
        events.append(event)
        if event.kind == "started" and event.job.row == "seq2seq":
            os.kill(os.getpid(), 15)

    outcome = run_experiment(folder, jobs, launch=Pretended(), on_event=interrupt, pause=0)
    assert [job.row for job in outcome.finished] == [REFERENCES]
    assert set(outcome.interrupted) == set(jobs[1:])
    assert outcome.failed == ()
    assert {event.seconds_left for event in events if event.kind == "interrupted"} == {None}, "nobody waits for it now"


def test_the_time_left_is_that_of_finished_runs_of_the_same_row(folder: ExperimentFolder) -> None:
    jobs = jobs_of(SMOKE, folder.setup())
    assert seconds_left(folder, jobs, jobs, 1) is None
    for job, seconds in ((Job("clinic", "seq2seq", 1), 10.0), (Job("clinic", "vrbot", 1), 30.0)):
        folder.job_folder(job).mkdir(parents=True)
        folder.finish(job, {"wall_seconds": seconds})
    left = [Job("clinic", "seq2seq", 2), Job("clinic", "vrbot", 2)]
    assert seconds_left(folder, jobs, left, 1) == 40.0
    assert seconds_left(folder, jobs, left, 2) == 20.0
    assert seconds_left(folder, jobs, [Job("clinic", "other", 2)], 2) == 20.0


def test_only_some_rows_and_seeds_may_be_asked_for(folder: ExperimentFolder) -> None:
    setup = folder.setup()
    assert jobs_of(SMOKE, setup, ["vrbot"], [2]) == [Job("clinic", "vrbot", 2)]
    assert jobs_of(SMOKE, setup, [REFERENCES]) == [Job("clinic", REFERENCES, 0)]
    assert [job.seed for job in jobs_of(SMOKE, setup)] == [0, 1, 1, 2, 2]
    with pytest.raises(UsageError, match="no row 'gpt'"):
        jobs_of(SMOKE, setup, ["gpt"])


def test_an_experiment_keeps_its_settings_and_may_get_more_seeds(clinic: Path, tmp_path: Path) -> None:
    folder = begin(tmp_path / "out", SMOKE, [clinic], seeds=[1])
    begin(tmp_path / "out", SMOKE, [clinic], seeds=[2])
    assert folder.setup().seeds == (1, 2)
    with pytest.raises(UsageError, match=r"was begun with settings \{\}"):
        begin(tmp_path / "out", SMOKE, [clinic], settings={"training.patience": 9})
    with pytest.raises(UsageError, match="was begun with plan 'smoke', not 'ablations'"):
        begin(tmp_path / "out", plan_of("ablations"), [clinic])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="is no experiment"):
        begin(tmp_path / "mine", SMOKE, [clinic])


def test_where_the_pretrained_encoder_lies_is_this_machines_affair(clinic: Path, tmp_path: Path) -> None:
    plan, place = plan_of("semi-supervised"), tmp_path / "begun"
    begin(place, plan, [clinic])
    without = begin(place, plan, [clinic], settings={}).setup()
    assert without.encoder is None
    told = begin(place, plan, [clinic], settings={"pretrained.directory": str(tiny_encoder())}).setup()
    assert told.settings == without.settings == {}
    assert begin(place, plan, [clinic]).setup() == told
    assert config_of(told, plan, plan.row("hred-bert-s0-a25")).pretrained.directory == str(tiny_encoder())
    other = plan.row("moss-s25-a25")
    assert config_of(told, plan, other) == config_of(without, plan, other)


def test_two_runners_cannot_share_a_folder(folder: ExperimentFolder) -> None:
    with folder.locked(), pytest.raises(UsageError, match="another process"):
        run_experiment(folder, [], launch=Pretended(), pause=0)


def test_what_cannot_be_run_is_refused_before_anything_is(clinic: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give it with --corpus"):
        begin(tmp_path / "out", SMOKE, [])
    with pytest.raises(UsageError, match="two corpora are called 'clinic'"):
        begin(tmp_path / "out", SMOKE, [clinic, clinic])
    assert not (tmp_path / "out").exists()


def test_every_run_of_the_smoke_plan_is_measured_and_says_what_decided_it(smoked: ExperimentFolder) -> None:
    for seed in (1, 2):
        labels = set()
        for row in ("seq2seq", "vrbot"):
            job = Job("clinic", row, seed)
            result = smoked.result(job)
            assert result is not None
            assert (smoked.job_folder(job) / REPLIES).is_file()
            assert result["scores"]["num_turns"] > 0
            assert result["parameters"] > 0
            assert result["wall_seconds"] > 0
            assert result["cpu_seconds"] > 0
            assert result["config"]["training"]["max_epochs"] == 1
            assert result["validation"]["measure"] == "merit"
            assert result["validation"]["choices"]["word_reward"] in WORD_REWARDS
            assert {"commit", "version", "torch"} <= set(result["environment"])
            assert result["threads"] == 1
            assert ("oracle" in result) == (row == "vrbot")
            labels.add((result["labels_sha256"], result["corpus_sha256"]))
        assert len(labels) == 1


def test_an_exception_in_a_run_is_recorded_with_its_error_line(
    clinic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smoked: ExperimentFolder
) -> None:
    def build(name: str, *rest: Any) -> Any:
        if name == "vrbot":
            raise ValueError("no such\nluck")
        return build_model(name, *rest)

    monkeypatch.setattr("vrbot.experiments.job.build_model", build)
    folder = begin(tmp_path / "out", SMOKE, [clinic], seeds=[1], settings={"training.max_epochs": 1})
    jobs = jobs_of(SMOKE, folder.setup(), ["vrbot", "seq2seq"])
    outcome = run_experiment(folder, jobs, launch=SmokeAtOnce, pause=0)
    assert outcome.failed == (Job("clinic", "vrbot", 1),)
    assert folder.failure(Job("clinic", "vrbot", 1)) == "ValueError: no such luck"
    again = folder.result(Job("clinic", "seq2seq", 1))
    assert lasting(again) == lasting(smoked.result(Job("clinic", "seq2seq", 1)))


def test_a_runner_killed_at_work_and_called_again_ends_with_the_same_results(clinic: Path, tmp_path: Path) -> None:
    changes = {"training.max_epochs": 12, "training.validate_every_epochs": 6, "training.checkpoint_every_steps": 1}
    job = Job("clinic", "seq2seq", 1)
    alone = begin(tmp_path / "alone", SMOKE, [clinic], seeds=[1], settings=changes)
    run_experiment(alone, [job], launch=SmokeAtOnce, pause=0)
    killed = begin(tmp_path / "killed", SMOKE, [clinic], seeds=[1], settings=changes)
    options = [part for name, value in changes.items() for part in ("--set", f"{name}={value}")]
    command = ["experiment", "run", "smoke", "--corpus", str(clinic), "--out", str(killed.path), "--seeds", "1"]
    program = [sys.executable, "-c", "from vrbot.cli.main import main; main()"]
    runner = subprocess.Popen([*program, *command, "--only", "seq2seq", *options], stderr=subprocess.DEVNULL)
    state = killed.job_folder(job) / RUN / "state" / "progress.json"
    deadline = time.monotonic() + 300
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    runner.kill()
    runner.wait()
    assert state.exists()
    assert killed.result(job) is None
    outcome = run_experiment(killed, [job], launch=SmokeAtOnce, pause=0)  # waits until the orphan has saved and ended
    assert outcome.finished == (job,)
    assert lasting(killed.result(job)) == lasting(alone.result(job))
    assert (killed.job_folder(job) / REPLIES).read_bytes() == (alone.job_folder(job) / REPLIES).read_bytes()
