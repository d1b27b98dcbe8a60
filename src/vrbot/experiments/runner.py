"""Runs the jobs of an experiment side by side, each in a process of its own with one thread.

Whatever happens to it, calling it again does what is left: finished jobs are skipped, an interrupted one goes on where
it was saved, a failed one is tried again. Nothing that one job does stops the others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from vrbot.config import recipe
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.experiments.design import Plan, held_out_fields
from vrbot.experiments.folder import ENCODER, LOG, REFERENCES, CorpusFacts, ExperimentFolder, Job, Setup
from vrbot.experiments.job import INTERRUPTED
from vrbot.experiments.selections import held_out_value
from vrbot.training.description import corpus_digest
from vrbot.training.interrupts import stop_on_signals

PAUSE = 0.2
"""Seconds between two looks at the processes."""

Kind = Literal["skipped", "started", "finished", "failed", "interrupted"]


@dataclass(frozen=True)
class Event:
    """Something that happened to a job; `seconds_left` is None until a job has shown how long one takes."""

    kind: Kind
    job: Job
    done: int
    total: int
    seconds_left: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class RunOutcome:
    """How a call of `run_experiment` ended; jobs by what became of them."""

    skipped: tuple[Job, ...]
    finished: tuple[Job, ...]
    failed: tuple[Job, ...]
    interrupted: tuple[Job, ...]


class Running(Protocol):
    """A job under way."""

    def poll(self) -> int | None: ...
    def stop(self) -> None: ...


Launch = Callable[[ExperimentFolder, Job], Running]


class JobProcess:
    """A job in a process of its own; it ends by itself when this process does."""

    def __init__(self, folder: ExperimentFolder, job: Job) -> None:
        home = folder.job_folder(job)
        home.mkdir(parents=True, exist_ok=True)
        place = (str(folder.path), job.corpus, job.row, str(job.seed))
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with (home / LOG).open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "vrbot.experiments.job", *place],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **one_thread},
                start_new_session=True,  # Ctrl-C reaches the runner only, which asks every job once
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        code = self._process.poll()
        if code is not None and self._process.stdin is not None:
            self._process.stdin.close()
        return code

    def stop(self) -> None:
        self._process.terminate()


def facts_of(corpus: Corpus) -> CorpusFacts:
    """A corpus as an experiment remembers it."""
    return CorpusFacts(str(corpus.directory.resolve()), corpus_digest(corpus), corpus.fingerprint)


def begin(
    out: Path,
    plan: Plan,
    corpora: Sequence[Path],
    *,
    seeds: Sequence[int] | None = None,
    recipe_name: str = "small",
    settings: Mapping[str, object] | None = None,
) -> ExperimentFolder:
    """Makes the folder of an experiment, or opens it to go on; refuses what cannot be run before anything is."""
    if not corpora:
        raise UsageError(f"plan {plan.name} needs {plan.needs}: give it with --corpus")
    names = [path.resolve().name for path in corpora]
    if len(set(names)) < len(names):
        raise UsageError(
            f"two corpora are called {max(names, key=names.count)!r}: give one of the folders another name"
        )
    base = plan.base(recipe(recipe_name), settings or {})  # a wrong setting is refused here
    compared = {name: value for name, value in (settings or {}).items() if name != ENCODER}
    found = {}
    for name, path in zip(names, corpora, strict=True):
        corpus = Corpus.open(path)
        check_corpus(plan, corpus)
        found[name] = facts_of(corpus)
    folder = ExperimentFolder(out)
    folder.begin(
        Setup(
            plan.name,
            recipe_name,
            compared,
            found,
            tuple(seeds or plan.seeds),
            base.decoding.beam,
            base.pretrained.directory,
        )
    )
    return folder


def check_corpus(plan: Plan, corpus: Corpus) -> None:
    """UsageError where the corpus has not what the plan needs."""
    for split in ("train", "valid", "test"):
        if not corpus.split(split).num_turns:
            raise UsageError(f"{corpus.directory} has no {split} dialogues: plan {plan.name} needs all three splits")
    labels = corpus.split("train").labels
    there = {"state": labels.state_known, "keywords": labels.keywords_known, "category": labels.category >= 0}
    absent = [kind for kind in plan.needs_labels if not there[kind].any()]
    if absent:
        raise UsageError(f"{corpus.directory} has no {absent[0]} labels: plan {plan.name} needs {plan.needs}")
    fields = held_out_fields(plan)
    if fields:
        held_out_value(corpus, fields)


def jobs_of(plan: Plan, setup: Setup, only: Iterable[str] = (), seeds: Iterable[int] | None = None) -> list[Job]:
    """The jobs in the order they are done: the trivial systems, then seed after seed, so that tables fill evenly."""
    chosen = tuple(only)
    rows = [plan.row(name) for name in chosen if name != REFERENCES] if chosen else plan.rows
    trivial = plan.references and (not chosen or REFERENCES in chosen)
    wanted = tuple(setup.seeds if seeds is None else seeds)
    jobs = [Job(corpus, REFERENCES, 0) for corpus in setup.corpora if trivial]
    return jobs + [Job(corpus, row.name, seed) for seed in wanted for corpus in setup.corpora for row in rows]


def run_experiment(
    folder: ExperimentFolder,
    jobs: Sequence[Job],
    *,
    side_by_side: int = 1,
    on_event: Callable[[Event], None] = lambda event: None,
    launch: Launch = JobProcess,
    pause: float = PAUSE,
) -> RunOutcome:
    """Does the jobs; SIGINT or SIGTERM ask those under way to save and stop, and start no more."""
    if side_by_side < 1:
        raise UsageError(f"at least one job must run at a time, got {side_by_side}: use --jobs 1 or more")
    with folder.locked(), stop_on_signals() as wants_to_stop:
        pool = _Pool(folder, jobs, on_event, launch)
        while pool.waiting or pool.running:
            stopping = wants_to_stop()
            if stopping:
                pool.stop()
            while pool.waiting and len(pool.running) < side_by_side:
                pool.start_next(side_by_side)
            pool.collect(side_by_side, stopping)
            if pool.running:
                time.sleep(pause)
        return pool.outcome()


class _Pool:
    """Jobs that wait, jobs under way, and what became of the others."""

    def __init__(
        self,
        folder: ExperimentFolder,
        jobs: Sequence[Job],
        on_event: Callable[[Event], None],
        launch: Launch,
    ) -> None:
        self.folder, self.jobs = folder, list(jobs)
        self.on_event, self.launch = on_event, launch
        self.running: dict[Job, Running] = {}
        self.ended: dict[Kind, list[Job]] = {"skipped": [], "finished": [], "failed": [], "interrupted": []}
        self.waiting = [job for job in self.jobs if folder.result(job) is None]
        self._asked = False
        for job in self.jobs:
            if job not in self.waiting:
                self._end(job, "skipped", 1)

    def start_next(self, side_by_side: int) -> None:
        job = self.waiting.pop(0)
        self.folder.forget_failure(job)
        self.running[job] = self.launch(self.folder, job)
        self._tell("started", job, side_by_side)

    def stop(self) -> None:
        """Asks every job once; those that had not begun are left."""
        self.ended["interrupted"] += self.waiting
        self.waiting = []
        if not self._asked:
            self._asked = True
            for process in self.running.values():
                process.stop()

    def collect(self, side_by_side: int, stopping: bool) -> None:
        for job, process in list(self.running.items()):
            code = process.poll()
            if code is None:
                continue
            del self.running[job]
            if self.folder.result(job) is not None:
                self._end(job, "finished", side_by_side)
            elif stopping or code == INTERRUPTED:
                self._end(job, "interrupted", side_by_side)
            else:
                if self.folder.failure(job) is None:
                    self.folder.fail(job, _ending(code, self.folder.job_folder(job) / LOG))
                self._end(job, "failed", side_by_side)

    def outcome(self) -> RunOutcome:
        return RunOutcome(*(tuple(self.ended[kind]) for kind in ("skipped", "finished", "failed", "interrupted")))

    def _end(self, job: Job, kind: Kind, side_by_side: int) -> None:
        self.ended[kind].append(job)
        self._tell(kind, job, side_by_side)

    def _tell(self, kind: Kind, job: Job, side_by_side: int) -> None:
        done = sum(len(self.ended[end]) for end in ("skipped", "finished", "failed"))
        error = self.folder.failure(job) if kind == "failed" else None
        to_do = [*self.waiting, *self.running]
        left = None if kind == "interrupted" else seconds_left(self.folder, self.jobs, to_do, side_by_side)
        self.on_event(Event(kind, job, done, len(self.jobs), left, error))


def seconds_left(folder: ExperimentFolder, jobs: Sequence[Job], left: Sequence[Job], side_by_side: int) -> float | None:
    """From the wall seconds of finished jobs: those of the same row, else the mean of all; None before the first."""
    taken: dict[str, list[float]] = {}
    for job in jobs:
        result = folder.result(job)
        if result is not None:
            taken.setdefault(job.row, []).append(float(result["wall_seconds"]))
    trained = [seconds for row, times in taken.items() if row != REFERENCES for seconds in times]
    if not trained:
        return 0.0 if not left else None
    mean = sum(trained) / len(trained)
    expected = [sum(taken[job.row]) / len(taken[job.row]) if job.row in taken else mean for job in left]
    return sum(expected) / min(side_by_side, max(len(left), 1))


def _ending(code: int, log: Path) -> str:
    how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"the process {how} and left no result: see {log.name}, and run the experiment again"
