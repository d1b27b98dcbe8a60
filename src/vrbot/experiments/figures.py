"""Curves with intervals: one panel for each metric, one line for each curve of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vrbot.experiments.design import Plan
from vrbot.experiments.report_tables import LATENT_COLUMNS, REPLY_COLUMNS
from vrbot.experiments.results import SystemRuns
from vrbot.files import atomic_write_bytes

HEADINGS = {**REPLY_COLUMNS, **LATENT_COLUMNS}


def curve_points(
    systems: Sequence[SystemRuns], curve: str, metric: str
) -> list[tuple[float, float, float | None, float | None]]:
    """Place, mean, low and high of every finished point of a curve, from left to right."""
    points = []
    for one in systems:
        summary = one.summary(metric)
        if one.row is not None and one.row.curve == curve and one.row.place is not None and summary is not None:
            points.append((float(one.row.place), summary.mean, summary.low, summary.high))
    return sorted(points, key=lambda point: point[0])


def draw_curves(path: Path, plan: Plan, systems: Sequence[SystemRuns], title: str) -> bool:
    """Writes the plan's figure as PNG; False, and no file, where no point of it is finished. All text is Latin."""
    curves = list(dict.fromkeys(row.curve for row in plan.rows if row.curve is not None))
    lines = {(curve, metric): curve_points(systems, curve, metric) for curve in curves for metric in plan.drawn}
    shown = [metric for metric in plan.drawn if any(lines[curve, metric] for curve in curves)]
    if not shown:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(4.2 * len(shown), 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for panel, metric in zip(panels, shown, strict=True):
        for curve in curves:
            _draw(panel, lines[curve, metric], curve)
        panel.set_xlabel(plan.axis)
        panel.set_ylabel(HEADINGS.get(metric, metric))
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize="small")
    figure.suptitle(title, fontsize="medium")
    with atomic_write_bytes(path) as file:
        figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    return True


def _draw(panel: Any, points: Sequence[tuple[float, float, float | None, float | None]], label: str) -> None:
    places, means = [point[0] for point in points], [point[1] for point in points]
    below = [0.0 if low is None else mean - low for _, mean, low, _ in points]
    above = [0.0 if high is None else high - mean for _, mean, _, high in points]
    panel.errorbar(places, means, yerr=[below, above], marker="o", capsize=3, label=label)
