"""The model as the desk sees it: a conversation in, a reply as plain values out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from vrbot.serving.problems import RefusedError
from vrbot.serving.safety_desk import Conversation

if TYPE_CHECKING:
    from vrbot.agent.pretrained import Pretrained

WhatIf = Callable[[Conversation, Mapping[str, Any]], Mapping[str, Any]]


class Responder(Protocol):
    """Whoever drafts; the same fingerprint, conversation and change must give the same reply, to the last bit."""

    @property
    def fingerprint(self) -> str:
        """Names the model exactly; 1 to 128 visible ASCII characters."""
        ...

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        """A reply to the last thing the patient said; `text` is what could be sent."""
        ...

    def what_if(self, conversation: Conversation, change: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply if state or action were as `change` says."""
        ...


class AgentResponder:
    """A trained model as a responder; `what_if` is given by whoever knows how to steer it."""

    def __init__(self, pretrained: Pretrained, what_if: WhatIf | None = None) -> None:
        from vrbot.agent.respond import Agent

        self._agent, self._what_if = Agent(pretrained), what_if
        self._fingerprint = fingerprint_of(pretrained)

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        """The agent's reply."""
        return self._agent.respond(conversation).to_dict()

    def what_if(self, conversation: Conversation, change: Mapping[str, Any]) -> Mapping[str, Any]:
        """The steered reply; RefusedError where this model cannot be steered."""
        if self._what_if is None:
            raise RefusedError("this model cannot be asked what-if")
        return self._what_if(conversation, change)


def fingerprint_of(pretrained: Pretrained) -> str:
    """SHA-256 over weights, settings, words and graph."""
    from vrbot.model.weights import model_to_bytes

    digest = hashlib.sha256(model_to_bytes(pretrained.model))
    digest.update(f"{pretrained.facts.model}\n{pretrained.corpus.fingerprint}\n".encode())
    digest.update(pretrained.config.model_dump_json().encode())
    return digest.hexdigest()
