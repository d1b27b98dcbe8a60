"""The package `vrbot.safety` as the desk's safety rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from vrbot.safety.claims import ClaimChecker, unsupported
from vrbot.safety.conversation import facts_of
from vrbot.safety.deidentify import deidentify
from vrbot.safety.medication import check
from vrbot.safety.redflags import scan
from vrbot.safety.switch import KillSwitch
from vrbot.serving.safety_desk import CAUTION, STOP, Conversation, Finding

FIRST_TEXT = "你好，我发烧，吃了布洛芬。 Hello, I have a fever and took ibuprofen."
"""Has something for every rule, in both languages."""


class RulesDesk:
    """The rules as they are shipped, the kill switch in its file, and whoever knows the names a model can use."""

    def __init__(self, switch: KillSwitch, claims: ClaimChecker | None = None) -> None:
        self._switch, self._claims = switch, claims

    def prepare(self) -> None:
        """Asks every rule once: what they look for is compiled when it is first needed, and that takes seconds."""
        said = [(FIRST_TEXT, FIRST_TEXT)]
        self.red_flags(FIRST_TEXT)
        self.medication(FIRST_TEXT, said)
        self.unsupported(FIRST_TEXT, said, {})
        self.deidentify(FIRST_TEXT)

    def red_flags(self, text: str) -> Sequence[Finding]:
        """An emergency says stop, what is urgent asks for caution; either raises the banner."""
        return [{**asdict(flag), "level": STOP if flag.severity == "emergency" else CAUTION} for flag in scan(text)]

    def medication(self, text: str, conversation: Conversation) -> Sequence[Finding]:
        """The text against all the patient has told of themselves and all that was advised before."""
        return [asdict(finding) for finding in check(text, facts_of(conversation, text))]

    def unsupported(self, text: str, conversation: Conversation, reply: Mapping[str, Any]) -> Sequence[Finding]:
        """Medicines and diseases that neither the conversation nor the reply's own state and action name."""
        said = [utterance for turn in conversation for utterance in turn if utterance]
        found = unsupported(text, [*said, *_named(reply)], self._claims)
        return [{**asdict(claim), "level": CAUTION} for claim in found]

    def deidentify(self, text: str) -> str:
        """The text with placeholders."""
        return deidentify(text).text

    def drafts_stopped(self) -> str | None:
        """The reason in the switch's file, if it is on."""
        state = self._switch.state()
        return (state.reason or "no reason was given") if state.on else None


def _named(reply: Mapping[str, Any]) -> list[str]:
    """The names of a reply's state and keywords."""
    entities = [*(reply.get("state") or ()), *(reply.get("keywords") or ())]
    return [str(each["name"]) for each in entities if isinstance(each, Mapping) and each.get("name")]
