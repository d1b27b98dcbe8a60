"""The corpora of our own tables: a small clinic, simulated, and three real ones made from files that are not ours.

The same files give the same corpus to the byte, so that an experiment begun on one machine can go on on another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from vrbot.clinic.simulate import SimulationSettings, simulate_corpus
from vrbot.dialogue.formats import read_sessions, write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles
from vrbot.errors import UsageError

CLINIC = SimulationSettings(dialogues=1500, seed=20261)
KEPT = {"train": 360, "valid": 80, "test": 150}
"""Dialogues of the small clinic: few, as they are where every label costs a physician's time."""


def _clinic(data: Path | None, folder: Path) -> None:
    whole, kept = folder / "clinic-whole", folder / "clinic-kept"
    simulate_corpus(whole, CLINIC, overwrite=True)
    kept.mkdir(exist_ok=True)
    for split, count in KEPT.items():
        sessions = islice(read_sessions(whole / f"{split}.jsonl"), count)
        write_sessions(kept / f"{split}.jsonl", sessions)
    knowledge = KnowledgeFiles(whole / "graph.csv", None, whole / "lexicon.json", whole / "entities.csv")
    prepare(kept, folder / "clinic", PreparationSettings(knowledge=knowledge))


def _meddg(data: Path | None, folder: Path) -> None:
    dialogues, graph = _needed(data, "meddg"), _needed(data, "graphs/meddg")
    knowledge = KnowledgeFiles(
        graph / "graph.csv", graph / "alias.json", dialogues / "lexicon.json", dialogues / "entities.csv"
    )
    prepare(dialogues, folder / "meddg", PreparationSettings(knowledge=knowledge))


def _imcs(data: Path | None, folder: Path) -> None:
    """Without names that few mention or that labels pass over (decision 0016)."""
    dialogues, graph = _needed(data, "imcs"), _needed(data, "graphs/kamed")
    knowledge = KnowledgeFiles(graph / "graph.csv", graph / "alias.json", None, dialogues / "entities.csv")
    settings = PreparationSettings(knowledge=knowledge, minimum_mentions=10, minimum_labelled=0.5)
    prepare(dialogues, folder / "imcs", settings)


def _covid(data: Path | None, folder: Path) -> None:
    """Nothing in it is labelled, and no setting of any system was ever chosen on it."""
    dialogues, graph = _needed(data, "covid_zh"), _needed(data, "graphs/kamed")
    knowledge = KnowledgeFiles(graph / "graph.csv", graph / "alias.json", None, None)
    prepare(dialogues, folder / "covid", PreparationSettings(knowledge=knowledge, minimum_mentions=10))


BUILDERS: Mapping[str, Callable[[Path | None, Path], None]] = {
    "clinic": _clinic,
    "meddg": _meddg,
    "imcs": _imcs,
    "covid": _covid,
}


def own_encoder(data: Path | None) -> Path | None:
    """The pretrained encoder beside the real dialogues, if there is one."""
    folder = None if data is None else data / "encoder"
    return folder if folder is not None and folder.is_dir() else None


def own_corpus(name: str, data: Path | None, folder: Path) -> Path:
    """The prepared corpus `folder/name`, made where it is not there; UsageError where its files are not in `data`."""
    out = folder / name
    if not out.exists():
        folder.mkdir(parents=True, exist_ok=True)
        BUILDERS[name](data, folder)
    return out


def _needed(data: Path | None, part: str) -> Path:
    if data is None:
        raise UsageError(f"the real dialogues of {part} are not in this repository: name their folder with --data")
    if not (data / part).is_dir():
        raise UsageError(f"{data} has no folder {part}: name the folder that holds it with --data")
    return data / part
