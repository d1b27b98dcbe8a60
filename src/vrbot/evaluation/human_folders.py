"""The folder of a human evaluation: drawn once, filled by raters, read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vrbot.errors import DataError, UsageError
from vrbot.evaluation.human_criteria import guide
from vrbot.evaluation.human_ratings import Asked, Given, Judgement, read_ratings, without_repetition
from vrbot.evaluation.human_sample import Draw, key_of
from vrbot.evaluation.human_sheets import read_sheet, write_sheets
from vrbot.evaluation.human_study import KEY, SHEETS, STUDY, Study, write_key, write_study
from vrbot.evaluation.human_systems import Field
from vrbot.files import atomic_write, sha256_of

GUIDE = "guide.md"


def write_folder(folder: Path, draw: Draw, field: Field, seed: int) -> None:
    """Sheets, guide and study, then the key; refuses a folder that holds anything, for it may hold ratings."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not empty and may hold ratings: choose another folder with --out")
    sheets = folder / SHEETS
    sheets.mkdir(parents=True)
    write_sheets(sheets, draw.study)
    with atomic_write(sheets / GUIDE) as file:
        file.write(guide())
    write_study(folder / STUDY, draw.study)
    write_key(folder / KEY, key_of(draw, field, seed, sha256_of(folder / STUDY)))


def gather_judgements(study: Study, sources: Sequence[Path]) -> list[Judgement]:
    """Everything that is answered in sheets (.csv) and the console's files (.jsonl), or in folders of them."""
    asked = Asked(study)
    given: list[Given] = []
    for path in _files(sources):
        given += read_sheet(path, asked) if path.suffix == ".csv" else read_ratings(path, asked)
    return without_repetition(given)


def _files(sources: Sequence[Path]) -> list[Path]:
    found = []
    for source in sources:
        if source.is_dir():
            found += sorted(path for path in source.iterdir() if path.suffix in (".csv", ".jsonl"))
        elif source.suffix in (".csv", ".jsonl"):
            found.append(source)
        else:
            raise DataError(source, None, "file", "is neither a sheet nor a folder", "give .csv, .jsonl or a folder")
    return found
