"""What an importer did to a source besides reading it: every repair has a name and is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from vrbot.dialogue.session import Session
from vrbot.dialogue.sources import Place


class Repair(StrEnum):
    """The kinds of repair; the values are what people read in a report."""

    MERGED_UTTERANCE = "utterance merged with the one before it (same speaker)"
    EMPTY_UTTERANCE = "utterance without text left out"
    LABELS_WITHOUT_TEXT = "labels of an utterance without text left out"
    PHYSICIAN_FIRST = "dialogue opened by the physician: empty patient utterance put first"
    NO_LAST_REPLY = "dialogue ended by the patient: last turn kept without a reply"
    CONFLICTING_CATEGORIES = "merged utterances of different categories: the first that is not chitchat kept"
    PARTLY_LABELLED = "merged utterances of which only some are labelled: their labels kept"
    REPEATED_LABEL = "entity named twice in one utterance: first mention kept"
    EMPTY_LABEL = "empty entity name left out"
    MISSING_LABELS = "utterance without labels"
    PATIENT_CATEGORY = "category of a patient's utterance left out"
    TEXT_FROM_TOKENS = "utterance without a sentence: its tokens joined"
    TURN_NUMBERS_DISORDERED = "turn numbers do not ascend: order of the file kept"
    UNUSED_FIELD = "field that the format does not define left out"
    DESCRIPTION_AS_UTTERANCE = "description read as the patient's words"
    TEXT_WITHOUT_SPEAKER = "line without a speaker read as the patient's words"
    BLANK_LINE = "blank line between dialogues"
    SYSTEM_MEMBER = "archive member of an operating system left out"


Repairs: TypeAlias = Counter[Repair]


class Draft(NamedTuple):
    """One dialogue found in a source and not yet read: `read` gives the session or raises DataError.

    Finding and reading are two steps so that a bad dialogue can be skipped without losing the place in the file.
    A draft is read before the next one is drawn (its archive may be closed afterwards).
    """

    place: Place
    read: Callable[[Repairs], Session]


@dataclass
class ImportReport:
    """Running totals of a reading; the reader fills it as sessions are drawn, so it is complete at the end."""

    sessions: int = 0
    turns: int = 0
    skipped: int = 0
    repairs: Repairs = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """The totals for JSON, the repairs under the words people read."""
        repairs = {repair.value: count for repair, count in sorted(self.repairs.items())}
        return {"sessions": self.sessions, "turns": self.turns, "skipped": self.skipped, "repairs": repairs}
