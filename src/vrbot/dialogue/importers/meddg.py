"""The MedDG release: `*.pk`, a pickled list of dialogues, each a list of utterances with their entities by type.

`{"id": "Patients" | "Doctor", "Sentence", "Symptom": [], "Medicine": [], "Test": [], "Attribute": [], "Disease": []}`

- Action keywords are the entities of the physician's utterance; there are no categories.
- The state is the running list of entities both sides have mentioned, up to and including the patient's utterance, in
  order of first mention. After an utterance without any labels it is unknown, hence null, to the end of the dialogue.
- Within an utterance entities stand in the order in which their names occur in the sentence; those whose names do not
  occur (the labels are normalised) follow in the order of the type lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from vrbot.dialogue.import_report import Draft, Repair, Repairs
from vrbot.dialogue.importers.plain_pickle import load_plain_pickle
from vrbot.dialogue.merging import Exchange, Utterance, distinct, exchanges_of, speaker_named
from vrbot.dialogue.session import Session, Turn
from vrbot.dialogue.sources import Budget, Place, shown, string_fault, whole_file

MAX_EXPANSION = 20
"""How many characters and items a pickle may unfold to, per byte, by referring to one value again and again."""

_ENTITY_FIELDS = ("Symptom", "Medicine", "Test", "Attribute", "Disease")
_FIELDS = frozenset({"id", "Sentence", *_ENTITY_FIELDS})


def read_meddg(path: Path, repairs: Repairs) -> Iterator[Draft]:
    """The dialogues of one pickle, in its order."""
    data = whole_file(path)
    budget = Budget(2**20 + MAX_EXPANSION * len(data))
    dialogues = load_plain_pickle(data, Place(path))
    if not isinstance(dialogues, list):
        raise Place(path).error(f"must hold a list of dialogues, got {shown(dialogues)}", "check that it is MedDG")
    for index, dialogue in enumerate(dialogues):
        place = Place(path, None, f"dialogue {index}")
        yield Draft(place, partial(_session, dialogue, f"{path.stem}-{index}", place, budget))


def _session(dialogue: Any, name: str, place: Place, budget: Budget, repairs: Repairs) -> Session:
    if not isinstance(dialogue, list):
        raise place.error(f"must be a list of utterances, got {shown(dialogue)}", "check that the file is MedDG")
    budget.spend(1 + len(dialogue), place)
    utterances = [_utterance(line, place.inside(f"[{i}]"), budget, repairs) for i, line in enumerate(dialogue)]
    exchanges = exchanges_of(utterances, repairs)
    if not exchanges:
        raise place.error("nobody says anything", "remove the dialogue or give it a text")
    states = _running_states(exchanges)
    turns = [Turn(each.patient.text, each.physician.text, state, each.action) for each, state in states]
    return Session(name, tuple(turns))


def _running_states(exchanges: Iterable[Exchange]) -> Iterator[tuple[Exchange, tuple[str, ...] | None]]:
    """Each exchange with all that has been mentioned up to and including the patient's words in it."""
    mentioned: dict[str, None] | None = {}
    for exchange in exchanges:
        mentioned = _with_mentions(mentioned, exchange.patient)
        yield exchange, None if mentioned is None else tuple(mentioned)
        mentioned = _with_mentions(mentioned, exchange.physician)


def _with_mentions(mentioned: dict[str, None] | None, utterance: Utterance) -> dict[str, None] | None:
    if mentioned is None or not utterance.text:
        return mentioned
    return None if utterance.entities is None else mentioned | dict.fromkeys(utterance.entities)


def _utterance(line: Any, place: Place, budget: Budget, repairs: Repairs) -> Utterance:
    if not isinstance(line, dict):
        raise place.error(f"must be a dict, got {shown(line)}", "check that the file is MedDG")
    repairs[Repair.UNUSED_FIELD] += len(line.keys() - _FIELDS)
    role = line.get("id")
    speaker = speaker_named(role) if isinstance(role, str) else None
    if speaker is None:
        raise place.inside("id").error(f"unknown speaker {shown(role)}", "use Patients or Doctor")
    sentence = _string(line.get("Sentence"), place, "Sentence", budget)
    return Utterance(speaker, sentence, _entities(line, sentence, place, budget, repairs))


def _entities(
    line: dict[Any, Any], sentence: str, place: Place, budget: Budget, repairs: Repairs
) -> tuple[str, ...] | None:
    lists = [(field, line[field]) for field in _ENTITY_FIELDS if line.get(field) is not None]
    if not lists:
        repairs[Repair.MISSING_LABELS] += 1
        return None
    names: list[str] = []
    for field, values in lists:
        if not isinstance(values, list):
            problem = f"must be a list of entity names, got {shown(values)}"
            raise place.inside(field).error(problem, "write [] where there is none")
        names += [_string(value, place, f"{field}[{i}]", budget) for i, value in enumerate(values)]
    ordered = sorted(names, key=lambda name: position if (position := sentence.find(name)) >= 0 else len(sentence))
    return distinct(ordered, repairs)


def _string(value: Any, place: Place, step: str, budget: Budget) -> str:
    if not isinstance(value, str):
        raise place.inside(step).error(f"must be a string, got {shown(value)}", 'write the text, or ""')
    budget.spend(1 + len(value), place)
    if fault := string_fault(value):
        raise place.inside(step).error(fault, "remove the character")
    return value
