"""A consultation note: what was found and proposed, each item with the turn it came from, for a physician to correct.

Nothing is added: complaints are the entities of the model's states, proposals what the physician's answers name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vrbot.agent.respond import Conversation
from vrbot.errors import UsageError
from vrbot.explain.explainer import Explainer
from vrbot.explain.readable import printable, words_of
from vrbot.explain.steering import Change, perceive
from vrbot.files import atomic_write

Section = Literal["complaints", "assessment", "medicines", "tests"]
SECTION_OF: Mapping[str, Section] = {"disease": "assessment", "medicine": "medicines", "test": "tests"}
SECTIONS: tuple[Section, ...] = ("complaints", "assessment", "medicines", "tests")
TITLES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "Consultation note (draft, to be checked by a physician)",
        "complaints": "Complaints and findings",
        "assessment": "Considered diagnoses",
        "medicines": "Medicines mentioned",
        "tests": "Tests mentioned",
        "dropped": "no longer in the state from turn {turn}",
    },
    "zh": {
        "title": "问诊记录（草稿，须由医生核对）",
        "complaints": "主诉与发现",
        "assessment": "考虑的诊断",
        "medicines": "提到的药物",
        "tests": "提到的检查",
        "dropped": "自第 {turn} 轮起不在状态中",
    },
}


@dataclass(frozen=True)
class NoteItem:
    """An entity, the turn (from 1) it first came up in, who it came from, and the turn it was dropped in, if it was."""

    section: Section
    name: str
    type: str
    turn: int
    source: Literal["state", "physician"]
    dropped: int | None = None


@dataclass(frozen=True)
class ConsultationNote:
    """The items of a note in order of section and turn."""

    items: tuple[NoteItem, ...]
    num_turns: int

    def section(self, name: Section) -> tuple[NoteItem, ...]:
        return tuple(item for item in self.items if item.section == name)


def consultation_note(explainer: Explainer, conversation: Conversation) -> ConsultationNote:
    """The note of a conversation so far; the last answer counts only if it was given."""
    turns = [(patient, physician) for patient, physician in conversation]
    corpus = explainer.agent.pretrained.corpus
    states = perceive(explainer.model, explainer.agent.hear(turns), Change(), corpus.inventory).perception.state
    rows = [] if states is None else [[entity for entity in row if entity >= 0] for row in states.tolist()]
    items = _complaints(rows, corpus.inventory.names, corpus.inventory.types)
    seen: set[int] = set()
    for turn, (_, answer) in enumerate(turns, start=1):
        for mention in corpus.linker.find(answer):
            for entity in mention.entities:
                kind = corpus.inventory.types[entity]
                if entity not in seen and kind in SECTION_OF:
                    seen.add(entity)
                    items.append(NoteItem(SECTION_OF[kind], corpus.inventory.names[entity], kind, turn, "physician"))
    ordered = sorted(items, key=lambda item: (SECTIONS.index(item.section), item.turn))
    return ConsultationNote(tuple(ordered), len(turns))


def _complaints(rows: list[list[int]], names: tuple[str, ...], types: tuple[str, ...]) -> list[NoteItem]:
    """Every entity that was ever in the state; dropped if the last state has it not."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for turn, row in enumerate(rows, start=1):
        for entity in row:
            first.setdefault(entity, turn)
            last[entity] = turn
    return [
        NoteItem("complaints", names[e], types[e], turn, "state", None if last[e] == len(rows) else last[e] + 1)
        for e, turn in first.items()
    ]


def as_markdown(note: ConsultationNote, language: str) -> str:
    """The note as Markdown."""
    titles, words = TITLES[language], words_of(language)
    lines = [f"# {titles['title']}"]
    for section in SECTIONS:
        items = note.section(section)
        if items:
            lines += ["", f"## {titles[section]}", ""]
        for item in items:
            dropped = "" if item.dropped is None else "; " + titles["dropped"].format(turn=item.dropped)
            lines.append(f"- {_escaped(item.name)} ({words['turn']} {item.turn}{dropped})")
    return "\n".join(lines) + "\n"


def as_fhir(note: ConsultationNote) -> dict[str, Any]:
    """The note in the shape of a FHIR R4 collection; codes are texts, since entities carry no code system."""
    return {
        "resourceType": "Bundle",
        "type": "collection",
        "entry": [{"resource": _resource(item)} for item in note.items],
    }


def _resource(item: NoteItem) -> dict[str, Any]:
    turn = {"text": f"turn {item.turn}" + ("" if item.dropped is None else f", dropped in turn {item.dropped}")}
    code = {"text": item.name}
    patient = {"display": "patient"}
    if item.section == "medicines":
        draft = {"resourceType": "MedicationRequest", "status": "draft", "intent": "proposal"}
        return {**draft, "medicationCodeableConcept": code, "subject": patient, "note": [turn]}
    if item.section == "tests":
        draft = {"resourceType": "ServiceRequest", "status": "draft", "intent": "proposal"}
        return {**draft, "code": code, "subject": patient, "note": [turn]}
    status = "unconfirmed" if item.section == "complaints" else "provisional"
    return {
        "resourceType": "Condition",
        "verificationStatus": {"coding": [{"code": status}]},
        "code": code,
        "subject": patient,
        "note": [turn],
    }


def write_note(note: ConsultationNote, path: Path, language: str) -> None:
    """Writes the note: Markdown for .md, FHIR-shaped for .json."""
    if path.suffix not in (".md", ".json"):
        raise UsageError(f"{path} is neither a .md nor a .json file: choose one of these endings")
    as_json = path.suffix == ".json"
    text = json.dumps(as_fhir(note), ensure_ascii=False, indent=2) if as_json else as_markdown(note, language)
    with atomic_write(path) as file:
        file.write(text.rstrip("\n") + "\n")


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|" else c for c in printable(text))
