"""How many labels an active order saves: what it needs to do as well as the random order does.

Labels are counted in turns, not in dialogues, so that an order gains nothing by asking for long ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from vrbot.evaluation.tables import Cell, Table
from vrbot.experiments.results import SystemRuns

SCORES = {
    "inference_state_f1": "state F1",
    "inference_action_f1": "action F1",
    "inference_category_accuracy": "category",
}
ACTIVE, RANDOM = "active", "random"
Point = tuple[float, float]
"""Labelled turns, and the score reached with them."""


def turns_needed(curve: Sequence[Point], score: float) -> float | None:
    """The labelled turns at which a curve first reaches a score; None if it never does.

    Between two rounds the score is taken to grow with the logarithm of the turns; before the first nothing is known.
    """
    before: Point | None = None
    for turns, reached in curve:
        if reached >= score:
            if before is None or reached == before[1]:
                return turns
            share = (score - before[1]) / (reached - before[1])
            return math.exp(math.log(before[0]) + share * (math.log(turns) - math.log(before[0])))
        before = (turns, reached)
    return None


def savings_table(systems: Sequence[SystemRuns], title: str) -> Table | None:
    """For each round of the random order: its score, and the share of its turns that the active order needs for it."""
    curves = {(order, metric): mean_curve(systems, order, metric) for order in (ACTIVE, RANDOM) for metric in SCORES}
    rows = []
    for metric, heading in SCORES.items():
        for turns, score in curves[RANDOM, metric]:
            needed = turns_needed(curves[ACTIVE, metric], score)
            share = None if needed is None else 100 * needed / turns
            rows.append((Cell(heading), Cell(turns), Cell(score), Cell(needed), Cell(share)))
    if not rows:
        return None
    columns = ("score", "turns, random order", "reached", "turns, active order, to reach it", "share, %")
    notes = (
        "Means over the seeds that are finished; between rounds the score grows with the logarithm of the turns",
        "-: the active order does not reach it in its rounds; where its first round is past it, the first round counts",
    )
    return Table(f"{title}: labels saved", columns, tuple(rows), notes)


def mean_curve(systems: Sequence[SystemRuns], order: str, metric: str) -> list[Point]:
    """Mean labelled turns and mean score after each round, from left to right."""
    points = []
    for one in systems:
        row = one.row
        if row is None or row.asking is None or row.asking.order != order or not one.values(metric):
            continue
        number = row.asking.dialogues.index(int(row.place or 0))
        turns = fmean(float(run.result["rounds"][number]["turns"]) for run in one.runs)
        points.append((turns, fmean(one.values(metric))))
    return sorted(points)
