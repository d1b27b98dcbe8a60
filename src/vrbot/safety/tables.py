"""The rule tables beside this module, read once."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

NOTICE = {
    "zh": "这些规则由本项目编写，仅供提示，使用前必须由临床医生审核；没有提示不等于安全。",
    "en": "These rules were written for this project as reminders only; a clinician must review them before use, and "
    "silence never means safety.",
}
"""To be shown wherever findings of this package are shown."""

Row = dict[str, str]


@cache
def rows_of(table: str) -> tuple[Row, ...]:
    """The rows of `table`.csv."""
    text = files("vrbot.safety").joinpath(f"{table}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


@cache
def lines_of(table: str) -> tuple[str, ...]:
    """The lines of `table`.txt that are neither empty nor a comment."""
    text = files("vrbot.safety").joinpath(f"{table}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def items(cell: str) -> tuple[str, ...]:
    """The entries of a cell, separated by semicolons."""
    return tuple(item for item in cell.split(";") if item)
