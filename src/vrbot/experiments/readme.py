"""Short tables of reports in a document of the project, between marks that name the folder of a report.

They are made from the CSV files of the report and from nothing else, so that a document can be checked against what is
committed beside it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from vrbot.errors import UsageError
from vrbot.evaluation.obedience import ORACLE
from vrbot.evaluation.tables import ABSENT, escape_markdown
from vrbot.experiments.selections import ToldCategory
from vrbot.files import atomic_write

MARKED = re.compile(r"(?P<first><!-- results: (?P<folder>\S+) -->\n).*?(?P<last><!-- end of results -->)", re.DOTALL)
PERPLEXITY = "perplexity"
COLUMNS = ("mi-F1", "mi-F1 w/o most frequent", "ma-F1", "EA", "B@2", "R@2", "D@2", PERPLEXITY, "state F1", "action F1")
HOW_TO_READ = (
    "After ± half of the 95 % interval over seeds (t distribution). VRBot against the best other trained system of a "
    r"column, of those with as many labels: \* better by paired bootstrap, + better by paired t-test, ! worse, after "
    "Holm's correction. "
)
WHOLE = "Whole, with what is not comparable: [report]({folder}/report.md)."
Row = Mapping[str, str]


def write_tables(document: Path) -> bool:
    """Writes the tables of a document anew; the same reports again change nothing. Whether anything changed."""
    try:
        before = document.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{document} cannot be read ({error.strerror}): give a document that is there") from error
    after = with_tables(before, document.parent)
    if after != before:
        with atomic_write(document) as file:
            file.write(after)
    return after != before


def with_tables(text: str, root: Path) -> str:
    """The text with the tables its marks ask for; folders are looked for below `root`."""
    if MARKED.search(text) is None:
        raise UsageError(
            "there is no place for a table: add the lines <!-- results: FOLDER --> and <!-- end of results -->"
        )
    said = iter((HOW_TO_READ,))  # under the first table alone
    return MARKED.sub(
        lambda found: f"{found['first']}\n{_tables(root, found['folder'], next(said, ''))}\n\n{found['last']}", text
    )


def _tables(root: Path, folder: str, how_to_read: str) -> str:
    files = sorted((root / folder).glob("*-replies.csv"))
    if not files:
        raise UsageError(f"{folder} holds no table of replies: copy the report of an experiment there")
    tables = [_table(_read(file), _read(file.with_name(file.name.replace("-replies", "-latents")))) for file in files]
    return "\n\n".join([*tables, how_to_read + WHOLE.format(folder=folder)])


def _read(file: Path) -> dict[str, Row]:
    if not file.is_file():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        return {row["system"]: row for row in csv.DictReader(lines)}


def _table(replies: Mapping[str, Row], latents: Mapping[str, Row]) -> str:
    rows: list[Row] = [{**latents.get(name, {}), **row} for name, row in replies.items()]
    shown = [column for column in COLUMNS if any(row.get(column) for row in rows)]
    best = {column: _best(rows, column) for column in shown}
    lines = [["system", "seeds", *map(escape_markdown, shown)], ["---", "---", *("---:" for _ in shown)]]
    for row in rows:
        cells = [_cell(row, column, best[column]) for column in shown]
        if any(cell != ABSENT for cell in cells):
            lines.append([escape_markdown(row["system"]), _seeds(row["runs"]), *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _seeds(runs: str) -> str:
    """3/3 -> 3, 2/3 -> 2 of 3."""
    done, _, planned = runs.partition("/")
    return done if done == planned else f"{done} of {planned}"


def _best(rows: Sequence[Row], column: str) -> float | None:
    """The best mean of at least two systems that count: the highest, but of perplexities the lowest."""
    means = [float(row[column]) for row in rows if row.get(column) and _may_be_bold(row)]
    if len(means) < 2:
        return None
    return min(means) if column == PERPLEXITY else max(means)


def _may_be_bold(row: Row) -> bool:
    """Not who is told an answer, nor what others published, which has no runs."""
    return bool(row["runs"]) and ORACLE not in row["system"] and not row["system"].endswith(ToldCategory().key)


def _cell(row: Row, column: str, best: float | None) -> str:
    if not row.get(column):
        return ABSENT
    mean, low, high = (
        float(row[name]) if row.get(name) else None for name in (column, f"{column} low", f"{column} high")
    )
    is_best = mean == best and _may_be_bold(row)
    text = f"**{mean:.1f}**" if is_best else f"{mean:.1f}"
    spread = "" if low is None or high is None else f" ± {(high - low) / 2:.1f}"
    return text + escape_markdown(row.get(f"{column} marker") or "") + spread
