"""Every way into the project for dialogues: `read_sessions` for one file, `split_files` for a folder of splits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from vrbot.dialogue.canonical import read_canonical, write_sessions
from vrbot.dialogue.import_report import Draft, ImportReport, Repair, Repairs
from vrbot.dialogue.importers.meddg import read_meddg
from vrbot.dialogue.importers.meddialog import read_meddialog
from vrbot.dialogue.importers.release import read_release
from vrbot.dialogue.session import Session
from vrbot.dialogue.sources import Place, require_file, shown
from vrbot.errors import DataError, UsageError

__all__ = [
    "FORMATS",
    "SPLITS",
    "ImportReport",
    "Repair",
    "guess_format",
    "read_sessions",
    "split_files",
    "write_sessions",
]

Reader: TypeAlias = Callable[[Path, Repairs], Iterator[Draft]]


@dataclass(frozen=True)
class Format:
    """How one kind of file is recognised by name and how its dialogues are found."""

    read: Reader
    suffixes: tuple[str, ...]
    folders: bool = False  # a split may also be a folder of single dialogues


FORMATS: Mapping[str, Format] = {
    "canonical": Format(read_canonical, (".jsonl",)),
    "release": Format(read_release, (".zip",), folders=True),
    "meddg": Format(read_meddg, (".pk", ".pkl", ".pickle")),
    "meddialog": Format(read_meddialog, (".json", ".txt")),
}

SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "validate", "val", "dev"),
    "test": ("test",),
}
"""The splits, and the words that name them in other people's files."""


def read_sessions(
    source: str | Path,
    format: str = "canonical",
    *,
    on_bad: Callable[[DataError], None] | None = None,
    report: ImportReport | None = None,
    seen: dict[str, Path] | None = None,
) -> Iterator[Session]:
    """The sessions of one file, in its order.

    A bad dialogue raises DataError; with `on_bad` it is handed over instead, counted and skipped. A file that cannot be
    taken apart into dialogues (missing, truncated, not of this format) raises DataError in either case.
    An id that was `seen` before is bad, too; pass one dictionary to several readings if it may be in one file only.
    """
    report = ImportReport() if report is None else report
    return _sessions(Path(source), _format_named(format).read, on_bad, report, {} if seen is None else seen)


def _sessions(
    source: Path,
    read: Reader,
    on_bad: Callable[[DataError], None] | None,
    report: ImportReport,
    seen: dict[str, Path],
) -> Iterator[Session]:
    for draft in read(source, report.repairs):
        repairs = Repairs()
        try:
            session = draft.read(repairs)
            if session.id in seen:
                raise _named_twice(session.id, draft.place, source, seen[session.id])
        except DataError as error:
            if on_bad is None:
                raise
            report.skipped += 1
            on_bad(error)
            continue
        seen[session.id] = source
        report.sessions += 1
        report.turns += len(session.turns)
        if repairs:
            report.repairs += repairs
        yield session


def _named_twice(name: str, place: Place, source: Path, earlier: Path) -> DataError:
    if earlier == source:
        return place.inside("id").error(f"{shown(name)} names an earlier dialogue too", "give each dialogue its own id")
    problem = f"{shown(name)} names a dialogue of {earlier} too"
    return place.inside("id").error(problem, "give each its own id, for example with `vrbot deidentify --prefix`")


def split_files(folder: str | Path, format: str = "canonical") -> dict[str, Path]:
    """The train, valid and test files of `folder`, by the words in their names; DataError names what is missing."""
    found = _candidates(Path(folder), _format_named(format))
    for split, files in found.items():
        if len(files) > 1:
            names = ", ".join(shown(file.name) for file in files)
            raise Place(folder, None, split).error(f"several files could be it: {names}", "leave one of them")
    missing = [split for split, files in found.items() if not files]
    if missing:
        suffixes = " or ".join(_format_named(format).suffixes)
        present = ", ".join(split for split, files in found.items() if files) or "none"
        problem = f"no {suffixes} file for {', '.join(missing)} (found: {present})"
        raise Place(folder, None, "splits").error(problem, f"add them, or name the format if it is not {format}")
    return {split: files[0] for split, files in found.items()}


def guess_format(source: str | Path) -> str:
    """The format of a file, by its first bytes and its name, or of a folder of splits, by its files' names."""
    path = Path(source)
    if path.is_dir():
        return _guess_for_folder(path)
    require_file(path)
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise Place(path).error(f"cannot be read ({error.strerror})", "check permissions and disk") from None
    for name, pattern in _FIRST_BYTES.items():
        if pattern.match(start):
            return name
    for name, format in FORMATS.items():
        if path.suffix.lower() in format.suffixes:
            return name
    raise Place(path, None, "format").error("cannot be guessed", f"name one of {', '.join(FORMATS)}")


_FIRST_BYTES = {
    "release": re.compile(rb"PK[\x03\x05]"),
    "meddg": re.compile(rb"\x80[\x02-\x05]"),
    "canonical": re.compile(rb"(\xef\xbb\xbf)?\s*\{"),
    "meddialog": re.compile(rb"(\xef\xbb\xbf)?\s*(\[|id\s*=\s*\d)"),
}


def _guess_for_folder(folder: Path) -> str:
    likely = [name for name, format in FORMATS.items() if any(_candidates(folder, format).values())]
    if not likely and any(folder.glob("*.json")):
        return "release"  # one unpacked split
    if len(likely) != 1:
        problem = f"could be {' or '.join(likely)}" if likely else "no file is named after a split"
        raise Place(folder, None, "format").error(problem, f"name one of {', '.join(FORMATS)}")
    return likely[0]


def _candidates(folder: Path, format: Format) -> dict[str, list[Path]]:
    """For each split the files it could be; folders of unpacked dialogues only where there is no file."""
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except (OSError, ValueError):
        raise Place(folder).error("is not a readable folder", "name the folder of the splits") from None
    files = [entry for entry in entries if entry.is_file() and entry.suffix.lower() in format.suffixes]
    folders = [entry for entry in entries if format.folders and entry.is_dir() and any(entry.glob("*.json"))]
    return {split: _named(files, words) or _named(folders, words) for split, words in SPLITS.items()}


def _named(entries: list[Path], words: tuple[str, ...]) -> list[Path]:
    return [entry for entry in entries if not set(words).isdisjoint(re.split(r"[^a-z]+", entry.stem.lower()))]


def _format_named(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"unknown format {shown(name)}: use one of {', '.join(FORMATS)}")
    return FORMATS[name]
