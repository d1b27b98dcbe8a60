"""What an experiment is: rows that are trained and compared under one budget, and what makes that fair."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from vrbot.config import Config
from vrbot.errors import ConfigError, UsageError
from vrbot.experiments.asking import Asking
from vrbot.experiments.selections import WHOLE, HeldOut, Part, TrainShare
from vrbot.training.description import LabelFractions

Role = Literal["ours", "baseline"]

SHARED_SECTIONS = ("network", "training", "decoding")
"""Sizes, budget, early stopping and search: no row of a plan may have its own."""

UNLABELLED = LabelFractions(0.0, 0.0)
ALL_LABELS = LabelFractions()
_NAME = re.compile(r"[a-z0-9][a-z0-9.+-]*")


@dataclass(frozen=True)
class Row:
    """One system of a plan; `settings` are what the plan varies, `group` whom it is tested against.

    `curve` and `place` say on which line of a figure the row stands, and where on its horizontal axis. With `asking`
    the row is a simulated annotator and the networks that learn from it: a point of the curve after each round.
    """

    name: str
    model: str
    labels: LabelFractions = UNLABELLED
    role: Role = "baseline"
    group: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    part: Part = WHOLE
    oracle: bool = False
    curve: str | None = None
    place: float | None = None
    asking: Asking | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"{self.name!r} cannot name a folder: use small letters, digits, '.', '+' and '-'")
        own = [name for name in self.settings if name.partition(".")[0] in SHARED_SECTIONS]
        if own:
            raise ConfigError(f"row {self.name} has its own {own[0]}: sizes, budget and search are the plan's")


@dataclass(frozen=True)
class Plan:
    """A table or figure as data: rows under the same settings and seeds, on corpora of the user's.

    `against` names the row that the others are tested against; without it rows of ours meet the best of the others.
    `axis` and `drawn` are the horizontal axis and the metrics of a figure.
    """

    name: str
    title: str
    source: str
    rows: tuple[Row, ...]
    needs: str
    seeds: tuple[int, ...] = (1, 2, 3)
    settings: Mapping[str, Any] = field(default_factory=dict)
    references: bool = True
    against: str | None = None
    axis: str = ""
    drawn: tuple[str, ...] = ()
    study: Literal["", "human", "case", "annotation"] = ""
    needs_labels: tuple[str, ...] = ()
    published: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [row.name for row in self.rows]
        if len(set(names)) < len(names):
            raise UsageError(f"plan {self.name} has two rows of one name")
        if self.against is not None and self.against not in names:
            raise UsageError(f"plan {self.name} tests against {self.against!r}, which is none of its rows")

    def row(self, name: str) -> Row:
        """The row of this name, or a UsageError that lists them."""
        for row in self.rows:
            if row.name == name:
                return row
        rows = [row.name for row in self.rows] + ["references"] * self.references
        raise UsageError(f"plan {self.name} has no row {name!r}; its rows: {', '.join(rows)}")

    def base(self, recipe: Config, changes: Mapping[str, Any]) -> Config:
        """The settings of every row before what the plan varies; `changes` are the user's, the same for all."""
        varied = {name for row in self.rows for name in row.settings}
        undone = sorted(varied & set(changes))
        if undone:
            raise UsageError(f"{undone[0]} is what plan {self.name} varies: leave it out of --set")
        return recipe.with_settings({**self.settings, **changes})

    def config(self, row: Row, base: Config) -> Config:
        """The settings of a row: the base, what the plan varies, and the epochs that make its updates about equal."""
        return same_updates(base, row.part).with_settings(row.settings)


def same_updates(base: Config, part: Part) -> Config:
    """About as many updates and validations as on the whole corpus: a tenth of it is read ten times as often."""
    share = part.share if isinstance(part, TrainShare) else 1.0
    if share == 1.0:
        return base
    training = base.training
    return base.with_settings(
        {
            "training.max_epochs": round(training.max_epochs / share),
            "training.stage_one_epochs": training.stage_one_epochs / share,
            "training.validate_every_epochs": training.validate_every_epochs / share,
        }
    )


def budget(config: Config, part: Part) -> tuple[float, float, int, int]:
    """What a row may use: passes over the whole corpus, validations per such pass, batch size, patience."""
    share = part.share if isinstance(part, TrainShare) else 1.0
    training = config.training
    return (
        round(training.max_epochs * share, 6),
        round(training.validate_every_epochs * share, 6),
        training.batch_size,
        training.patience,
    )


def held_out_fields(plan: Plan) -> tuple[str, ...]:
    """The keys of dialogues by which the plan's rows hold some out; empty where none does."""
    return next((row.part.fields for row in plan.rows if isinstance(row.part, HeldOut)), ())
