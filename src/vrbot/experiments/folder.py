"""The folder of an experiment: what it is, and for every job its run, replies and result.

experiment.json                             the plan, recipe, settings, corpora and seeds
CORPUS/ROW/seed-N/   run/ replies.jsonl oracle.jsonl result.json (last: it is there when all is done), failure.json,
                     clock.json, log.txt
CORPUS/references/   the trivial systems, as one job
CORPUS/vectors.npz   the entity vectors of EA and EG;  CORPUS/cut/  corpora cut from this one
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vrbot.errors import IntegrityError, UsageError
from vrbot.files import atomic_write

EXPERIMENT, RESULT, FAILURE, CLOCK, LOG = "experiment.json", "result.json", "failure.json", "clock.json", "log.txt"
REPLIES, ORACLE_REPLIES, RUN = "replies.jsonl", "oracle.jsonl", "run"
REFERENCES = "references"
SCHEMA = 1
ENCODER = "pretrained.directory"
"""The setting that says where a pretrained encoder is."""


@dataclass(frozen=True, order=True)
class Job:
    """One thing to do: train and measure a row with a seed on a corpus; the trivial systems have seed 0."""

    corpus: str
    row: str
    seed: int

    def __str__(self) -> str:
        seed = "" if self.row == REFERENCES else f" seed {self.seed}"
        return f"{self.corpus} {self.row}{seed}"


@dataclass(frozen=True)
class CorpusFacts:
    """Where a corpus is, and what it was when the experiment began."""

    path: str
    sha256: str
    fingerprint: str


@dataclass(frozen=True)
class Setup:
    """What an experiment is; seeds may be added later, nothing else may change. Where the pretrained encoder of systems
    that read with one lies, like the corpora, is this machine's affair."""

    plan: str
    recipe: str
    settings: Mapping[str, Any]
    corpora: Mapping[str, CorpusFacts]
    seeds: tuple[int, ...]
    beam: int = 5
    encoder: str | None = None


class ExperimentFolder:
    """One experiment on disk."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        return (self.path / EXPERIMENT).is_file()

    def setup(self) -> Setup:
        """What the experiment is."""
        if not self.exists:
            raise UsageError(f"{self.path} is not an experiment: give the folder `vrbot experiment run --out` wrote")
        content = read_json(self.path / EXPERIMENT)
        try:
            if content.pop("schema") != SCHEMA:
                raise IntegrityError(f"{self.path / EXPERIMENT}: read it with the version that wrote it")
            corpora = {name: CorpusFacts(**facts) for name, facts in content.pop("corpora").items()}
            return Setup(corpora=corpora, seeds=tuple(content.pop("seeds")), **content)
        except (KeyError, TypeError, AttributeError) as error:
            raise IntegrityError(f"{self.path / EXPERIMENT}: is not that of an experiment ({error!r})") from error

    def begin(self, setup: Setup) -> Setup:
        """Writes the setup, or adds its seeds to the one there; UsageError where anything else differs."""
        if not self.exists:
            if self.path.exists() and any(name.name != ".lock" for name in self.path.iterdir()):
                raise UsageError(f"{self.path} is there and is no experiment: give --out a new folder")
            return self._write(setup)
        former = self.setup()
        for name in ("plan", "recipe", "settings", "beam"):
            has, wanted = getattr(former, name), getattr(setup, name)
            if has != wanted:
                raise UsageError(f"{self.path} was begun with {name} {has!r}, not {wanted!r}: give --out a new folder")
        changed = [name for name, facts in setup.corpora.items() if _is_other(former.corpora.get(name), facts)]
        if changed:
            raise UsageError(f"corpus {changed[0]} has changed since {self.path} was begun: give --out a new folder")
        seeds = tuple(dict.fromkeys((*former.seeds, *setup.seeds)))
        corpora = {**former.corpora, **setup.corpora}
        encoder = setup.encoder or former.encoder
        return self._write(replace(setup, corpora=corpora, seeds=seeds, encoder=encoder))

    def _write(self, setup: Setup) -> Setup:
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / EXPERIMENT, {"schema": SCHEMA, **asdict(setup)})
        return setup

    def job_folder(self, job: Job) -> Path:
        """Where a job keeps everything."""
        if job.row == REFERENCES:
            return self.path / job.corpus / REFERENCES
        return self.path / job.corpus / job.row / f"seed-{job.seed}"

    def result(self, job: Job) -> dict[str, Any] | None:
        """What a finished job found; None where it is not finished."""
        path = self.job_folder(job) / RESULT
        return read_json(path) if path.is_file() else None

    def failure(self, job: Job) -> str | None:
        """The error line of a job that failed and has not been done since."""
        path = self.job_folder(job) / FAILURE
        if not path.is_file() or (path.parent / RESULT).is_file():
            return None
        return str(read_json(path)["error"])

    def finish(self, job: Job, result: Mapping[str, Any]) -> None:
        """Writes a job's result: from now on it is finished."""
        write_json(self.job_folder(job) / RESULT, {"schema": SCHEMA, **result})
        self.forget_failure(job)

    def forget_failure(self, job: Job) -> None:
        """A job that is tried again has not failed yet."""
        (self.job_folder(job) / FAILURE).unlink(missing_ok=True)

    def fail(self, job: Job, error: str) -> None:
        """Records why a job failed, in one line."""
        self.job_folder(job).mkdir(parents=True, exist_ok=True)
        write_json(self.job_folder(job) / FAILURE, {"error": " ".join(error.split())})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps a second runner out."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self.path} is being run by another process: wait for it, or stop it") from None
            yield


def _is_other(former: CorpusFacts | None, now: CorpusFacts) -> bool:
    return former is not None and former.sha256 != now.sha256


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of the experiment's own."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise IntegrityError(f"{path}: cannot be read ({error}): remove it, and run the experiment again") from error
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    with atomic_write(path) as file:
        json.dump(content, file, ensure_ascii=False, indent=1, allow_nan=False)
        file.write("\n")
