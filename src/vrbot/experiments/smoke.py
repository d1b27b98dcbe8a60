"""A small corpus of the clinic, for the plan that only shows that everything works."""

from __future__ import annotations

from pathlib import Path

from vrbot.clinic.simulate import SimulationSettings, simulate_corpus
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles

DIALOGUES = 30


def smoke_corpus(folder: Path, dialogues: int = DIALOGUES) -> Path:
    """A prepared corpus of so many simulated consultations in `folder/clinic`; one that is there is kept."""
    source, out = folder / "source", folder / "clinic"
    if not out.exists():
        simulate_corpus(source, SimulationSettings(dialogues, 1, "en"), overwrite=True)
        knowledge = KnowledgeFiles(
            graph=source / "graph.csv", lexicon=source / "lexicon.json", entities=source / "entities.csv"
        )
        prepare(source, out, PreparationSettings(knowledge=knowledge, segmenter="spaces"))
    return out
