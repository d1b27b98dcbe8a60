"""The safety rules as the desk uses them: first, with the model dead too, and a rule that fails says stop."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vrbot.serving.texts import canonical_json, text_sha256

log = logging.getLogger(__name__)

Conversation = Sequence[tuple[str, str]]
"""What patient and physician said, turn by turn."""
Finding = Mapping[str, Any]
"""What a rule found, as plain values; `level` is one of LEVELS, the rest is the rule's own."""
LEVELS = INFO, CAUTION, STOP = ("info", "caution", "stop")
RED_FLAG, MEDICATION, UNSUPPORTED = "red_flag", "medication", "unsupported"
FAILED = "check_failed"
MEDICINE = "medicine"
"""The `kind` of an unsupported claim that is a medicine."""


class SafetyDesk(Protocol):
    """What the desk asks of the safety rules."""

    def red_flags(self, text: str) -> Sequence[Finding]:
        """Symptoms that cannot wait, in what a patient said."""
        ...

    def medication(self, text: str, conversation: Conversation) -> Sequence[Finding]:
        """What speaks against medicines a text for the patient names."""
        ...

    def unsupported(self, text: str, conversation: Conversation, reply: Mapping[str, Any]) -> Sequence[Finding]:
        """Medicines and diseases a text names that nothing supports; `kind` says which of the two."""
        ...

    def deidentify(self, text: str) -> str:
        """The text without what would tell who somebody is."""
        ...

    def drafts_stopped(self) -> str | None:
        """Why the model may not draft at present; None if it may."""
        ...


@dataclass(frozen=True)
class Inspection:
    """What the rules found in one text, worst first; each finding has `check` (which rules) and `level`."""

    findings: tuple[dict[str, Any], ...] = ()

    @property
    def stops(self) -> tuple[dict[str, Any], ...]:
        """The findings a physician must give a reason to override."""
        return tuple(finding for finding in self.findings if finding["level"] == STOP)

    def to_json(self) -> str:
        return canonical_json(self.findings)

    @classmethod
    def from_json(cls, text: str) -> Inspection:
        return cls(tuple(json.loads(text)))


def inspect_utterance(desk: SafetyDesk, text: str) -> Inspection:
    """The red flags in what a patient said."""
    return _worst_first(_asked(RED_FLAG, lambda: desk.red_flags(text)))


def inspect_reply(
    desk: SafetyDesk, text: str, conversation: Conversation, reply: Mapping[str, Any] | None = None
) -> Inspection:
    """What speaks against a text for the patient, whoever wrote it.

    `reply` is what the model said about it, or about the draft it was made from, if a model had a part in it.
    """
    found = _asked(MEDICATION, lambda: desk.medication(text, conversation))
    found += _asked(UNSUPPORTED, lambda: desk.unsupported(text, conversation, reply or {}))
    return _worst_first(found)


def suggests_medicine(desk: SafetyDesk, text: str, checks: Inspection) -> bool:
    """Whether a text names a medicine, be there anything against it or not; a rule that fails does not rule it out.

    Where nothing at all was said before, all that a text names is unsupported.
    """
    named = _asked(UNSUPPORTED, lambda: desk.unsupported(text, (), {}))
    found = any(each.get("kind") == MEDICINE or each.get("code") == FAILED for each in named)
    return found or any(each["check"] == MEDICATION for each in checks.findings)


def findings_sha256(findings: Sequence[Finding]) -> str:
    """The fingerprint of findings: a reason to override is for those that were shown, and no others."""
    return text_sha256(canonical_json([dict(finding) for finding in findings]))


def why_drafts_are_stopped(desk: SafetyDesk) -> str | None:
    """The reason of the kill switch; a switch that cannot be read counts as pulled."""
    try:
        return desk.drafts_stopped()
    except Exception as error:
        log.error("the kill switch cannot be read (%s)", type(error).__name__)
        return "the kill switch cannot be read"


def _asked(check: str, rule: Callable[[], Sequence[Finding]]) -> list[dict[str, Any]]:
    """A rule's findings as plain values; a rule that fails is a finding of its own."""
    try:
        found = [json.loads(canonical_json(dict(finding))) for finding in rule()]
    except Exception as error:  # whatever it is, the turn goes on; the message may quote the patient and is not logged
        log.error("the %s rules failed (%s)", check, type(error).__name__)
        return [{"check": check, "level": STOP, "code": FAILED, "error": type(error).__name__}]
    return [
        {**finding, "check": check, "level": finding["level"] if finding.get("level") in LEVELS else STOP}
        for finding in found
    ]


def _worst_first(findings: list[dict[str, Any]]) -> Inspection:
    return Inspection(tuple(sorted(findings, key=lambda finding: -LEVELS.index(finding["level"]))))
