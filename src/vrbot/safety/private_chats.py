"""Whole consultations without private details, ready to be kept or handed on for training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from vrbot.dialogue.session import Session, Turn
from vrbot.safety.deidentify import deidentify


@dataclass(frozen=True)
class CleanedSession:
    """A session with placeholders in its texts, and how many details of each kind they stand for."""

    session: Session
    found: Counter[str]


def deidentify_session(session: Session, new_id: str, keep: Collection[str] = ()) -> CleanedSession:
    """The session under another id, its texts without private details; of what else its source said only the keys
    named in `keep` stay, as they are. Labels name entities and stay."""
    found: Counter[str] = Counter()

    def cleaned(text: str) -> str:
        result = deidentify(text)
        found.update(span.kind for span in result.spans)
        return result.text

    def clean_turn(turn: Turn) -> Turn:
        return replace(turn, patient=cleaned(turn.patient), physician=cleaned(turn.physician))

    extra = {key: value for key, value in session.extra.items() if key in keep}
    return CleanedSession(Session(new_id, tuple(map(clean_turn, session.turns)), extra), found)
