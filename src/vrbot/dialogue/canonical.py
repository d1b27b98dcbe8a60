"""The project's own format: one session a line, as JSON.

`{"id", "turns": [{"patient", "physician", "state": [entities] or null, "action": {"category", "keywords"} or null}]}`

- `null`, or a missing key, means "not labelled"; `[]` means "labelled: none". State, category and keywords are three
  independent kinds of label: an action may have either half `null`.
- `physician == ""` means "no reply recorded": such a turn is context for later ones and is never trained on or scored.
  `patient == ""` means that the physician spoke first. A turn in which nobody speaks is an error.
- Keys beside `id` and `turns` are kept in `Session.extra`. Unknown keys *inside* a turn are errors: a misspelt label
  would otherwise pass for a missing one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from vrbot.dialogue.import_report import Draft, Repair, Repairs
from vrbot.dialogue.session import CATEGORIES, Action, Session, Turn
from vrbot.dialogue.sources import MAX_LINE_BYTES, Place, decode, numbered_lines, parse_json, shown, string_fault
from vrbot.files import atomic_write

_TURN_KEYS = frozenset({"patient", "physician", "state", "action"})
_ACTION_KEYS = frozenset({"category", "keywords"})
_ONLY_STRINGS = frozenset({str})


def read_canonical(path: Path, repairs: Repairs) -> Iterator[Draft]:
    """The sessions of a canonical file, one a line."""
    for number, line in numbered_lines(path):
        if line.strip():
            place = Place(path, number)
            yield Draft(place, partial(_session_from_bytes, line, place))
        else:
            repairs[Repair.BLANK_LINE] += 1


def write_sessions(path: str | Path, sessions: Iterable[Session]) -> int:
    """Write a canonical file and return how many sessions it holds.

    All or nothing: a session that could not be read back raises DataError and leaves `path` as it was.
    """
    written: set[str] = set()
    with atomic_write(path) as file:
        for number, session in enumerate(sessions, start=1):
            place = Place(path, number)
            line = session_to_line(session, place)
            if session.id in written:
                problem = f"{shown(session.id)} names an earlier session too"
                raise place.inside("id").error(problem, "give each session its own id")
            written.add(session.id)
            file.write(line + "\n")
    return len(written)


def session_to_line(session: Session, place: Place) -> str:
    """The session as one line of JSON, known to be readable."""
    taken = session.extra.keys() & {"id", "turns"}
    if taken:
        raise place.inside("extra").error(f"holds the key {shown(min(taken))}", "choose another key")
    record = {"id": session.id, **session.extra, "turns": [_turn_record(turn) for turn in session.turns]}
    try:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise place.error(f"cannot be written as JSON ({error})", "keep to JSON values in `extra`") from None
    if fault := string_fault(line):
        raise place.error(fault, "remove the character")
    session_from_line(line, place)
    return line


def session_from_line(line: str, place: Place) -> Session:
    """The session of one line of JSON."""
    return session_from_record(parse_json(line, place), place)


def session_from_record(record: Any, place: Place) -> Session:
    """The session of a parsed JSON object; DataError names the first field that is wrong."""
    if not isinstance(record, dict):
        raise place.error(f"a dialogue must be an object, got {shown(record)}", 'write {"id": ..., "turns": [...]}')
    name, turns = record.get("id"), record.get("turns")
    if not isinstance(name, str) or not name:
        raise place.inside("id").error(f"must be a non-empty string, got {shown(name)}", "give the dialogue an id")
    if not isinstance(turns, list) or not turns:
        raise place.inside("turns").error(f"must be a list of turns, got {_emptiness(turns)}", "give at least one turn")
    extra = {key: value for key, value in record.items() if key not in ("id", "turns")}
    return Session(name, tuple(_turns(turns, place)), extra)


def _session_from_bytes(line: bytes, place: Place, repairs: Repairs) -> Session:
    if len(line) > MAX_LINE_BYTES:
        raise place.error(f"the line is longer than {MAX_LINE_BYTES >> 20} MiB", "write one dialogue a line")
    return session_from_line(decode(line, place), place)


class _Fault(Exception):  # noqa: N818 - it never leaves this file
    """What is wrong inside a turn, and where; the place in the file is only worked out when there is a fault."""

    def __init__(self, problem: str, fix: str, *inside: str) -> None:
        self.problem, self.fix, self.inside = problem, fix, inside


def _turns(records: list[Any], place: Place) -> Iterator[Turn]:
    for index, record in enumerate(records):
        try:
            yield _turn(record)
        except _Fault as fault:
            for step in (f"turns[{index}]", *fault.inside):
                place = place.inside(step)
            raise place.error(fault.problem, fault.fix) from None


def _turn(record: Any) -> Turn:
    if not isinstance(record, dict):
        raise _Fault(f"a turn must be an object, got {shown(record)}", 'write {"patient": ..., "physician": ...}')
    if not record.keys() <= _TURN_KEYS:
        raise _other_key(record, _TURN_KEYS)
    patient, physician = _text(record, "patient"), _text(record, "physician")
    if not (patient or physician):
        raise _Fault("nobody speaks in this turn", "remove the turn or give it a text")
    return Turn(patient, physician, _entities(record.get("state"), "state"), _action(record.get("action")))


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if isinstance(value, str):
        return value
    problem = f"must be a string, got {shown(value)}" if key in record else "is missing"
    raise _Fault(problem, 'write the text, or "" where nothing was said', key)


def _entities(names: Any, *inside: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, list):
        problem = f"must be a list of entity names or null, got {shown(names)}"
        raise _Fault(problem, "write null where there is no label", *inside)
    if not all(names) or not _ONLY_STRINGS.issuperset(map(type, names)):
        index = next(index for index, name in enumerate(names) if not isinstance(name, str) or not name)
        problem = f"must be an entity name, got {shown(names[index])}"
        raise _Fault(problem, "write the name as a non-empty string", *inside, f"[{index}]")
    return tuple(names)


def _action(record: Any) -> Action | None:
    if record is None:
        return None
    if not isinstance(record, dict):
        problem = f"must be an object or null, got {shown(record)}"
        raise _Fault(problem, 'write {"category": ..., "keywords": [...]}', "action")
    if not record.keys() <= _ACTION_KEYS:
        raise _other_key(record, _ACTION_KEYS, "action")
    category = record.get("category")
    if category is not None and category not in CATEGORIES:
        fix = f"use one of {', '.join(CATEGORIES)}, or null"
        raise _Fault(f"unknown category {shown(category)}", fix, "action", "category")
    return Action(category, _entities(record.get("keywords"), "action", "keywords"))


def _other_key(record: dict[str, Any], known: frozenset[str], *inside: str) -> _Fault:
    other = min(record.keys() - known)
    return _Fault(f"unknown key {shown(other)}", f"the keys are {', '.join(sorted(known))}", *inside)


def _emptiness(value: object) -> str:
    return "an empty list" if value == [] else shown(value)


def _turn_record(turn: Turn) -> dict[str, Any]:
    action = None
    if turn.action is not None:
        action = {"category": turn.action.category, "keywords": turn.action.keywords}
    return {"patient": turn.patient, "physician": turn.physician, "state": turn.state, "action": action}
