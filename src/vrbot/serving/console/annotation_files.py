"""Labels as files: out as de-identified sessions, and in again as labels of people or as proposals of a model.

A file that comes in holds sessions as they went out, by their ids and to the letter; only labels may differ. Proposals
stand beside the turns under `annotation`, as `vrbot annotate propose` writes them, and always come in as proposals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vrbot.dialogue.canonical import session_from_line, session_to_line
from vrbot.dialogue.session import Session, Turn
from vrbot.dialogue.sources import Place
from vrbot.errors import DataError
from vrbot.explain.proposals import ANNOTATION, KINDS, Kind, checked_value
from vrbot.serving.actors import Actor
from vrbot.serving.annotation import Annotation, LabelledTurn, checked_label, exported_name
from vrbot.serving.problems import InvalidInputError

Labels = dict[str, Any]
Proposed = dict[str, tuple[Any, float | None]]


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
    """Stores the labels of a file; all of it is checked before anything is stored. DataError names the line.

    Only where somebody labels the same turn in that very moment it is a conflict, and the file can be given again.
    """
    known = {
        exported_name(each.consultation.id): each.consultation.id for each in annotation.to_label(actor, demo=demo)
    }
    found = list(_sessions(name, content))
    seen: set[str] = set()
    matched: list[tuple[LabelledTurn, Labels, Proposed]] = []
    for place, session in found:
        if session.id not in known:
            fix = "export first: labels come in for dialogues of this desk only"
            raise place.inside("id").error("is none of the dialogues you may label", fix)
        if session.id in seen:
            raise place.inside("id").error("stands in the file twice", "leave one of the two; nothing was stored")
        seen.add(session.id)
        turns = _same_turns(place, session, annotation.labelled_turns(actor, known[session.id]))
        for number, (turn, given, proposals) in enumerate(
            zip(turns, session.turns, _proposals(place, session), strict=True)
        ):
            labels = labels_in(given)
            if proposed:
                proposals = {**{kind: (value, None) for kind, value in labels.items()}, **proposals}
                labels = {}
            _must_be_storable(place.inside(f"turns[{number}]"), labels, proposals)
            matched.append((turn, labels, proposals))
    count = 0
    for turn, labels, proposals in matched:
        for kind, (value, confidence) in proposals.items():
            annotation.propose(actor, turn.id, kind, value, confidence)
        changed = {kind: value for kind, value in labels.items() if _differs(turn, kind, value)}
        for kind, value in changed.items():
            annotation.label(actor, turn.id, kind, value, turn.labels[kind].number if kind in turn.labels else 0)
        count += len(proposals) + len(changed)
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


def _proposals(place: Place, session: Session) -> list[Proposed]:
    """What the session's `annotation` proposes for each turn, by kind, and how sure it is."""
    content = session.extra.get(ANNOTATION)
    if content is None:
        return [{} for _ in session.turns]
    try:
        turns = [{kind: _proposal(kind, turn[kind]) for kind in KINDS if kind in turn} for turn in content["proposals"]]
        if len(turns) != len(session.turns):
            raise ValueError(f"{len(session.turns)} turns have proposals for {len(turns)}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        fix = "give a file that `vrbot annotate propose` wrote"
        raise place.inside(ANNOTATION).error(f"cannot be read ({error})", fix) from None
    return [{str(kind): proposal for kind, proposal in turn.items()} for turn in turns]


def _proposal(kind: Kind, content: Mapping[str, Any]) -> tuple[Any, float | None]:
    value, confidence = checked_value(kind, content["value"]), content.get("confidence")
    if confidence is not None and not 0 <= float(confidence) <= 1:
        raise ValueError(f"a confidence of {confidence} is not between 0 and 1")
    return value if isinstance(value, str) else list(value), None if confidence is None else float(confidence)


def _must_be_storable(place: Place, labels: Labels, proposals: Proposed) -> None:
    """DataError where the desk would refuse a value."""
    values = [*labels.items(), *((kind, value) for kind, (value, _) in proposals.items())]
    for kind, value in values:
        try:
            checked_label(kind, value)
        except InvalidInputError as error:
            raise place.inside(kind).error(f"cannot be stored ({error})", "correct it; nothing was stored") from None


def _differs(turn: LabelledTurn, kind: str, value: Any) -> bool:
    return kind not in turn.labels or turn.labels[kind].value != value
