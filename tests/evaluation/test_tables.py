"""Tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrbot.errors import UsageError
from vrbot.evaluation.tables import Cell, Table

TABLE = Table(
    "Replies & more",
    ("system", "B@2", "turns"),
    (
        (Cell("VRBot|un_1"), Cell(12.3456, best=True, marker="*"), Cell(1752)),
        (Cell("空"), Cell(None), Cell(1752)),
        (Cell("seeds"), Cell(10.0, low=9.5, high=10.5), Cell(1752)),
    ),
    notes=("100 % of labels",),
)


def test_markdown_shows_bold_markers_intervals_and_what_is_absent() -> None:
    assert TABLE.to_markdown().splitlines() == [
        "**Replies & more**",
        "",
        "| system | B@2 | turns |",
        "| --- | ---: | ---: |",
        r"| VRBot\|un\_1 | **12.35**\* | 1752 |",
        "| 空 | - | 1752 |",
        "| seeds | 10.00 [9.50, 10.50] | 1752 |",
        "",
        "100 % of labels",
    ]


def test_latex_escapes_what_latex_would_read() -> None:
    text = TABLE.to_latex()
    assert r"\caption{Replies \& more. 100 \% of labels.}" in text
    assert r"\begin{tabular}{lrr}" in text
    assert r"VRBot|un\_1 & \textbf{12.35}\rlap{*} & 1752 \\" in text
    assert r"空 & - & 1752 \\" in text
    assert r"seeds & 10.00 [9.50, 10.50] & 1752 \\" in text


def test_csv_keeps_every_digit_and_gives_intervals_columns_of_their_own() -> None:
    rows = list(csv.reader(io.StringIO(TABLE.to_csv())))
    assert rows == [
        ["system", "B@2", "B@2 low", "B@2 high", "B@2 marker", "turns"],
        ["VRBot|un_1", "12.3456", "", "", "*", "1752"],
        ["空", "", "", "", "", "1752"],
        ["seeds", "10.0", "9.5", "10.5", "", "1752"],
    ]


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["C"])), st.floats(0, 100)), max_size=4))
def test_csv_gives_back_any_text_and_number(rows: list[tuple[str, float]]) -> None:
    table = Table("t", ("name", "value"), tuple((Cell(name), Cell(value)) for name, value in rows))
    back = list(csv.reader(io.StringIO(table.to_csv(), newline="")))[1:]
    assert [(name, float(value)) for name, value in back] == rows


@given(st.text())
def test_no_text_breaks_a_row_of_markdown_or_latex(text: str) -> None:
    table = Table(text, (text, "b"), ((Cell(text), Cell(1.0)),))
    markdown = table.to_markdown().split("\n")
    assert len(markdown) == 6
    assert markdown[4].replace("\\\\", "").replace("\\|", "").count("|") == 3
    body = table.to_latex().split("\\midrule\n")[1]
    assert body.split("\n")[0].replace("\\&", "").count("&") == 1


def test_a_row_of_the_wrong_length_is_refused_by_number() -> None:
    with pytest.raises(UsageError, match="row 1 of table 't' has 1 cells for 2 columns"):
        Table("t", ("a", "b"), ((Cell(1),),))
