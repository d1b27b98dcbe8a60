"""Mutated files of every format: each is read, or refused as `file: field: problem: fix`; nothing else ever happens."""

from __future__ import annotations

import copy
import json
import pickle
import random
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from tests.dialogue_formats.examples import EXAMPLES, MEDDG, PROCESSED, RELEASE, write_canonical, write_release
from vrbot.dialogue.canonical import session_to_line
from vrbot.dialogue.formats import ImportReport, guess_format, read_sessions
from vrbot.dialogue.session import Session
from vrbot.dialogue.sources import Place
from vrbot.errors import DataError

BYTE_MUTANTS = 300
VALUE_MUTANTS = 200
"""Files of each kind; with five kinds by bytes, four by values and one inside its archive, 2,500 in all."""


def for_every_chance(count: int, check: Callable[[random.Random], None]) -> None:
    """Let hypothesis choose `count` sources of chance, the same in every run, and shrink those that fail."""
    chances = st.randoms(use_true_random=True)
    settings(max_examples=count, suppress_health_check=list(HealthCheck))(given(chances)(check))()


ODD_BYTES = [b"\0", b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\n", b'"', b"{", b"]", b"\\ud800", b"NaN", b"\x80", b"c", b"R"]
ODD_VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        2**70,
        10**5000,
        1.5,
        float("nan"),
        float("inf"),
        "",
        " ",
        "\0",
        "\ud800",
        "病人：",
        "x" * 999,
    ),
    *([], {}, [[]], [None], {"": {}}, ["x", 1], {"id": "x"}, "Doctor", "doctor", "prescribe"),
]


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """One to three flips, cuts, insertions, swaps or repetitions."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        start, end = sorted(chance.randrange(len(changed) + 1) for _ in range(2))
        match chance.randrange(6):
            case 0 if changed:
                changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            case 1:
                del changed[start:end]
            case 2:
                changed[start:start] = chance.choice(ODD_BYTES)
            case 3:
                changed[start:start] = changed[start : min(end, start + 200)]
            case 4:
                del changed[start:]
            case _:
                changed[:] = changed[end:] + changed[start:end] + changed[:start]
    return bytes(changed)


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) inside a value."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    for key in keys:
        found += [(value, key), *places_in(value[key])]
    return found


def mutate_value(value: Any, chance: random.Random) -> Any:
    """One to three values replaced, removed, renamed, swapped or doubled at random places."""
    changed = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        places = places_in(changed)
        if not places:
            return chance.choice(ODD_VALUES)
        container, key = chance.choice(places)
        match chance.randrange(5):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[chance.choice(["id", "turns", "odd", "\ud800", "Sentence"])] = container.pop(key)
            case 2 if isinstance(container, list):
                container.append(copy.deepcopy(container[key]))
            case 3:
                other, place = chance.choice(places)
                other[place] = copy.deepcopy(container[key]) if container[key] is not changed else None
            case _:
                container[key] = copy.deepcopy(chance.choice(ODD_VALUES))
    return changed


def outcome(path: Path, format: str) -> str:
    """How a reading ended; any exception but a well-formed DataError goes through."""
    skipped: list[DataError] = []
    report = ImportReport()
    sessions: list[Session] = []
    try:
        sessions.extend(read_sessions(path, format, on_bad=skipped.append, report=report))
        ended = "skipped some" if skipped else "read"
    except DataError as error:
        skipped.append(error)
        ended = "refused"
    assert report.sessions == len(sessions)
    assert report.skipped == len(skipped) - (ended == "refused")
    for complaint in skipped:
        check_shape(complaint, path)
    for session in sessions:  # whatever is accepted is fit to be written
        session_to_line(session, Place("memory", 1))
    return ended


def check_shape(error: DataError, path: Path) -> None:
    message = str(error)
    message.encode("utf-8")
    place = str(path) if error.line is None else f"{path}:{error.line}"
    assert message == f"{place}: {error.field}: {error.problem}: {error.fix}"
    assert all(part and part == part.strip() for part in (error.field, error.problem, error.fix)), message
    assert len(message.splitlines()) == 1, message
    assert len(message) < 500 + len(place), message


def guess_quietly(path: Path) -> None:
    try:
        guess_format(path)
    except DataError as error:
        check_shape(error, path)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_files_with_mutated_bytes_are_read_or_refused(tmp_path: Path, kind: str) -> None:
    format, name, write, _ = EXAMPLES[kind]
    path = tmp_path / name
    write(path)
    original = path.read_bytes()
    ends: Counter[str] = Counter()

    def check(chance: random.Random) -> None:
        path.write_bytes(mutate_bytes(original, chance))
        ends[outcome(path, format)] += 1
        guess_quietly(path)

    for_every_chance(BYTE_MUTANTS, check)
    assert ends.total() >= BYTE_MUTANTS
    assert ends["refused"] + ends["skipped some"] > BYTE_MUTANTS // 10  # the mutants are mutants


def rewrite_canonical(path: Path, value: Any) -> None:
    lines = value if isinstance(value, list) else [value]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def rewrite_release(path: Path, value: Any) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for index, document in enumerate(value if isinstance(value, list) else [value]):
            archive.writestr(f"{index}.json", json.dumps(document))


def rewrite_meddg(path: Path, value: Any) -> None:
    path.write_bytes(pickle.dumps(value))


def rewrite_processed(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


REWRITERS: dict[str, Callable[[Path, Any], None]] = {
    "canonical": rewrite_canonical,
    "release": rewrite_release,
    "meddg": rewrite_meddg,
    "processed": rewrite_processed,
}


def original_value(kind: str, path: Path) -> Any:
    if kind == "canonical":
        write_canonical(path)
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {"release": RELEASE, "meddg": MEDDG, "processed": PROCESSED}[kind]


@pytest.mark.parametrize("kind", REWRITERS)
def test_files_with_mutated_values_are_read_or_refused(tmp_path: Path, kind: str) -> None:
    format, name, _, _ = EXAMPLES[kind]
    path = tmp_path / name
    value = original_value(kind, path)
    ends: Counter[str] = Counter()

    def check(chance: random.Random) -> None:
        mutant = mutate_value(value, chance)
        try:
            REWRITERS[kind](path, mutant)
        except (ValueError, RecursionError):  # beyond what json itself can write: huge numbers
            reject()
        ends[outcome(path, format)] += 1

    for_every_chance(VALUE_MUTANTS, check)
    assert ends.total() >= VALUE_MUTANTS
    assert ends["refused"] + ends["skipped some"] > VALUE_MUTANTS // 10


def test_the_release_is_mutated_inside_its_archive_too(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    write_release(path)
    originals = [json.dumps(document, ensure_ascii=False).encode() for document in RELEASE]
    ends: Counter[str] = Counter()

    def check(chance: random.Random) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for index, original in enumerate(originals):
                archive.writestr(f"{index}.json", mutate_bytes(original, chance))
        ended = outcome(path, "release")
        ends[ended] += 1
        assert ended != "refused"  # the archive itself is whole

    for_every_chance(VALUE_MUTANTS, check)
    assert ends.total() >= VALUE_MUTANTS
