"""A table of results, written as Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vrbot.errors import UsageError

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}

ABSENT = "-"
"""Stands in text for a value that does not apply; CSV leaves it empty."""


@dataclass(frozen=True)
class Cell:
    """A value with its interval; `best` is set in bold, `marker` (such as "*") stands behind it."""

    value: float | int | str | None
    low: float | None = None
    high: float | None = None
    best: bool = False
    marker: str = ""


@dataclass(frozen=True)
class Table:
    """Columns with names, rows of cells, and notes that say how it was measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    decimals: int = 2

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise UsageError(
                    f"row {number} of table {self.title!r} has {len(row)} cells for {len(self.columns)} columns"
                )

    def to_markdown(self) -> str:
        """A GitHub table under its title, the notes below it."""
        lines = [[escape_markdown(column) for column in self.columns], self._alignments("---", "---:")]
        lines += [[self._markdown_cell(cell) for cell in row] for row in self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        notes = "".join(f"\n{escape_markdown(note)}\n" for note in self.notes)
        return f"**{escape_markdown(self.title)}**\n\n{body}\n{notes}"

    def to_latex(self) -> str:
        """A table environment with the rules of package booktabs."""
        rows = [" & ".join(self._latex_cell(cell) for cell in row) + r" \\" for row in self.rows]
        header = " & ".join(rf"\textbf{{{_escape_latex(column)}}}" for column in self.columns) + r" \\"
        caption = " ".join([_escape_latex(self.title) + ".", *(_escape_latex(note) + "." for note in self.notes)])
        lines = [r"\begin{table}[t]", r"\centering", rf"\caption{{{caption}}}"]
        lines += [rf"\begin{{tabular}}{{{''.join(self._alignments('l', 'r'))}}}", r"\toprule", header, r"\midrule"]
        lines += [*rows, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def to_csv(self) -> str:
        """Values to the last digit; a column with intervals or markers is followed by columns for them."""
        parts = [_csv_parts(column, [row[place] for row in self.rows]) for place, column in enumerate(self.columns)]
        names = [name for column in parts for name, _ in column]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        for row in self.rows:
            values = [read(cell) for cell, column in zip(row, parts, strict=True) for _, read in column]
            writer.writerow(["" if value is None else value for value in values])
        return text.getvalue()

    def _alignments(self, left: str, right: str) -> list[str]:
        """Columns with text to the left, columns of numbers to the right."""
        is_text = [any(isinstance(row[place].value, str) for row in self.rows) for place in range(len(self.columns))]
        return [left if text else right for text in is_text]

    def _number(self, value: float | int | str | None) -> str:
        if value is None:
            return ABSENT
        return f"{value:.{self.decimals}f}" if isinstance(value, float) else str(value)

    def _markdown_cell(self, cell: Cell) -> str:
        text = escape_markdown(self._number(cell.value))
        text = f"**{text}**" if cell.best else text
        return text + escape_markdown(cell.marker) + self._interval(cell)

    def _latex_cell(self, cell: Cell) -> str:
        text = _escape_latex(self._number(cell.value))
        text = rf"\textbf{{{text}}}" if cell.best else text
        marker = rf"\rlap{{{_escape_latex(cell.marker)}}}" if cell.marker else ""
        return text + marker + self._interval(cell)

    def _interval(self, cell: Cell) -> str:
        if cell.low is None or cell.high is None:
            return ""
        return f" [{self._number(float(cell.low))}, {self._number(float(cell.high))}]"


def _csv_parts(name: str, cells: Sequence[Cell]) -> list[tuple[str, Callable[[Cell], object]]]:
    parts: list[tuple[str, Callable[[Cell], object]]] = [(name, lambda cell: cell.value)]
    if any(cell.low is not None or cell.high is not None for cell in cells):
        parts += [(f"{name} low", lambda cell: cell.low), (f"{name} high", lambda cell: cell.high)]
    if any(cell.marker for cell in cells):
        parts.append((f"{name} marker", lambda cell: cell.marker))
    return parts


def escape_markdown(text: str) -> str:
    for character in "\\|*_`<":
        text = text.replace(character, "\\" + character)
    return " ".join(text.split())


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))
