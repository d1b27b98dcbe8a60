"""What the desk hands out: rows as frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vrbot.safety.tables import NOTICE
from vrbot.serving.safety_desk import Inspection
from vrbot.serving.texts import canonical_json

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Consultation:
    """One patient's consultation; `reference` is the caller's own mark for it."""

    id: str
    owner: str
    language: str
    reference: str
    demo: bool
    opened_at: int
    closed_at: int | None

    @classmethod
    def of(cls, row: Row) -> Consultation:
        return cls(**{**row, "demo": bool(row["demo"])})


@dataclass(frozen=True)
class Turn:
    """What a patient said, and the red flags in it."""

    id: str
    consultation: str
    seq: int
    client_turn_id: str
    text: str
    text_sha256: str
    flags: Inspection
    received_at: int
    received_by: str

    @classmethod
    def of(cls, row: Row) -> Turn:
        return cls(**{**row, "flags": Inspection.from_json(row["flags"])})

    @property
    def urgent(self) -> bool:
        """Whether the banner goes up before anything else is shown."""
        return bool(self.flags.findings)

    def to_json(self) -> bytes:
        """The turn as bytes, with the rules' notice: the same for every retry, since nothing of it ever changes."""
        return canonical_json({**asdict(self), "flags": self.flags.findings, "notice": NOTICE}).encode("utf-8")


@dataclass(frozen=True)
class Draft:
    """A text somebody could approve, or why there is none; `checks` are those of the time it was made."""

    id: str
    turn: str
    version: int
    origin: str
    parent: str | None
    text: str | None
    text_sha256: str | None
    failure: str | None
    reply: Mapping[str, Any] | None
    change: Mapping[str, Any] | None
    model: str | None
    checks: Inspection
    suggests_medicine: bool
    made_at: int
    made_by: str

    @classmethod
    def of(cls, row: Row) -> Draft:
        kept = {key: value for key, value in row.items() if key not in ("request_sha256", "context")}
        return cls(
            **{
                **kept,
                "reply": _parsed(row["reply"]),
                "change": _parsed(row["change"]),
                "checks": Inspection.from_json(row["checks"]),
                "suggests_medicine": bool(row["suggests_medicine"]),
            }
        )

    def to_json(self) -> bytes:
        """The draft as bytes, with the rules' notice, the same every time."""
        return canonical_json({**asdict(self), "checks": self.checks.findings, "notice": NOTICE}).encode("utf-8")


@dataclass(frozen=True)
class Decision:
    """What a physician (or, in a demo, a simulated one) did with a draft."""

    id: str
    draft: str
    kind: str
    text_sha256: str
    reason: str | None
    checks: Inspection
    simulated: bool
    made_at: int
    made_by: str

    @classmethod
    def of(cls, row: Row) -> Decision:
        changed = {"checks": Inspection.from_json(row["checks"]), "simulated": bool(row["simulated"])}
        return cls(**{**row, **changed})


@dataclass(frozen=True)
class Message:
    """A text a patient may read. A medicine in it is a suggestion; there is no message that is a prescription."""

    id: str
    turn: str
    draft: str
    decision: str
    text: str
    text_sha256: str
    medicine_suggestion: bool
    simulated: bool
    sent_at: int


@dataclass(frozen=True)
class Case:
    """Everything of one consultation, for its physician."""

    consultation: Consultation
    turns: tuple[Turn, ...]
    drafts: tuple[Draft, ...]
    decisions: tuple[Decision, ...]
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class PatientLine:
    """One line as the patient sees it: their own words, or a message that was approved."""

    seq: int
    author: str
    text: str
    at: int
    medicine_suggestion: bool = False


def _parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)
