"""How many labels are saved: what an active order, or proposals, need to do as well as random order without them.

Labelled turns tell what an order of dialogues is worth; dialogues are not counted, so that an order gains nothing by
asking for long ones. Labels made by hand tell what proposals are worth as well: without them every label is made, with
them only the wrong ones are changed (`asking.Given`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from vrbot.evaluation.tables import Cell, Table
from vrbot.experiments.results import SystemRuns

SCORES = {
    "inference_state_f1": "state F1",
    "inference_action_f1": "action F1",
    "inference_category_accuracy": "category",
}
ACTIVE, RANDOM = "active", "random"
Point = tuple[float, float]
"""Effort, and the score reached with it."""

Effort = Literal["turns", "made", "changed"]


def effort_needed(curve: Sequence[Point], score: float) -> float | None:
    """The effort at which a curve first reaches a score; None if it never does.

    Between two rounds the score is taken to grow with the logarithm of the effort; before the first nothing is known.
    """
    before: Point | None = None
    for effort, reached in curve:
        if reached >= score:
            if before is None or reached == before[1]:
                return effort
            share = (score - before[1]) / (reached - before[1])
            return math.exp(math.log(before[0]) + share * (math.log(effort) - math.log(before[0])))
        before = (effort, reached)
    return None


def savings_table(systems: Sequence[SystemRuns], title: str) -> Table | None:
    """For each round of the random order: its score, and the share of its effort that is needed for it otherwise."""
    rows = []
    for metric, heading in SCORES.items():
        by_turns, by_hand = (mean_curve(systems, RANDOM, metric, effort) for effort in ("turns", "made"))
        active = mean_curve(systems, ACTIVE, metric, "turns")
        proposed = [mean_curve(systems, order, metric, "changed") for order in (RANDOM, ACTIVE)]
        for (turns, score), (labels, _) in zip(by_turns, by_hand, strict=True):
            shares = [_share(active, score, turns), *(_share(curve, score, labels) for curve in proposed)]
            rows.append((Cell(heading), Cell(turns), Cell(labels), Cell(score), *map(Cell, shares)))
    if not rows:
        return None
    columns = (
        "score",
        "turns, random order",
        "labels made",
        "reached",
        "turns in active order, %",
        "labels changed, random order, %",
        "labels changed, active order, %",
    )
    notes = (
        "Means over the seeds that are finished; between rounds the score grows with the logarithm of the effort",
        "Shares are of the random order without proposals, for the same score; changed are labels proposed wrongly",
        "-: it is not reached in the rounds there are; where the first round is past it, the first round counts",
    )
    return Table(f"{title}: labels saved", columns, tuple(rows), notes)


def _share(curve: Sequence[Point], score: float, effort: float) -> float | None:
    needed = effort_needed(curve, score)
    return None if needed is None or not effort else 100 * needed / effort


def mean_curve(systems: Sequence[SystemRuns], order: str, metric: str, effort: Effort) -> list[Point]:
    """Mean effort and mean score after each round, from left to right."""
    points = []
    for one in systems:
        row = one.row
        if row is None or row.asking is None or row.asking.order != order or not one.values(metric):
            continue
        number = row.asking.dialogues.index(int(row.place or 0))
        spent = fmean(float(run.result["rounds"][number][effort]) for run in one.runs)
        points.append((spent, fmean(one.values(metric))))
    return sorted(points)
