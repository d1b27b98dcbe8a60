"""Tables of scores on the command line, in the format that was asked for."""

from __future__ import annotations

from enum import StrEnum

from vrbot.cli.printing import say, say_table
from vrbot.evaluation.tables import Cell, Table


class Format(StrEnum):
    """How tables are written."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"


def say_scores(table: Table, form: Format) -> None:
    """Write a table of scores in one of the formats, for a terminal with its title and notes."""
    if form is Format.TERMINAL:
        say(table.title)
        say_table(table.columns, [[_score(table, cell) for cell in row] for row in table.rows])
        for line in (*table.notes, ""):
            say(line)
        return
    written = {Format.MARKDOWN: table.to_markdown, Format.LATEX: table.to_latex, Format.CSV: table.to_csv}
    say(written[form]())


def _score(table: Table, cell: Cell) -> str | None:
    """With its marker, and its interval where it has one."""

    def number(value: float) -> str:
        return f"{value:.{table.decimals}f}"

    if not isinstance(cell.value, float):
        return None if cell.value is None else f"{cell.value}{cell.marker}"
    interval = "" if cell.low is None or cell.high is None else f" [{number(cell.low)}, {number(cell.high)}]"
    return number(cell.value) + cell.marker + interval
