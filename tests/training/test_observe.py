"""What is seen of a run: a table that tells everything once, TensorBoard, lines, a bar."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.training.conftest import PARTS, Train
from vrbot.training.observe import COLUMNS, Lines, MetricsTable, Report, TerminalBar, read_metrics
from vrbot.training.progress import Progress


def report(step: int, phase: str = "train", **values: float) -> Report:
    return Report(phase, step, step / 10, 1, 5, values or {"loss": 1 / step})


def write(path: Path, progress: Progress, reports: list[Report], time: float) -> None:
    table = MetricsTable(path, lambda: time)
    table.started(progress, 3)
    for each in reports:
        table.reported(each)
    table.saving()
    table.ended()


def test_a_resumed_table_tells_every_step_once(tmp_path: Path) -> None:
    everything = [report(1), report(2), report(2, "valid"), report(3), report(4)]
    write(tmp_path / "whole", Progress(1), everything, 1.0)
    write(tmp_path / "cut", Progress(1), everything[:4], 2.0)
    with (tmp_path / "cut").open("a") as file:
        file.write("4,0.4,1,train,lo")
    write(tmp_path / "cut", Progress(1, step=2), everything[2:], 3.0)
    whole, cut = ([row[:-1] for row in read_metrics(tmp_path / name)] for name in ("whole", "cut"))
    assert cut == whole
    assert (tmp_path / "cut").read_text().splitlines()[0] == ",".join(COLUMNS)
    write(tmp_path / "cut", Progress(1, step=2, validated_step=2), everything[3:], 4.0)
    assert [row[:-1] for row in read_metrics(tmp_path / "cut")] == whole


def test_numbers_keep_all_their_digits(tmp_path: Path) -> None:
    write(tmp_path / "table", Progress(1), [report(3, loss=0.1 + 0.2)], 1.0)
    assert float(read_metrics(tmp_path / "table")[0][5]) == 0.1 + 0.2


def test_tensorboard_gets_the_numbers_of_the_table(train: Train, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(tmp_path / "run", parts=replace(PARTS, tensorboard=True), max_epochs=1)
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    rows = read_metrics(tmp_path / "run" / "metrics.csv")
    for tag in ("train/loss", "train/words", "valid/micro_f1"):
        phase, name = tag.split("/")
        expected = [(int(row[0]), float(row[5])) for row in rows if row[3] == phase and row[4] == name]
        assert [step for step, _ in expected] == [event.step for event in events.Scalars(tag)]
        assert [value for _, value in expected] == pytest.approx([event.value for event in events.Scalars(tag)])


def test_lines_tell_validations_only() -> None:
    lines: list[str] = []
    observer = Lines(lines.append)
    observer.reported(report(1))
    observer.reported(replace(report(2, "valid", micro_f1=12.345), is_best=True))
    assert lines == ["epoch 0.20, step 2, stage 1: micro_f1 12.35 (best so far)"]


def test_the_bar_shows_terms_speed_and_stage() -> None:
    screen = io.StringIO()
    bar = TerminalBar(Console(file=screen, force_terminal=True, width=200))
    bar.started(Progress(1), 3)
    bar.reported(report(4, loss=3.21, learning_rate=0.1))
    bar.validating()
    bar.reported(report(4, "valid"))
    bar.reported(report(5, loss=1.23))
    bar.ended()
    shown = screen.getvalue()
    assert "stage 1 step 5: loss 1.23" in shown
    assert "turns/s" in shown
    assert "learning_rate" not in shown
