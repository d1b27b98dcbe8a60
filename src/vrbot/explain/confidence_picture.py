"""Confidence as a picture: a reliability diagram and a risk-coverage curve side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vrbot.errors import UsageError
from vrbot.explain.confidence import Confidence, Reliability
from vrbot.explain.picture import save

FORMATS = (".png", ".svg")


def draw_confidence(confidence: Confidence, path: Path) -> None:
    """Writes the picture as PNG or SVG, by the ending of the path."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path} is neither a .png nor a .svg file: choose one of these endings")
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": "vrbot"}):
        figure: Any = Figure(figsize=(10, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_reliability(left, confidence)
        _draw_risk(right, confidence)
        save(figure, path)


def _draw_reliability(axes: Any, confidence: Confidence) -> None:
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    kinds: tuple[tuple[str, Reliability, str], ...] = (
        ("as it is", confidence.before, "#fdae6b"),
        (f"temperature {confidence.temperature:.2f}", confidence.after, "#3182bd"),
    )
    for name, found, colour in kinds:
        label = f"{name}: error {found.error:.1%}"
        axes.plot([b.confidence for b in found.bins], [b.accuracy for b in found.bins], "o-", color=colour, label=label)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="share that is right", title="reliability")
    axes.legend(loc="upper left", fontsize=8)


def _draw_risk(axes: Any, confidence: Confidence) -> None:
    curve = confidence.risk_coverage
    axes.plot(curve.coverage, curve.risk, color="#3182bd", label=f"area {curve.area:.1%}, best {curve.best_area:.1%}")
    axes.set(xlim=(0, 1), xlabel="coverage", ylabel="risk", title="wrong among those answered")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", fontsize=8)
