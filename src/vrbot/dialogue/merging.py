"""From a list of utterances, in whatever order people spoke, to exchanges of patient and physician.

The rules, each counted in the report where it repairs something:

- consecutive utterances of one speaker become one, their texts joined by a space, so that no two words are glued;
- an utterance without text is no utterance and is left out;
- a dialogue that the physician opens gets an empty patient utterance;
- a dialogue that the patient ends keeps the last words as an exchange with an empty reply ("no reply recorded");
- merged labels: entities in order of first mention; the first category that is not chitchat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from vrbot.dialogue.import_report import Repair, Repairs
from vrbot.dialogue.session import Action


class Speaker(StrEnum):
    """Who speaks."""

    PATIENT = "patient"
    PHYSICIAN = "physician"


@dataclass(frozen=True)
class Utterance:
    """What one speaker said at once; `None` means "not labelled"."""

    speaker: Speaker
    text: str
    entities: tuple[str, ...] | None = None
    category: str | None = None


@dataclass(frozen=True)
class Exchange:
    """One turn before its state is known: the patient's words and the physician's answer, either possibly empty."""

    patient: Utterance
    physician: Utterance

    @property
    def action(self) -> Action | None:
        """The physician's labels, `None` if there are none at all."""
        labels = self.physician
        if labels.category is None and labels.entities is None:
            return None
        return Action(labels.category, labels.entities)


_SPEAKERS = {
    **dict.fromkeys(("patient", "patients", "病人", "患者"), Speaker.PATIENT),
    **dict.fromkeys(("doctor", "doctors", "physician", "医生", "大夫"), Speaker.PHYSICIAN),
}


def speaker_named(word: str) -> Speaker | None:
    """The speaker whom an outside format calls `word`, if it is a known name."""
    return _SPEAKERS.get(word.strip().lower())


def exchanges_of(utterances: Iterable[Utterance], repairs: Repairs) -> list[Exchange]:
    """Strictly alternating exchanges that hold all the texts in their order."""
    spoken = [utterance for utterance in utterances if _says_something(utterance, repairs)]
    merged = [_merged(list(group), repairs) for _, group in groupby(spoken, key=lambda utterance: utterance.speaker)]
    if merged and merged[0].speaker is Speaker.PHYSICIAN:
        repairs[Repair.PHYSICIAN_FIRST] += 1
        merged.insert(0, Utterance(Speaker.PATIENT, ""))
    if merged and merged[-1].speaker is Speaker.PATIENT:
        repairs[Repair.NO_LAST_REPLY] += 1
        merged.append(Utterance(Speaker.PHYSICIAN, ""))
    return [Exchange(patient, physician) for patient, physician in zip(merged[::2], merged[1::2], strict=True)]


def distinct(names: Iterable[str], repairs: Repairs) -> tuple[str, ...]:
    """The names in order of first mention; empty and repeated ones are counted and left out."""
    kept: dict[str, None] = {}
    for name in names:
        if not name:
            repairs[Repair.EMPTY_LABEL] += 1
        elif name in kept:
            repairs[Repair.REPEATED_LABEL] += 1
        else:
            kept[name] = None
    return tuple(kept)


def _says_something(utterance: Utterance, repairs: Repairs) -> bool:
    if utterance.text.strip():
        return True
    repairs[Repair.EMPTY_UTTERANCE] += 1
    if utterance.entities or utterance.category:
        repairs[Repair.LABELS_WITHOUT_TEXT] += 1
    return False


def _merged(parts: Sequence[Utterance], repairs: Repairs) -> Utterance:
    """One utterance out of consecutive ones of the same speaker."""
    text = " ".join(part.text.strip() for part in parts)
    if len(parts) == 1:
        return Utterance(parts[0].speaker, text, parts[0].entities, parts[0].category)
    repairs[Repair.MERGED_UTTERANCE] += len(parts) - 1
    labelled = [part.entities for part in parts if part.entities is not None]
    if 0 < len(labelled) < len(parts):
        repairs[Repair.PARTLY_LABELLED] += 1
    # a name repeated in another message is a second mention, not a fault of the source: dict, not `distinct`
    entities = tuple(dict.fromkeys(name for names in labelled for name in names)) if labelled else None
    return Utterance(parts[0].speaker, text, entities, _merged_category(parts, repairs))


def _merged_category(parts: Sequence[Utterance], repairs: Repairs) -> str | None:
    """Greetings around a question do not make it chitchat."""
    categories = list(dict.fromkeys(part.category for part in parts if part.category is not None))
    if len(categories) > 1:
        repairs[Repair.CONFLICTING_CATEGORIES] += 1
        categories = [category for category in categories if category != "chitchat"]
    return categories[0] if categories else None
