"""A blind study: what raters may see (`study.json`, which the console reads), and what they may not (`key.json`).

Codes are drawn at random for each item; only the key says which system wrote what. Replies and explanations of one
system have different codes, so that an explanation does not give away who wrote a reply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from vrbot.errors import DataError, IntegrityError
from vrbot.evaluation.human_criteria import Criterion, Question
from vrbot.files import atomic_write, sha256_of

VERSION = 1
STUDY, KEY, SHEETS = "study.json", "key.json", "sheets"
_FIX = "give the folder that `vrbot humaneval draw` wrote"
Content = TypeVar("Content")


@dataclass(frozen=True)
class Line:
    """One utterance of the conversation before the reply."""

    speaker: Literal["patient", "physician"]
    text: str


@dataclass(frozen=True)
class Candidate:
    """A reply to judge; systems that said the same share one."""

    code: str
    reply: str


@dataclass(frozen=True)
class Mark:
    """One yes/no question about an explanation: is this keyword explained, is this entity accounted for?"""

    code: str
    asked: Literal["keyword", "entity"]
    name: str


@dataclass(frozen=True)
class Explanation:
    """Why a system acted so: its state and action; `linked` are keywords to which the graph leads from the state."""

    code: str
    state: tuple[str, ...]
    category: str | None
    keywords: tuple[str, ...]
    linked: tuple[str, ...]
    paths: tuple[str, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Pair:
    """Two replies or two explanations to choose between, in the order of their codes."""

    code: str
    about: Literal["reply", "explanation"]
    first: str
    second: str


@dataclass(frozen=True)
class Item:
    """One turn of one dialogue: the conversation, and everything that is judged about it, in the order of codes."""

    item: str
    context: tuple[Line, ...]
    candidates: tuple[Candidate, ...]
    explanations: tuple[Explanation, ...]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class ShownPair:
    """A pair as one rater sees it."""

    code: str
    first: str
    second: str


@dataclass(frozen=True)
class Page:
    """An item as one rater sees it: every tuple is an order of codes."""

    item: str
    candidates: tuple[str, ...]
    explanations: tuple[str, ...]
    pairs: tuple[ShownPair, ...]


@dataclass(frozen=True)
class Share:
    """What one rater judges, in that rater's own order."""

    rater: str
    pages: tuple[Page, ...]


@dataclass(frozen=True)
class Study:
    """Everything a rater may see; `study.json` holds exactly these fields."""

    version: int
    criteria: tuple[Criterion, ...]
    questions: tuple[Question, ...]
    items: tuple[Item, ...]
    shares: tuple[Share, ...]

    @cached_property
    def item_of(self) -> dict[str, Item]:
        """Items by name."""
        return {item.item: item for item in self.items}


@dataclass(frozen=True)
class SystemFile:
    """A system, and the replies that were drawn from."""

    name: str
    file: str
    sha256: str


@dataclass(frozen=True)
class DrawnTurn:
    """Where an item comes from."""

    session: str
    turn: int


@dataclass(frozen=True)
class Key:
    """Who wrote what; `without_keywords` names, by item with reference entities, systems that predicted no keyword."""

    version: int
    study_sha256: str
    seed: int
    systems: tuple[SystemFile, ...]
    turns: Mapping[str, DrawnTurn]
    replies: Mapping[str, tuple[str, ...]]
    explanations: Mapping[str, tuple[str, ...]]
    without_keywords: Mapping[str, tuple[str, ...]]


def write_study(path: Path, study: Study) -> None:
    """The console's file, whole or not at all."""
    _write_json(path, study)


def write_key(path: Path, key: Key) -> None:
    """The file that raters must not have, whole or not at all."""
    _write_json(path, key)


def read_study(path: Path) -> Study:
    """The study of a file; DataError where it is none."""
    return _read(path, Study)


def read_key(path: Path, study_path: Path) -> Key:
    """The key of a study; IntegrityError where it is another study's, or the study was changed since."""
    key = _read(path, Key)
    if key.study_sha256 != sha256_of(study_path):
        raise IntegrityError(
            f"{path} is not the key of {study_path}, or that file was changed: put back the two files that were drawn "
            "together"
        )
    return key


def _write_json(path: Path, content: Any) -> None:
    with atomic_write(path) as file:
        json.dump(asdict(content), file, ensure_ascii=False, indent=1, allow_nan=False)
        file.write("\n")


def _read(path: Path, kind: type[Content]) -> Content:
    try:
        content = TypeAdapter(kind).validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(path, None, "file", f"cannot be read ({error.strerror})", _FIX) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "file"
        raise DataError(path, None, field, first["msg"], _FIX) from error
    version = getattr(content, "version", VERSION)
    if version != VERSION:
        raise DataError(path, None, "version", f"is {version}, this program knows {VERSION}", "draw the study again")
    return content
