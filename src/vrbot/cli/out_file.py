"""Whether a file or a folder may be written: asked before any work, so that nothing of anybody's is lost after it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from vrbot.errors import UsageError


def check_out_file(out: Path, source: Path | None = None, *, overwrite: bool, option: str = "--out") -> None:
    """Refuses a folder, the source, and a file that is there unless it may be replaced."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder: give {option} the name of a file")
    if source is not None and same_file(out, source):
        raise UsageError(f"{out} is the source: give {option} the name of another file")
    if out.exists() and not overwrite:
        raise UsageError(f"{out} is there already: choose another name, or add --overwrite to replace it")
    _refuse_files(out.parents, f"give {option} a name in a folder")


def check_out_folder(out: Path) -> None:
    """Refuses a file, and a folder that holds anything."""
    _refuse_files((out, *out.parents), "give --out a new folder")
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty: give --out a new folder")


def check_not_inside(out: Path, *sources: Path) -> None:
    """Refuses a file that is there already in one of the source folders, whether or not it may be replaced."""
    for folder in sources:
        if out.exists() and out.resolve().is_relative_to(folder.resolve()):
            raise UsageError(f"{out} is a file of the source {folder}: choose another name")


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same place, through links too; neither needs to be there."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def _refuse_files(places: Iterable[Path], way_out: str) -> None:
    for place in places:
        if place.exists() and not place.is_dir():
            raise UsageError(f"{place} is a file: {way_out}")
