"""Kills training at random moments and resumes it: `python -m benchmarks.kill_resume --kills 50 [--json FILE]`.

A run that was killed and resumed any number of times must end with the very weights, optimiser state, best model and
metrics of one that was left alone. Half of the kills come at a random time, half at a random one of the points the
run passes: before a batch of either stage, in a validation, before (or in the middle of) every write, fsync, rename and
removal of a save, and after the last one. Lives are forked from a server that has torch loaded, and killed by SIGKILL.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # torch loads it at the first backward pass, which would take a second of every life

from vrbot.config import Config
from vrbot.training.checkpoints import RunFolder
from vrbot.training.description import LabelFractions, RunPlan
from vrbot.training.runs import Parts, train_run

FAKE = "fake"
PLACES = ("starting", "stage 1", "stage 2", "validation", "saving", "after the last save")
KILLS_PER_RUN = 20


@dataclass(frozen=True)
class Task:
    """What is trained in every life."""

    model: str
    corpus: Path
    config: Config
    validation: str | None = None  # module:name
    labels: LabelFractions = field(default_factory=lambda: LabelFractions(0.5, 0.5))

    def parts(self) -> Parts:
        if self.model == FAKE:
            from tests.training.fake import build_fake, fake_choice, fake_validation

            return Parts(build_fake, fake_validation, fake_choice, tensorboard=False)
        from vrbot.baselines.catalogue import build_model

        return Parts(build_model, _named(self.validation), tensorboard=False)


@dataclass(frozen=True)
class Death:
    """When a life ends by itself: at the n-th passing of points whose name begins with `point`."""

    point: str = ""
    passing: int = 0  # 0: never


NEVER = Death()


class Clockwork:
    """Counts the points a life passes, tells the parent where it is, and kills it where it is to die."""

    def __init__(self, death: Death, place: Any, passed: Any) -> None:
        self.death, self.place, self.passed = death, place, passed
        self.matches = 0

    def pass_by(self, place: str, point: str, before_death: Callable[[], object] = lambda: None) -> None:
        self.place.value = PLACES.index(place)
        self.passed.value += 1
        self.matches += f"{place}: {point}".startswith(self.death.point)
        if self.matches == self.death.passing:
            before_death()
            os.kill(os.getpid(), signal.SIGKILL)

    def watch_disk(self) -> None:
        """Every call a save makes to the system is a point; a write that dies has written half."""
        write: Callable[..., Any] = os.write
        others: list[tuple[Any, str]] = [(os, "fsync"), (os, "rename"), (shutil, "rmtree")]

        def half(descriptor: int, data: Any) -> int:
            self.pass_by("saving", "write", lambda: write(descriptor, data[: len(data) // 2]))
            return int(write(descriptor, data))

        def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                self.pass_by("saving", name)
                return real(*arguments, **options)

            return call

        for module, name in others:
            setattr(module, name, watched(name, getattr(module, name)))
        setattr(os, "write", half)  # noqa: B010

    def watched_parts(self, parts: Parts) -> Parts:
        def build(*arguments: Any) -> torch.nn.Module:
            model: Any = parts.build(*arguments)
            loss = model.loss

            def watched_loss(batch: Any, moment: Any) -> Any:
                if model.training:
                    self.pass_by(f"stage {moment.stage}", "batch")
                else:
                    self.pass_by("validation", "loss")
                return loss(batch, moment)

            model.loss = watched_loss
            return model  # type: ignore[no-any-return]

        def validation(*arguments: Any) -> Any:
            validate = parts.validation(*arguments) if parts.validation else lambda model: {}

            def watched_validation(model: Any) -> Any:
                self.pass_by("validation", "scores")
                return validate(model)

            return watched_validation

        return replace(parts, build=build, validation=validation if parts.validation else None)


def live(task: Task, run: Path, death: Death, place: Any, passed: Any) -> None:
    """One life: starts the run or resumes it, and dies when its time has come."""
    clockwork = Clockwork(death, place, passed)
    clockwork.watch_disk()
    plan = RunPlan(task.model, task.corpus, task.config, seed=3, labels=task.labels)
    train_run(run, plan, clockwork.watched_parts(task.parts()), resume=RunFolder(run).exists, threads=1)
    clockwork.pass_by("after the last save", "exit")


@dataclass(frozen=True)
class Ending:
    """How a life ended."""

    was_killed: bool
    place: str
    passed: int
    seconds: float


class Lives:
    """Starts lives and watches them."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["benchmarks.kill_resume", "tests.training.fake", "vrbot.training.runs"])

    def live(self, run: Path, death: Death = NEVER, seconds: float | None = None) -> Ending:
        """One life, killed from outside after `seconds`, if it is still alive then."""
        place, passed = self.context.Value("i", 0, lock=False), self.context.Value("i", 0, lock=False)
        started = time.perf_counter()
        process = self.context.Process(target=live, args=(self.task, run, death, place, passed))
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
        if process.exitcode not in (0, -signal.SIGKILL):
            raise SystemExit(f"a life ended with exit code {process.exitcode}")
        spent = time.perf_counter() - started
        return Ending(process.exitcode != 0, PLACES[place.value], passed.value, spent)


def digest_of(run: Path) -> dict[str, str]:
    """Hashes of everything a run leaves, apart from the times."""
    files = [*sorted((run / "state").iterdir()), *sorted((run / "best").iterdir())]
    found = {path.relative_to(run).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = [row[:-1] for row in csv.reader(file)]
    left = sorted(path.name for path in run.iterdir())
    return {**found, "metrics": hashlib.sha256(repr(rows).encode()).hexdigest(), "names": " ".join(left)}


def campaign(task: Task, folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Kills until there were enough; every run is brought to its end and compared with one that was left alone."""
    chance = random.Random(seed)
    lives = Lives(task)
    lives.live(folder / "warm-up", Death("stage 1", 1))
    alone = lives.live(folder / "alone")
    expected = digest_of(folder / "alone")
    places: Counter[str] = Counter()
    unequal: dict[str, list[str]] = {}
    runs, started = 0, time.perf_counter()
    while places.total() < kills:
        run, of_this_run = folder / f"run-{runs}", 0
        runs += 1
        while True:
            patience = 1 if of_this_run < KILLS_PER_RUN else 100
            ending = lives.live(run, *_random_end(chance, alone, patience))
            if not ending.was_killed:
                break
            places[ending.place] += 1
            of_this_run += 1
        differing = [name for name, value in digest_of(run).items() if expected.get(name) != value]
        if differing:
            unequal[run.name] = differing
        shutil.rmtree(run)
    return {
        "model": task.model,
        "kills": places.total(),
        "runs": runs,
        "unequal_runs": len(unequal),
        "differing": unequal,
        "kills_by_place": {place: places[place] for place in PLACES},
        "seconds_of_a_run": round(alone.seconds, 3),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _random_end(chance: random.Random, alone: Ending, patience: float) -> tuple[Death, float | None]:
    """At a random point or a random time, so early that a run has some ten lives; sometimes after the last save."""
    kind = chance.random()
    if kind < 0.05:
        return Death("after the last save", 1), None
    if kind < 0.25:
        return Death(chance.choice(PLACES[1:5]), chance.randint(1, 6)), None
    if kind < 0.5:
        return Death("", chance.randint(1, max(1, int(alone.passed * min(patience, 1) / 3)))), None
    return NEVER, chance.uniform(0, alone.seconds * patience / 3)


def _named(target: str | None) -> Any:
    if target is None:
        return None
    import importlib

    module_name, _, name = target.partition(":")
    return getattr(importlib.import_module(module_name), name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default=FAKE, help="fake (a small stand-in), or a model of the catalogue")
    parser.add_argument("--corpus", type=Path, help="a prepared corpus; the fake model makes its own")
    parser.add_argument("--set", action="append", default=[], help="a setting as key=value")
    parser.add_argument("--validation", help="module:name of a validation builder; without it the loss decides")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    from tests.training.fake import SETTINGS, write_fake_corpus

    from vrbot.config import parse_assignments

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = args.corpus or write_fake_corpus(folder, num_sessions=60)
        config = Config().with_settings({**(SETTINGS if args.model == FAKE else {}), **parse_assignments(args.set)})
        figures = campaign(Task(args.model, corpus, config, args.validation), folder, args.kills, args.seed)
    text = json.dumps(figures, indent=2)
    if args.json is not None:
        args.json.write_text(text + "\n", encoding="utf-8")
    print(text)
    sys.exit(1 if figures["unequal_runs"] else 0)


if __name__ == "__main__":
    import benchmarks.kill_resume

    __spec__ = None  # type: ignore[assignment]  # so that lives do not import this file a second time under its name
    benchmarks.kill_resume.main()
