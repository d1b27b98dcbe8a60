"""Experiments whose results are invented, light enough for a page to be tested with them."""

from __future__ import annotations

from pathlib import Path

from vrbot.experiments.folder import CorpusFacts, ExperimentFolder, Job, Setup
from vrbot.experiments.plans import plan_of


def put_experiment(path: Path, plan: str, corpus: str = "clinic", left_out: int = 1) -> Path:
    """Every row of a plan with three seeds but the last `left_out` rows, of which one has failed."""
    folder = ExperimentFolder(path)
    facts = CorpusFacts(corpus, "0" * 64, "0" * 64)
    folder.begin(Setup(plan, "small", {}, {corpus: facts}, (1, 2, 3)))
    rows = plan_of(plan).rows
    for number, row in enumerate(rows[: len(rows) - left_out]):
        for seed in (1, 2, 3):
            mean = 20 + 3.0 * number + seed / 2
            scores = {"bleu_2": mean, "micro_f1": mean + 8, "state_f1": mean + 15, "num_turns": 120}
            scores |= {"action_f1": mean / 2, "category_accuracy": 60 + number, "perplexity": 50 - mean}
            result = {
                "seed": seed,
                "scores": scores,
                "meddg": {},
                "parameters": 1_000_000 + number,
                "steps": 400,
                "best_step": 300,
                "validation": {"scores": {"micro_f1": mean}},
                "wall_seconds": 600.0,
                "cpu_seconds": 540.0,
                "environment": {"commit": "c0ffee"},
            }
            job = Job(corpus, row.name, seed)
            folder.job_folder(job).mkdir(parents=True)
            folder.finish(job, result)
    folder.fail(Job(corpus, rows[-1].name, 1), "<b>out</b> of memory")
    return path
