"""The model as the desk sees it: a conversation in, a reply as plain values out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from vrbot.serving.problems import RefusedError
from vrbot.serving.safety_desk import Conversation
from vrbot.serving.texts import canonical_json

if TYPE_CHECKING:
    from vrbot.agent.pretrained import Pretrained
    from vrbot.agent.reply import Reply
    from vrbot.explain.abstention import Guard
    from vrbot.knowledge.entities import Inventory
    from vrbot.model.contract import DialogueModel
    from vrbot.model.vrbot import VRBot
    from vrbot.serving.proposals import Proposal

KnownStates = Sequence[Sequence[str] | None]
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


@runtime_checkable
class RespondsTogether(Protocol):
    """A responder that saves time when it is asked several things at once."""

    def respond_many(self, conversations: Sequence[Conversation]) -> Iterable[Mapping[str, Any]]:
        """What `respond` would say to each, to the last bit; in their order, each once it is there."""
        ...


@runtime_checkable
class ProposesLabels(Protocol):
    """A responder that has inference networks: it reads finished turns, the answers too, and says what they mean."""

    @property
    def fingerprint(self) -> str:
        """Names the model exactly."""
        ...

    def propose_labels(self, turns: Conversation, states: KnownStates = ()) -> list[Mapping[str, Proposal]]:
        """For each turn the labels by kind, and how sure the networks are of each; an action only where answered.

        `states` that people gave (names for each turn, or None) are gone on from, and not proposed for.
        """
        ...


@runtime_checkable
class DescribesItself(Protocol):
    """A responder that can say what it is, what it learned from, how well it did and what it is not for."""

    @property
    def card(self) -> str:
        """The model card, as Markdown."""
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

    @property
    def card(self) -> str:
        """The card that a saved model has as README.md."""
        return self._agent.card

    @property
    def entity_names(self) -> tuple[str, ...]:
        """The names a state or an action can hold."""
        return tuple(self._agent.pretrained.corpus.inventory.names)

    @property
    def inventory(self) -> Inventory:
        """All entities the model knows."""
        return self._agent.pretrained.corpus.inventory

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        """The agent's reply."""
        return self._agent.respond(conversation).to_dict()

    def respond_many(self, conversations: Sequence[Conversation]) -> Iterator[Mapping[str, Any]]:
        """The agent's replies, their words searched for together."""
        from vrbot.serving.together import replies_together

        return (reply.to_dict() for reply in replies_together(self._agent, conversations, self._reply))

    def _reply(self, conversation: Conversation, words: tuple[int, ...] | None) -> Reply:
        """The reply of these words; searched for where there are none."""
        if words is None:
            return self._agent.respond(conversation)
        import torch

        batch = self._agent.hear(conversation)
        model: DialogueModel = self._agent.pretrained.model  # type: ignore[assignment]
        with torch.no_grad():
            perception = model.perceive(batch.inputs, batch.layout)
            return self._agent.reply_of(perception, len(batch.turn) - 1, words)

    def what_if(self, conversation: Conversation, change: Mapping[str, Any]) -> Mapping[str, Any]:
        """The steered reply; RefusedError where this model cannot be steered."""
        if self._what_if is None:
            raise RefusedError("this model cannot be asked what-if")
        return self._what_if(conversation, change)


class ExplainedResponder(AgentResponder):
    """A model of the paper's kind, whose every reply comes with its evidence and, with a guard, how sure it is."""

    def __init__(self, pretrained: Pretrained, guard: Guard | None = None) -> None:
        from vrbot.agent.respond import Agent
        from vrbot.explain.explainer import Explainer

        self._explainer = Explainer(Agent(pretrained), guard)
        super().__init__(pretrained, self._explainer.steer)
        self.calibrated = guard is not None
        content = f"{self._fingerprint}\nevidence\n{canonical_json(None if guard is None else asdict(guard))}"
        self._fingerprint = hashlib.sha256(content.encode()).hexdigest()

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        """The agent's reply with evidence."""
        return self._explainer.respond(conversation).to_dict()

    def respond_many(self, conversations: Sequence[Conversation]) -> Iterator[Mapping[str, Any]]:
        """The agent's replies with evidence, their words searched for together."""
        from vrbot.explain.explainer import NOTHING_CHANGED
        from vrbot.serving.together import replies_together

        def reply(conversation: Conversation, words: tuple[int, ...] | None) -> Reply:
            return self._explainer.what_if(conversation, NOTHING_CHANGED, words=words)

        return (each.to_dict() for each in replies_together(self._agent, conversations, reply))

    def propose_labels(self, turns: Conversation, states: KnownStates = ()) -> list[Mapping[str, Proposal]]:
        """What the inference networks hold for each turn: those of `vrbot annotate propose`."""
        from vrbot.dialogue.batching import limits_of
        from vrbot.dialogue.conversation import encode_conversation
        from vrbot.explain.autolabel import AutoLabeller
        from vrbot.serving.proposals import Proposal

        pretrained = self._agent.pretrained
        labeller = AutoLabeller(cast("VRBot", pretrained.model), limits_of(pretrained.config.network))
        names, found = pretrained.corpus.inventory.names, dict[int, Mapping[str, Proposal]]()
        numbers = {name: number for number, name in enumerate(names)}
        known = [None if state is None else [numbers[one] for one in state if one in numbers] for state in states]
        split = encode_conversation(pretrained.corpus.encoder, turns, states=known or None)
        for rows in labeller.label(split, [0]):
            for turn, proposals in zip(rows.turns.tolist(), labeller.proposals(rows.inferred, names), strict=True):
                found[turn] = {
                    kind: Proposal(
                        each.value if isinstance(each.value, str) else list(each.value),
                        min(each.confidence, 1.0),
                        "auto-labeller",
                        self.fingerprint,
                    )
                    for kind, each in proposals.items()
                }
        return [found[turn] for turn in range(len(turns))]


def responder_of(model: Path, corpus: Path | None = None, guard: Path | None = None) -> AgentResponder:
    """The responder of a saved model or a run, explained where its kind can be; every file is verified.

    From then on this process computes in one thread: a reply is thousands of small products, which two threads make no
    faster; and numbers that are added up in the same order everywhere have the same bits when a draft is replayed.
    """
    import torch

    from vrbot.agent.pretrained import load_pretrained
    from vrbot.errors import UsageError
    from vrbot.explain.abstention import Guard
    from vrbot.model.vrbot import VRBot

    torch.set_num_threads(1)
    pretrained = load_pretrained(model, corpus)
    if isinstance(pretrained.model, VRBot):
        return ExplainedResponder(pretrained, None if guard is None else Guard.load(guard))
    if guard is not None:
        raise UsageError(f"{pretrained.facts.model} has no action to be sure of: leave out the guard")
    return AgentResponder(pretrained)


def fingerprint_of(pretrained: Pretrained) -> str:
    """SHA-256 over weights, settings, words and graph."""
    from vrbot.model.weights import model_to_bytes

    digest = hashlib.sha256(model_to_bytes(pretrained.model))
    digest.update(f"{pretrained.facts.model}\n{pretrained.corpus.fingerprint}\n".encode())
    digest.update(pretrained.config.model_dump_json().encode())
    return digest.hexdigest()
