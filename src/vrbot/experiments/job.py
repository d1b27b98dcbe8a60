"""One job of an experiment, from whatever an earlier life left of it: train, measure, write the result.

`python -m vrbot.experiments.job FOLDER CORPUS ROW SEED` does one in a process of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from vrbot.baselines.catalogue import CATALOGUE, build_model
from vrbot.config import Config, recipe
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError, VRBotError
from vrbot.evaluation.measuring import Measured, has_action, measure_model
from vrbot.evaluation.meddg import MedDGOptions, meddg_scorecard
from vrbot.evaluation.obedience import measure_oracle
from vrbot.evaluation.reply_files import write_replies
from vrbot.evaluation.scorecard import Options, Resources, scorecard
from vrbot.evaluation.systems import System, open_system
from vrbot.evaluation.trivial import measure_references
from vrbot.evaluation.validation import MERIT, build_validation, choose_decoding
from vrbot.experiments.asking import Asking, ask
from vrbot.experiments.design import Plan, Row
from vrbot.experiments.entity_vectors import stored_vectors
from vrbot.experiments.folder import (
    CLOCK,
    ENCODER,
    ORACLE_REPLIES,
    REFERENCES,
    REPLIES,
    RUN,
    ExperimentFolder,
    Job,
    Setup,
)
from vrbot.experiments.folder import read_json as read_object
from vrbot.experiments.folder import write_json as write_object
from vrbot.experiments.plans import plan_of
from vrbot.experiments.selections import cut_corpus, part_as_dict
from vrbot.model.vrbot import VRBot
from vrbot.training.checkpoints import SCORES, RunFolder
from vrbot.training.description import LABELS, RunDescription, RunPlan, corpus_digest
from vrbot.training.observe import Silent
from vrbot.training.randomness import Use, derived_seed
from vrbot.training.runs import Parts, reproducible, train_run

Status = Literal["finished", "interrupted", "already finished"]
FAILED, INTERRUPTED = 1, 130
TEST = "test"


class Stopwatch(Silent):
    """Wall and CPU seconds of all lives of a job, up to the last time the run was saved in each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        former = read_object(path) if path.is_file() else {"wall_seconds": 0.0, "cpu_seconds": 0.0}
        self._former = {name: float(former[name]) for name in ("wall_seconds", "cpu_seconds")}
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        """The seconds so far."""
        return {
            "wall_seconds": self._former["wall_seconds"] + time.perf_counter() - self._wall,
            "cpu_seconds": self._former["cpu_seconds"] + time.process_time() - self._cpu,
        }

    def saving(self) -> None:
        write_object(self._path, self.read())


@dataclass(frozen=True, eq=False)
class Ruler:
    """How every system of one corpus is measured: both protocols, never in one set of figures."""

    corpus: Corpus
    resources: Resources

    def figures(self, measured: Measured) -> dict[str, Any]:
        """The scorecards of both protocols."""
        names, vectors = self.resources.entity_names, self.resources.vectors
        card = scorecard(measured.turns, Options(), Resources(vectors, names, measured.seconds or None))
        characters = meddg_scorecard(measured.turns, self.corpus.inventory.surfaces, MedDGOptions())
        return {"scores": card.as_dict(), "meddg": characters.as_dict()}


def run_job(folder: ExperimentFolder, plan: Plan, job: Job) -> Status:
    """Does the job, or what is left of it; a job that is finished is left alone. Exceptions are the caller's."""
    setup = folder.setup()
    home = folder.job_folder(job)
    home.mkdir(parents=True, exist_ok=True)
    with _held(home / ".lock"):
        if folder.result(job) is not None:
            return "already finished"
        corpus = Corpus.open(setup.corpora[job.corpus].path)
        if corpus_digest(corpus) != setup.corpora[job.corpus].sha256:
            raise UsageError(f"{corpus.directory} has changed since {folder.path} was begun: prepare that one again")
        vectors = stored_vectors(corpus, folder.path / job.corpus)
        ruler = Ruler(corpus, Resources(vectors, corpus.inventory.names))
        watch = Stopwatch(home / CLOCK)
        if job.row == REFERENCES:
            folder.finish(job, {**_references(corpus, home, ruler), **watch.read()})
            return "finished"
        return _train_and_measure(folder, setup, plan, job, ruler, watch)


def config_of(setup: Setup, plan: Plan, row: Row) -> Config:
    """The settings of a row; only systems that read with the pretrained encoder are told where it is."""
    config = plan.config(row, plan.base(recipe(setup.recipe), setup.settings))
    return config.with_settings({ENCODER: setup.encoder}) if CATALOGUE[row.model].needs_encoder else config


def _train_and_measure(
    folder: ExperimentFolder, setup: Setup, plan: Plan, job: Job, ruler: Ruler, watch: Stopwatch
) -> Status:
    home, row = folder.job_folder(job), plan.row(job.row)
    config = config_of(setup, plan, row)
    if row.asking is not None:
        folder.finish(job, {**_ask(ruler.corpus, row, row.asking, config, job), **watch.read()})
        return "finished"
    cut = cut_corpus(ruler.corpus, row.part, job.seed, folder.path / job.corpus / "cut")
    run = RunPlan(row.model, cut, config, job.seed, row.labels)
    parts = Parts(build_model, build_validation, choose_decoding, MERIT, observers=[watch], tensorboard=False)
    outcome = train_run(home / RUN, run, parts, resume=RunFolder(home / RUN).exists, threads=1)
    if outcome.status == "interrupted":
        return "interrupted"
    watch.saving()
    system = open_system(home / RUN, cut)
    measured = _measure(system, row, setup.beam)
    names = ruler.corpus.inventory.names
    write_replies(home / REPLIES, measured["own"].turns, names)
    if "oracle" in measured:
        write_replies(home / ORACLE_REPLIES, measured["oracle"].turns, names)
    figures = {name: ruler.figures(one) for name, one in measured.items()}
    steps = {"steps": outcome.progress.step, "best_step": outcome.progress.best_step}
    facts = {**run_facts(home / RUN, row), **steps, "ended": outcome.progress.finished}
    folder.finish(job, {**asdict(job), **facts, **figures.pop("own"), **figures, **watch.read()})
    return "finished"


def _ask(corpus: Corpus, row: Row, asking: Asking, config: Config, job: Job) -> dict[str, Any]:
    """A simulated annotator and a labeller that learns from it; an interrupted one begins anew."""
    run = RunPlan(row.model, corpus.directory, config, job.seed, row.labels)
    with reproducible():
        torch.manual_seed(derived_seed(job.seed, Use.INITIAL_WEIGHTS))
        model = build_model(row.model, config, corpus)
        description = RunDescription.of(run, corpus, model, "")
        if not isinstance(model, VRBot):
            raise UsageError(f"{row.model} has no inference networks: only vrbot and its variants propose labels")
        rounds = [one.as_dict() for one in ask(model, corpus, config, asking, job.seed)]
    updates = asking.updates * len(rounds)
    return {
        **asdict(job),
        **described(description, row),
        "labels": {"order": asking.order},
        "labels_sha256": None,
        "rounds": rounds,
        "steps": updates,
        "best_step": updates,
        "ended": "all rounds are done",
        "validation": {"scores": {}},
        "scores": rounds[-1]["scores"],
        "meddg": {},
    }


def run_facts(run: Path, row: Row) -> dict[str, Any]:
    """What decided a run, and where and with what it was made."""
    files = RunFolder(run).description()
    return {
        **described(RunDescription.from_files(files), row),
        "labels": asdict(row.labels),
        "labels_sha256": hashlib.sha256(files[LABELS]).hexdigest(),
        "validation": read_object(RunFolder(run).best / SCORES),
    }


def described(description: RunDescription, row: Row) -> dict[str, Any]:
    """What is known of a row before anything is learnt."""
    return {
        "model": row.model,
        "role": row.role,
        "part": part_as_dict(row.part),
        "config": description.plan.config.model_dump(),
        "corpus_sha256": description.corpus_sha256,
        "corpus_fingerprint": description.corpus_fingerprint,
        "parameters": description.parameters,
        "threads": description.threads,
        "environment": dict(description.environment),
    }


def _measure(system: System, row: Row, beam: int) -> dict[str, Measured]:
    decoding = system.config.decoding.model_copy(update={"beam": beam})
    found = {"own": measure_model(system.model, system.corpus, TEST, system.config, decoding)}
    if row.oracle and isinstance(system.model, VRBot) and has_action(system.model):
        found["oracle"] = measure_oracle(system.model, system.corpus, TEST, system.config, decoding)
    return found


def _references(corpus: Corpus, home: Path, ruler: Ruler) -> dict[str, Any]:
    """The trivial systems; their replies stand in a file each."""
    systems: dict[str, Mapping[str, Any]] = {}
    for name, measured in measure_references(corpus, TEST):
        write_replies(home / f"{name}.jsonl", measured.turns, corpus.inventory.names)
        systems[name] = ruler.figures(measured)
    return {"corpus_sha256": corpus_digest(corpus), "systems": systems}


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Waits for a job of a runner that was killed to notice and end."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def attempt(folder: ExperimentFolder, plan: Plan, job: Job, complain: Callable[[str], object]) -> int:
    """Does the job and gives an exit code; a failure is recorded with its error line."""
    try:
        return INTERRUPTED if run_job(folder, plan, job) == "interrupted" else 0
    except Exception as error:
        complain(traceback.format_exc())
        folder.fail(job, str(error) if isinstance(error, VRBotError) else f"{type(error).__name__}: {error}")
        return FAILED


def _end_with_the_runner() -> None:
    """The runner holds the other end of standard input: when that closes, it is gone, and the job saves and stops."""
    while os.read(sys.stdin.fileno(), 1024):  # not through a buffer, whose lock the interpreter needs to shut down
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(arguments: Sequence[str]) -> int:
    """Entry point of a job's process."""
    path, corpus, row, seed = arguments
    threading.Thread(target=_end_with_the_runner, daemon=True).start()
    folder = ExperimentFolder(path)
    return attempt(folder, plan_of(folder.setup().plan), Job(corpus, row, int(seed)), sys.stderr.write)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
