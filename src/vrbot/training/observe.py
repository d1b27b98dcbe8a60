"""What can be seen of a run: a CSV table, TensorBoard, a bar on a terminal, lines of text."""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from vrbot.files import atomic_write
from vrbot.training.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = ("step", "epoch", "stage", "phase", "name", "value", "unix_time")
"""Of metrics.csv, one row for each number; only the last column depends on when the run took place."""


@dataclass(frozen=True)
class Report:
    """Numbers of one moment of a run."""

    phase: str  # "train" or "valid"
    step: int
    epochs_done: float
    stage: int
    turns: int  # of training; 0 for a validation
    values: Mapping[str, float]
    is_best: bool = False


class Observer(Protocol):
    """Sees what happens; never changes it."""

    def started(self, progress: Progress, max_epochs: int) -> None: ...
    def reported(self, report: Report) -> None: ...
    def validating(self) -> None: ...
    def saving(self) -> None: ...
    def ended(self) -> None: ...


class Silent:
    """Sees nothing; others say only what they see."""

    def started(self, progress: Progress, max_epochs: int) -> None: ...
    def reported(self, report: Report) -> None: ...
    def validating(self) -> None: ...
    def saving(self) -> None: ...
    def ended(self) -> None: ...


class MetricsTable(Silent):
    """metrics.csv: what a resumed run did again is not in it twice."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._file: io.TextIOWrapper | None = None

    def started(self, progress: Progress, max_epochs: int) -> None:
        kept = [row for row in read_metrics(self._path) if _is_before(row, progress)] if self._path.exists() else []
        with atomic_write(self._path) as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *kept])
        self._file = self._path.open("a", encoding="utf-8", newline="")

    def reported(self, report: Report) -> None:
        assert self._file is not None
        place = (report.step, f"{report.epochs_done:.6f}", report.stage, report.phase)
        now = f"{self._clock():.3f}"
        rows = [(*place, name, repr(value), now) for name, value in report.values.items()]
        csv.writer(self._file, lineterminator="\n").writerows(rows)

    def saving(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())

    def ended(self) -> None:
        if self._file is not None:
            self._file.close()


def read_metrics(path: Path) -> list[list[str]]:
    """The rows of a metrics table without its header; a row cut short by a crash is left out."""
    with path.open(encoding="utf-8", newline="", errors="replace") as file:
        rows = list(csv.reader(line for line in file if line.endswith("\n")))
    return [row for row in rows[1:] if len(row) == len(COLUMNS) and row[0].isdecimal()]


def _is_before(row: list[str], progress: Progress) -> bool:
    step, phase = int(row[0]), row[3]
    if step == progress.step and phase == "valid":
        return progress.validated_step == step
    return step <= progress.step


class TensorBoard(Silent):
    """Event files for TensorBoard."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def started(self, progress: Progress, max_epochs: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self._folder), purge_step=progress.step + 1)

    def reported(self, report: Report) -> None:
        for name, value in report.values.items():
            self._writer.add_scalar(f"{report.phase}/{name}", value, report.step)

    def saving(self) -> None:
        self._writer.flush()

    def ended(self) -> None:
        self._writer.close()


class Lines(Silent):
    """A line of text for every validation."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def reported(self, report: Report) -> None:
        if report.phase == "valid":
            numbers = ", ".join(f"{name} {value:.4g}" for name, value in report.values.items())
            best = " (best so far)" if report.is_best else ""
            self._write(f"epoch {report.epochs_done:.2f}, step {report.step}, stage {report.stage}: {numbers}{best}")


class TerminalBar(Silent):
    """A bar on a terminal: how far, the terms of the loss, turns per second, time to go."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, transient=True)
        self._task = self._bar.add_task("starting")
        self._turns, self._since = 0, time.perf_counter()

    def started(self, progress: Progress, max_epochs: int) -> None:
        self._bar.update(self._task, total=max_epochs, completed=progress.epoch)
        self._bar.start()
        self._since = time.perf_counter()

    def reported(self, report: Report) -> None:
        self._turns += report.turns
        if report.phase == "train":
            speed = self._turns / max(time.perf_counter() - self._since, 1e-9)
            hidden = ("learning_rate", "gradient_norm", "turns")
            terms = " ".join(f"{name} {value:.3g}" for name, value in report.values.items() if name not in hidden)
            what = f"stage {report.stage} step {report.step}: {terms} | {speed:,.0f} turns/s"
            self._bar.update(self._task, completed=report.epochs_done, description=what)
        else:
            self._turns, self._since = 0, time.perf_counter()  # validation is not training time

    def validating(self) -> None:
        self._bar.update(self._task, description="validating")

    def ended(self) -> None:
        self._bar.stop()
