"""What of an experiment may be published: tables, pictures, and every run as scores and tallies without any text.

Whoever has them can repeat the tests without the dialogues, and go on with an unfinished table on another machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.evaluation.scorecard import Resources
from vrbot.evaluation.tallies import SUFFIX, write_tallies
from vrbot.experiments.contests import tallies_beside
from vrbot.experiments.entity_vectors import stored_vectors
from vrbot.experiments.folder import ORACLE_REPLIES, RESULT, ExperimentFolder, Job, read_json, write_json
from vrbot.experiments.report import make_report, write_report
from vrbot.experiments.report_tables import TESTED
from vrbot.experiments.selections import WHOLE, part_as_dict

TABLES_AND_PICTURES = ("report.md", "*.csv", "*.png")
RUNS = "runs"
FOLDERS = (("pretrained", "directory"), ("network", "embeddings_from"))


def publish(folder: ExperimentFolder, results: Path) -> Path:
    """Writes the report, and copies what may be published to `results/NAME`; replies stay.

    UsageError where more runs are published there than are finished here: nobody loses them by beginning anew.
    """
    out = results / folder.path.name
    here, there = (sum(1 for _ in place.rglob(RESULT)) for place in (folder.path, out / RUNS))
    if here < there:
        raise UsageError(
            f"{out} holds {there} runs and {folder.path} only {here}: finish more, or take those with --go-on-from"
        )
    written = write_report(folder, make_report(folder))
    out.mkdir(parents=True, exist_ok=True)
    for file in (file for pattern in TABLES_AND_PICTURES for file in written.glob(pattern)):
        shutil.copyfile(file, out / file.name)
    shutil.rmtree(out / RUNS, ignore_errors=True)
    for name, facts in folder.setup().corpora.items():
        corpus = Corpus.open(facts.path)
        resources = Resources(stored_vectors(corpus, folder.path / name), corpus.inventory.names)
        for home in _finished(folder.path / name):
            _publish_run(home, out / RUNS / home.relative_to(folder.path), resources)
    return out


def take_over(folder: ExperimentFolder, jobs: Sequence[Job], results: Path) -> list[Job]:
    """Takes published runs for those that are not finished here; UsageError where they are of another corpus."""
    setup, taken = folder.setup(), []
    for job in jobs:
        home = folder.job_folder(job)
        there = results / folder.path.name / RUNS / home.relative_to(folder.path)
        if folder.result(job) is not None or not (there / RESULT).is_file():
            continue
        result = read_json(there / RESULT)
        of_all = result.get("part", part_as_dict(WHOLE)) == part_as_dict(WHOLE)
        if of_all and result["corpus_sha256"] != setup.corpora[job.corpus].sha256:
            raise UsageError(f"{there} is of another corpus {job.corpus} than {folder.path}: do its runs again")
        home.mkdir(parents=True, exist_ok=True)
        for file in (*there.glob(f"*{SUFFIX}"), there / RESULT):  # the result last: with it the job is finished
            shutil.copyfile(file, home / file.name)
        taken.append(job)
    return taken


def _finished(folder: Path) -> Iterator[Path]:
    """The jobs of a corpus that have a result: the references, and runs of rows."""
    yield from sorted(found.parent for depth in ("*", "*/*") for found in folder.glob(f"{depth}/{RESULT}"))


def _without_paths(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result whose configuration names the folders of encoders and vectors without saying where they lay."""
    config = {name: dict(section) for name, section in result.get("config", {}).items()}
    for section, name in FOLDERS:
        if config.get(section, {}).get(name):
            config[section][name] = Path(config[section][name]).name
    return {**result, "config": config} if config else dict(result)


def _publish_run(home: Path, out: Path, resources: Resources) -> None:
    out.mkdir(parents=True)
    write_json(out / RESULT, _without_paths(read_json(home / RESULT)))
    for taken_over in home.glob(f"*{SUFFIX}"):
        shutil.copyfile(taken_over, out / taken_over.name)
    for replies in home.glob("*.jsonl"):
        if replies.name != ORACLE_REPLIES:
            write_tallies(out / replies.with_suffix(SUFFIX).name, tallies_beside(replies, resources), TESTED)
