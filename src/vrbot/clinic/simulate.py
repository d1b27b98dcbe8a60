"""A corpus of simulated consultations on disk, in the form `vrbot prepare` reads."""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from vrbot.clinic.consultation import consult, language_of
from vrbot.clinic.patient import draw_disease, draw_patient
from vrbot.clinic.physician import Physician
from vrbot.clinic.wording import DIFFICULTIES
from vrbot.clinic.world import LANGUAGES, World, load_world
from vrbot.dialogue.formats import write_sessions
from vrbot.dialogue.session import Session
from vrbot.errors import UsageError
from vrbot.files import atomic_write

SPLITS = ("train", "valid", "test")
MIN_DIALOGUES = 10
RECORD = "simulation.json"
NOTICE = "Simulated: patients, physicians and medical facts are fictional, for demonstration and not for treatment."


@dataclass(frozen=True)
class SimulationSettings:
    """What to simulate; the same settings give the same bytes on every machine."""

    dialogues: int
    seed: int
    language: str = "zh"
    difficulty: str = "normal"
    hold_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.dialogues < MIN_DIALOGUES:
            raise UsageError(f"dialogues must be at least {MIN_DIALOGUES}, got {self.dialogues}")
        _require(self.language, LANGUAGES, "language")
        _require(self.difficulty, tuple(DIFFICULTIES), "difficulty")
        departments = tuple(load_world().departments)
        for department in self.hold_out:
            _require(department, departments, "department to hold out")
        if len(set(self.hold_out)) == len(departments):
            raise UsageError("every department is held out, nothing is left to train on: leave one of them in")


@dataclass(frozen=True)
class SimulationReport:
    """What was written."""

    dialogues: dict[str, int]
    turns: dict[str, int]
    triples: int
    entities: int
    aliases: int


def simulate_sessions(settings: SimulationSettings) -> Iterator[Session]:
    """The consultations in order of their numbers; each depends on the seed and its own number only."""
    world = load_world()
    physician, language = Physician(world), language_of(settings.language)
    difficulty = DIFFICULTIES[settings.difficulty]
    for number in range(settings.dialogues):
        rng = Random(f"{settings.seed}/{number}")
        disease = draw_disease(world, tuple(world.departments), rng)
        patient = draw_patient(world, disease, rng)
        turns = consult(physician, patient, language, difficulty, rng)
        extra = {
            "department": disease.department,
            "diagnosis": world.name(disease.id, settings.language),
            "language": settings.language,
        }
        yield Session(f"clinic-{settings.language}-{settings.seed}-{number:06d}", turns, extra)


def assign_splits(sessions: Sequence[Session], settings: SimulationSettings) -> dict[str, list[Session]]:
    """80 % train, 10 % valid, 10 % test; dialogues of held-out departments are in test only."""
    free = [session for session in sessions if session.extra["department"] not in settings.hold_out]
    held_out = [session for session in sessions if session.extra["department"] in settings.hold_out]
    order = list(range(len(free)))
    Random(f"{settings.seed}/splits").shuffle(order)
    tenth = max(1, len(free) // 10)
    parts = {"valid": order[:tenth], "test": order[tenth : 2 * tenth], "train": order[2 * tenth :]}
    chosen = {split: [free[place] for place in sorted(parts[split])] for split in SPLITS}
    chosen["test"] = sorted(chosen["test"] + held_out, key=lambda session: session.id)
    return chosen


def simulate_corpus(
    out: str | Path,
    settings: SimulationSettings,
    *,
    overwrite: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> SimulationReport:
    """Write train.jsonl, valid.jsonl, test.jsonl and the world's files into the folder `out`.

    The folder appears complete or not at all. One that is not empty is replaced only with `overwrite`, and only
    where it was simulated.
    """
    target = Path(out)
    _require_free(target, overwrite)
    sessions = []
    for session in simulate_sessions(settings):
        sessions.append(session)
        if on_progress is not None:
            on_progress(1)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        report = _write(draft, assign_splits(sessions, settings), settings)
        draft.chmod(0o755)
        _put_in_place(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return report


def _write(folder: Path, splits: dict[str, list[Session]], settings: SimulationSettings) -> SimulationReport:
    world = load_world()
    for split, sessions in splits.items():
        write_sessions(folder / f"{split}.jsonl", sessions)
    write_world(folder, world, settings.language)
    report = SimulationReport(
        dialogues={split: len(sessions) for split, sessions in splits.items()},
        turns={split: sum(len(session.turns) for session in sessions) for split, sessions in splits.items()},
        triples=len(world.triples(settings.language)),
        entities=len(world.entities),
        aliases=len(world.aliases(settings.language)),
    )
    with atomic_write(folder / RECORD) as file:
        record = {"notice": NOTICE, "settings": asdict(settings), "report": asdict(report)}
        file.write(json.dumps(record, ensure_ascii=False, indent=2) + "\n")
    return report


def write_world(folder: Path, world: World, language: str) -> None:
    """Write graph.csv, entities.csv, alias.json and lexicon.json of the world into the folder."""
    _write_table(folder / "graph.csv", ("HEAD", "RELATION", "TAIL"), world.triples(language))
    _write_table(folder / "entities.csv", ("entity", "type"), world.typed_names(language))
    for name, content in (("alias", world.aliases(language)), ("lexicon", world.lexicon(language))):
        with atomic_write(folder / f"{name}.json") as file:
            file.write(json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def _write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _require_free(target: Path, overwrite: bool) -> None:
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file: name a folder")
    if target.is_dir() and any(target.iterdir()) and not overwrite:
        raise UsageError(f"{target} is not empty: choose another folder, or add --overwrite to replace it")
    if target.is_dir() and any(target.iterdir()) and not (target / RECORD).is_file():
        raise UsageError(f"{target} holds no simulated dialogues and will not be replaced: choose another folder")


def _put_in_place(draft: Path, target: Path) -> None:
    if not target.exists():
        draft.rename(target)
        return
    former = Path(tempfile.mkdtemp(prefix=f".{target.name}.former.", dir=target.parent))
    target.rename(former / "folder")
    try:
        draft.rename(target)
    except BaseException:
        (former / "folder").rename(target)
        raise
    finally:
        shutil.rmtree(former, ignore_errors=True)


def _require(value: str, choices: Sequence[str], what: str) -> None:
    if value not in choices:
        raise UsageError(f"unknown {what} {value!r}: choose one of {', '.join(choices)}")
