"""Labels as files: out as de-identified sessions, and in again as labels of people or as proposals of a model.

A file that comes in holds sessions as they went out, by their ids and to the letter; only labels may differ. How sure a
model is stands beside the turns: `"confidence": [{"state": 0.8, "category": 0.9, "keywords": 0.4}, ...]`, one for each
turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vrbot.dialogue.canonical import session_from_line, session_to_line
from vrbot.dialogue.session import Session, Turn
from vrbot.dialogue.sources import Place
from vrbot.errors import DataError
from vrbot.serving.actors import Actor
from vrbot.serving.annotation import Annotation, LabelledTurn, exported_name

CONFIDENCE = "confidence"


@dataclass(frozen=True)
class TakenIn:
    """What a file changed."""

    sessions: int
    labels: int


def write_labels(annotation: Annotation, actor: Actor, *, demo: bool = False) -> bytes:
    """The consultations the actor may label, one a line, without names."""
    found = annotation.export_own(actor, demo=demo)
    lines = [session_to_line(session, Place("export", number)) for number, session in enumerate(found, start=1)]
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def take_in(
    annotation: Annotation, actor: Actor, name: str, content: bytes, *, proposed: bool, demo: bool = False
) -> TakenIn:
    """Stores the labels of a file; all of it is checked before anything is stored. DataError names the line."""
    known = {
        exported_name(each.consultation.id): each.consultation.id for each in annotation.to_label(actor, demo=demo)
    }
    found = list(_sessions(name, content))
    matched = []
    for place, session in found:
        if session.id not in known:
            fix = "export first: labels come in for dialogues of this desk only"
            raise place.inside("id").error("is none of the dialogues you may label", fix)
        turns = annotation.labelled_turns(actor, known[session.id])
        matched.append((_same_turns(place, session, turns), _confidences(place, session), session.turns))
    count = 0
    for stored, confidences, turns_in in matched:
        for turn, confidence, given in zip(stored, confidences, turns_in, strict=True):
            for kind, value in labels_in(given).items():
                if proposed:
                    annotation.propose(actor, turn.id, kind, value, confidence.get(kind))
                else:
                    annotation.label(actor, turn.id, kind, value)
                count += 1
    return TakenIn(len(found), count)


def labels_in(turn: Turn) -> dict[str, Any]:
    """The labels a turn of a file carries, by kind."""
    action = turn.action
    given = {
        "state": turn.state,
        "category": None if action is None else action.category,
        "keywords": None if action is None else action.keywords,
    }
    return {
        kind: list(value) if isinstance(value, tuple) else value for kind, value in given.items() if value is not None
    }


def _sessions(name: str, content: bytes) -> Iterator[tuple[Place, Session]]:
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(name, None, "file", "is not UTF-8", "save it as UTF-8") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            place = Place(name, number)
            yield place, session_from_line(line, place)


def _same_turns(place: Place, session: Session, turns: tuple[LabelledTurn, ...]) -> tuple[LabelledTurn, ...]:
    """The stored turns a session is about: as many as it has, with the same words."""
    fix = "export again: what was said has changed since, or the file has"
    if len(session.turns) > len(turns):
        raise place.inside("turns").error(f"has {len(session.turns)} turns, the dialogue {len(turns)}", fix)
    for number, (given, stored) in enumerate(zip(session.turns, turns, strict=False)):
        if given.patient != stored.patient or given.physician not in (stored.physician, ""):
            raise place.inside(f"turns[{number}]").error("has another text than the dialogue", fix)
    return turns[: len(session.turns)]


def _confidences(place: Place, session: Session) -> list[Mapping[str, float]]:
    given = session.extra.get(CONFIDENCE)
    if given is None:
        return [{} for _ in session.turns]
    if not (isinstance(given, list) and len(given) == len(session.turns) and all(map(_is_confidence, given))):
        fix = "write one object for each turn, with numbers from 0 to 1 by kind of label"
        raise place.inside(CONFIDENCE).error(f"is not that: {json.dumps(given)[:60]}", fix)
    return [{kind: float(value) for kind, value in (each or {}).items() if value is not None} for each in given]


def _is_confidence(given: Any) -> bool:
    if given is None:
        return True
    values = given.values() if isinstance(given, dict) else [""]
    return all(value is None or (isinstance(value, (int, float)) and 0 <= value <= 1) for value in values)
