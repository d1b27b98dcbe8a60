"""The triples of a knowledge graph, by name, as they stand in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vrbot.errors import DataError
from vrbot.knowledge.tables import checked_name, read_json, read_table, shown

COLUMNS = ("head", "relation", "tail")


class Triple(NamedTuple):
    """One fact: `head` stands in `relation` to `tail`."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True)
class TripleFile:
    """The different triples of a file in their order, and how many rows repeated an earlier one."""

    triples: list[Triple]
    num_duplicates: int


def read_triples(path: str | Path) -> list[Triple]:
    """The different triples of a CSV file (HEAD,RELATION,TAIL) or a JSON file (lists or objects)."""
    return load_triples(path).triples


def load_triples(path: str | Path) -> TripleFile:
    """Like `read_triples`, with the number of repeated rows."""
    source = Path(path)
    rows = list(_json_triples(source) if source.suffix.lower() == ".json" else _csv_triples(source))
    if not rows:
        raise DataError(source, None, "file", "holds no triples", "give at least one HEAD,RELATION,TAIL row")
    return without_duplicates(rows)


def without_duplicates(triples: Iterable[Triple]) -> TripleFile:
    """Each triple once, at its first place; parallel relations between the same two names are different triples."""
    rows = list(triples)
    unique = list(dict.fromkeys(rows))
    return TripleFile(unique, len(rows) - len(unique))


def _csv_triples(path: Path) -> Iterator[Triple]:
    checked: dict[str, str] = {}  # a graph repeats its names many times; each is checked where it first stands
    for line, cells in read_table(path, COLUMNS):
        for column, cell in zip(COLUMNS, cells, strict=True):
            if cell not in checked:
                checked[cell] = checked_name(cell, path, line, column)
        yield Triple(*[checked[cell] for cell in cells])


def _json_triples(path: Path) -> Iterator[Triple]:
    rows = read_json(path)
    if not isinstance(rows, list):
        raise DataError(path, None, "json", f"{shown(rows)} is not a list", "write a list of [head, relation, tail]")
    for position, row in enumerate(rows):
        if isinstance(row, dict):
            folded = {key.lower(): value for key, value in row.items()}
            cells = [folded.get(column) for column in COLUMNS]
        elif isinstance(row, list) and len(row) == len(COLUMNS):
            cells = row
        else:
            fix = "write [head, relation, tail] or an object with these keys"
            raise DataError(path, None, f"[{position}]", f"{shown(row)} is not a triple", fix)
        yield Triple(
            *(
                checked_name(cell, path, None, f"[{position}].{column}")
                for column, cell in zip(COLUMNS, cells, strict=True)
            )
        )
