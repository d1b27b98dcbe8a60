"""The stored replies of several systems, checked to be of the same turns, for human judges to compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vrbot.errors import DataError, UsageError
from vrbot.evaluation.human_study import SystemFile
from vrbot.evaluation.reply_files import read_replies
from vrbot.evaluation.turns import ScoredTurn, check_same_turns
from vrbot.files import sha256_of

ARROW = " → "


@dataclass(frozen=True, eq=False)
class Answers:
    """A system's stored turns; `paths` are, for each turn, the reasoning paths it gave, ready to read."""

    source: SystemFile
    turns: Sequence[ScoredTurn]
    paths: Sequence[tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Field:
    """All systems over the same turns; `names` gives entities their names by id."""

    systems: tuple[Answers, ...]
    names: tuple[str, ...]


def read_field(paths: Sequence[Path]) -> Field:
    """Two or more files of `vrbot evaluate --replies`; refuses files of different turns."""
    if len(paths) < 2:
        raise UsageError(f"a blind comparison needs at least two files of replies, got {len(paths)}")
    numbers: dict[str, int] = {}
    systems = []
    for path, name in zip(paths, _system_names(paths), strict=True):
        turns = read_replies(path, numbers)
        systems.append(Answers(SystemFile(name, str(path), sha256_of(path)), turns, _read_paths(path)))
    first = systems[0]
    for other in systems[1:]:
        try:
            check_same_turns(first.turns, other.turns)
        except UsageError as error:
            raise UsageError(f"{paths[0]} and {other.source.file} hold different turns: {error}") from None
    return Field(tuple(systems), tuple(numbers))


def _system_names(paths: Sequence[Path]) -> list[str]:
    """File names without their endings, where those tell the systems apart."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("one file of replies is given twice: a system cannot be compared with itself")
    short = [path.stem for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]


def _read_paths(file: Path) -> list[tuple[str, ...]]:
    """The optional `paths` of each line: texts, or lists of names to be joined by arrows."""
    found = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            paths = json.loads(line).get("paths") or []
            if not (isinstance(paths, list) and all(_is_path(path) for path in paths)):
                raise DataError(file, number, "paths", "is not a list of paths", "write texts, or lists of names")
            found.append(tuple(path if isinstance(path, str) else ARROW.join(path) for path in paths))
    return found


def _is_path(path: Any) -> bool:
    return isinstance(path, str) or (isinstance(path, list) and all(isinstance(part, str) for part in path))
