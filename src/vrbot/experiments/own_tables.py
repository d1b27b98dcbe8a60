"""Our own tables as data: which plan each is, on which corpus, under which settings; results are in `docs/results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vrbot.baselines.catalogue import CATALOGUE
from vrbot.errors import UsageError
from vrbot.experiments.design import Row
from vrbot.experiments.folder import ENCODER, REFERENCES, ExperimentFolder, Job
from vrbot.experiments.plans import plan_of
from vrbot.experiments.runner import begin, jobs_of

SMALL_CLINIC: Mapping[str, Any] = {
    "training.batch_size": 8,
    "training.max_epochs": 8,
    "training.validate_every_epochs": 4,
    "network.hidden_size": 64,
    "network.embedding_size": 64,
}
"""A small corpus is learnt with small networks and batches; eight epochs, where only systems of one kind compete."""
TO_THE_END: Mapping[str, Any] = {"training.validate_every_epochs": 3}
"""Three epochs of the many real dialogues are learnt to the end of the falling rate, where all foretell words best."""
TWELVE_WATCHED: Mapping[str, Any] = {"training.max_epochs": 12, "training.validate_every_epochs": 2}
"""A corpus of a quarter of the dialogues is read up to four times as often; who reads it to the end has learnt it by
heart, so that validation chooses when to stop."""
LONG_CLINIC = {**SMALL_CLINIC, "training.max_epochs": 24, "training.validate_every_epochs": 8}


@dataclass(frozen=True)
class OwnTable:
    """One folder of `docs/results`; without `rows` all of the plan's."""

    name: str
    plan: str
    corpus: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1, 2, 3)

    def begin(self, corpus: Path, out: Path, encoder: Path | None = None) -> tuple[ExperimentFolder, list[Job]]:
        """The table's experiment in `out/name`, begun or gone on with, and its jobs; those of systems that read with a
        pretrained encoder only where there is one."""
        plan = plan_of(self.plan)
        settings = {**self.settings, **({ENCODER: str(encoder)} if encoder else {})}
        folder = begin(out / self.name, plan, [corpus], seeds=self.seeds, settings=settings)
        readable = (row for row in map(plan.row, self.row_names) if encoder or not _reads(row))
        chosen = (*([REFERENCES] if plan.references else []), *(row.name for row in readable))
        return folder, jobs_of(plan, folder.setup(), chosen, self.seeds)

    @property
    def row_names(self) -> tuple[str, ...]:
        """The rows of the plan that the table has."""
        return self.rows or tuple(row.name for row in plan_of(self.plan).rows)


def _reads(row: Row) -> bool:
    """Whether the row's system reads with a pretrained encoder."""
    return CATALOGUE[row.model].needs_encoder


_QUARTER = ("damd-s25-a25", "moss-s25-a25", "vrbot-un-s25-a25", "vrbot-s25-a25")
_QUARTER_OF_ONE_KIND = (
    "sedst-s25-a0",
    "labes-s25-a0",
    "nkd-s0-a25",
    "postks-s0-a25",
    "hred-bert-s0-a25",
    "dual-flow-s0-a25",
    "dual-flow-habits-s0-a25",
)
_ALL = ("nkd-s0-a100", "dual-flow-s0-a100", "damd-s100-a100", "moss-s100-a100", "vrbot-s100-a100")
TABLES = (
    OwnTable("unlabelled-meddg", "unlabelled", "meddg", TO_THE_END),
    OwnTable("unlabelled-imcs", "unlabelled", "imcs", TO_THE_END),
    OwnTable("unlabelled-covid", "unlabelled", "covid", TWELVE_WATCHED),
    OwnTable(
        "semi-supervised-clinic",
        "semi-supervised",
        "clinic",
        LONG_CLINIC,
        rows=(*_QUARTER_OF_ONE_KIND, *_QUARTER, *_ALL),
    ),
    OwnTable(
        "semi-supervised-imcs",
        "semi-supervised",
        "imcs",
        TO_THE_END,
        rows=(*_QUARTER_OF_ONE_KIND, *_QUARTER, *_ALL),
    ),
    OwnTable("ablations-clinic", "labelled-ablations", "clinic", SMALL_CLINIC),
    OwnTable("span-lengths-clinic", "span-lengths", "clinic", SMALL_CLINIC, seeds=(1,)),
    OwnTable("latents-clinic", "latents", "clinic", SMALL_CLINIC, seeds=(1,)),
    OwnTable("learning-curve-clinic", "learning-curve", "clinic", SMALL_CLINIC, seeds=(1,)),
    OwnTable("transfer-clinic", "transfer", "clinic", SMALL_CLINIC, seeds=(1,)),
    OwnTable("case-clinic", "case", "clinic", SMALL_CLINIC, seeds=(1,)),
    OwnTable("category-leak-meddg", "category-leak", "meddg", TO_THE_END, seeds=(1,)),
)


def tables_of(names: list[str]) -> list[OwnTable]:
    """The tables of these names in their own order, all where none is named; UsageError for a name that is none."""
    known = {table.name: table for table in TABLES}
    for name in names:
        if name not in known:
            raise UsageError(f"{name!r} is none of our tables; known: {', '.join(known)}")
    return [table for table in TABLES if not names or table.name in names]


def part_of(jobs: Sequence[Job], only: Sequence[str], seeds: Sequence[int]) -> list[Job]:
    """The jobs of these rows and seeds, all where none are named; the trivial systems belong to every seed."""
    return [
        job
        for job in jobs
        if (not only or job.row in only) and (not seeds or job.row == REFERENCES or job.seed in seeds)
    ]


def check_rows(tables: Sequence[OwnTable], only: Sequence[str]) -> None:
    """UsageError for a row that none of the tables has."""
    known = dict.fromkeys((REFERENCES, *(name for table in tables for name in table.row_names)))
    for name in only:
        if name not in known:
            raise UsageError(f"{name!r} is no row of {_named(tables)}; known: {', '.join(known)}")


def check_seeds(tables: Sequence[OwnTable], seeds: Sequence[int]) -> None:
    """UsageError for a seed that none of the tables has."""
    known = sorted({seed for table in tables for seed in table.seeds})
    for seed in seeds:
        if seed not in known:
            raise UsageError(f"{_named(tables)} has the seeds {', '.join(map(str, known))}, not {seed}")


def _named(tables: Sequence[OwnTable]) -> str:
    return tables[0].name if len(tables) == 1 else "these tables"
