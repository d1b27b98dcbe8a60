"""Experiments whose results are invented, so that reports can be checked by hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vrbot.dialogue.corpus import Corpus
from vrbot.evaluation.reply_files import write_replies
from vrbot.evaluation.scorecard import Options, Resources, scorecard
from vrbot.evaluation.turns import ScoredTurn
from vrbot.experiments.design import Plan, Row
from vrbot.experiments.folder import REFERENCES, REPLIES, ExperimentFolder, Job
from vrbot.experiments.job import attempt
from vrbot.experiments.runner import begin
from vrbot.experiments.selections import WHOLE, part_as_dict

PLAN = Plan(
    "invented",
    "Invented systems",
    "none",
    (Row("weak", "seq2seq"), Row("strong", "hred"), Row("mine", "vrbot", role="ours", oracle=True)),
    "a corpus",
    seeds=(1, 2, 3),
)


class AtOnce:
    """Does a job when it is launched, in this process."""

    plan = PLAN

    def __init__(self, folder: ExperimentFolder, job: Job) -> None:
        self.code = attempt(folder, self.plan, job, sys.stderr.write)

    def poll(self) -> int:
        return self.code

    def stop(self) -> None: ...


def turns_with(right: Sequence[bool], num_dialogues: int = 40) -> list[ScoredTurn]:
    """A turn in each dialogue, whose reply names the reference's entity where it is right, else another."""
    return [
        ScoredTurn(
            session_id=f"d-{number}",
            turn=0,
            reply="yes" if correct else "no",
            reference="yes",
            reply_words=("a", "b", "c") if correct else ("x", "y", "z"),
            reference_words=("a", "b", "c"),
            reply_entities=frozenset({number % 3}) if correct else frozenset({5}),
            reference_entities=frozenset({number % 3}),
        )
        for number, correct in zip(range(num_dialogues), right, strict=True)
    ]


def right_until(count: int, num_dialogues: int = 40) -> list[bool]:
    return [number < count for number in range(num_dialogues)]


def figures(turns: Sequence[ScoredTurn], names: Sequence[str]) -> dict[str, Any]:
    return {"scores": scorecard(turns, Options(), Resources(entity_names=names)).as_dict(), "meddg": {}}


def put_result(
    folder: ExperimentFolder, job: Job, turns: Sequence[ScoredTurn], names: Sequence[str], **changes: Any
) -> dict[str, Any]:
    """Writes a finished job with these turns; what decides fairness is the same in all, unless changed."""
    home = folder.job_folder(job)
    home.mkdir(parents=True, exist_ok=True)
    write_replies(home / REPLIES, turns, names)
    result = {
        "corpus": job.corpus,
        "row": job.row,
        "seed": job.seed,
        "labels": {"state": 0.0, "action": 0.0, "category": None},
        "labels_sha256": f"labels of {job.seed}",
        "part": part_as_dict(WHOLE),
        "config": {"network": {}, "training": {}, "decoding": {}},
        "corpus_sha256": folder.setup().corpora[job.corpus].sha256,
        "threads": 1,
        "environment": {"commit": "c0ffee"},
        "parameters": 1000,
        "steps": 10,
        "best_step": 5,
        "validation": {"scores": {"micro_f1": 7.0}},
        "wall_seconds": 60.0,
        "cpu_seconds": 30.0,
        **figures(turns, names),
        **changes,
    }
    folder.finish(job, result)
    return result


def put_references(
    folder: ExperimentFolder, corpus: str, systems: Mapping[str, Sequence[ScoredTurn]], names: Sequence[str]
) -> None:
    job = Job(corpus, REFERENCES, 0)
    home = folder.job_folder(job)
    home.mkdir(parents=True, exist_ok=True)
    for name, turns in systems.items():
        write_replies(home / f"{name}.jsonl", turns, names)
    found = {name: figures(turns, names) for name, turns in systems.items()}
    corpus_sha256 = folder.setup().corpora[corpus].sha256
    folder.finish(job, {"systems": found, "corpus_sha256": corpus_sha256, "wall_seconds": 1.0, "cpu_seconds": 1.0})


def invented_folder(out: Path, corpus: Path, plan: Plan = PLAN) -> ExperimentFolder:
    return begin(out, plan, [corpus])


RIGHT = {"weak": (4, 5, 6), "strong": (10, 12, 14), "mine": (30, 31, 35)}
"""How many of 40 replies are right, by row and seed 1, 2, 3."""


def fill(folder: ExperimentFolder, corpus: Path) -> None:
    """All runs of the invented plan, and one trivial system."""
    names = Corpus.open(corpus).inventory.names
    for row, counts in RIGHT.items():
        for seed, count in enumerate(counts, start=1):
            told = {"oracle": figures(turns_with(right_until(40)), names)} if row == "mine" else {}
            put_result(folder, Job(corpus.name, row, seed), turns_with(right_until(count)), names, **told)
    put_references(folder, corpus.name, {"most-frequent-reply": turns_with(right_until(2))}, names)
