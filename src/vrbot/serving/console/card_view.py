"""A model card taken apart into blocks a page can show as text: the little Markdown that cards are written in.

Nothing of a card is ever read as HTML: what is not a heading, a table or a code block is a paragraph of plain text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

FENCE = "```"
_RULE = re.compile(r"[\s|:-]+")


@dataclass(frozen=True)
class Heading:
    """A heading; the first level is the title."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Running text; its lines are joined, and the marks of inline code taken off."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines to be shown as they are."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Heading | Paragraph | Code | Grid


def blocks_of(card: str) -> list[Block]:
    """The blocks of a card, in order."""
    found: list[Block] = []
    parts = re.split(rf"^{FENCE}.*$", card, flags=re.MULTILINE)
    for place, part in enumerate(parts):
        if place % 2:
            found.append(Code(part.strip("\n")))
        else:
            for chunk in re.split(r"\n\s*\n", part):
                found += _chunk(chunk)
    return found


def _chunk(chunk: str) -> list[Block]:
    """The blocks of lines that no empty line divides."""
    found: list[Block] = []
    for kind, lines in groupby(chunk.strip().splitlines(), key=_kind):
        together = list(lines)
        if kind == "heading":
            found += [Heading(len(line) - len(line.lstrip("#")), _plain(line.lstrip("#"))) for line in together]
        elif kind == "table":
            found.append(_grid(together))
        elif any(line.strip() for line in together):
            found.append(Paragraph(_plain(" ".join(together))))
    return found


def _kind(line: str) -> str:
    if re.match(r"#{1,6} ", line):
        return "heading"
    return "table" if line.lstrip().startswith("|") else "text"


def _grid(lines: list[str]) -> Grid:
    rows = [tuple(_plain(cell) for cell in line.strip().strip("|").split("|")) for line in lines]
    content = [row for row, line in zip(rows, lines, strict=True) if not _RULE.fullmatch(line)]
    return Grid(content[0], tuple(content[1:])) if content else Grid((), ())


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").replace("**", "").split())
