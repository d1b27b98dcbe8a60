"""The package `vrbot.safety` as the desk's safety rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from vrbot.safety.deidentify import deidentify
from vrbot.safety.medication import check, extract_facts
from vrbot.safety.redflags import scan
from vrbot.serving.safety_desk import CAUTION, STOP, Conversation, Finding

Unsupported = Callable[[str, Conversation, Mapping[str, Any]], Sequence[Finding]]


class RulesDesk:
    """The rules as they are shipped; what nothing supports, and the kill switch, are asked of who is given."""

    def __init__(self, drafts_stopped: Callable[[], str | None], unsupported: Unsupported | None = None) -> None:
        self._drafts_stopped, self._unsupported = drafts_stopped, unsupported

    def red_flags(self, text: str) -> Sequence[Finding]:
        """An emergency says stop, what is urgent asks for caution; either raises the banner."""
        return [{**asdict(flag), "level": STOP if flag.severity == "emergency" else CAUTION} for flag in scan(text)]

    def medication(self, text: str, conversation: Conversation) -> Sequence[Finding]:
        """The text against all the patient has told of themselves."""
        facts = extract_facts("\n".join(patient for patient, _ in conversation))
        return [asdict(finding) for finding in check(text, facts)]

    def unsupported(self, text: str, conversation: Conversation, reply: Mapping[str, Any]) -> Sequence[Finding]:
        """As given; nothing where nobody was."""
        return [] if self._unsupported is None else self._unsupported(text, conversation, reply)

    def deidentify(self, text: str) -> str:
        """The text with placeholders."""
        return deidentify(text).text

    def drafts_stopped(self) -> str | None:
        """As given."""
        return self._drafts_stopped()
