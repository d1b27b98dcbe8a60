"""An agent that says why: replies with evidence, and replies under another state or action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch

from vrbot.agent.reply import Reply
from vrbot.agent.respond import Agent, Conversation
from vrbot.agent.searching import Search, find_words
from vrbot.dialogue.batching import SessionBatch
from vrbot.errors import UsageError
from vrbot.explain.abstention import Guard
from vrbot.explain.evidence import Evidence
from vrbot.explain.habit_words import HabitTerms
from vrbot.explain.keywords import Reasoning, keyword_evidence
from vrbot.explain.places import ContextPlaces
from vrbot.explain.state_changes import state_evidence
from vrbot.explain.steering import Change, Perceived, perceive
from vrbot.explain.words import word_evidence
from vrbot.model.policy_network import PolicyNetwork
from vrbot.model.set_policy import SetPolicy
from vrbot.model.vrbot import VRBot

NOTHING_CHANGED = Change()


class Explainer:
    """Explains the replies of one agent; with a guard it also says how sure the model is, and when not to trust it."""

    def __init__(self, agent: Agent, guard: Guard | None = None) -> None:
        model = agent.pretrained.model
        if not isinstance(model, VRBot):
            raise UsageError(
                f"{agent.facts.model} has no states and actions to explain: explain vrbot or one of its variants"
            )
        self.agent, self.model, self._guard = agent, model, guard
        self._corpus = agent.pretrained.corpus

    @classmethod
    def from_pretrained(
        cls, directory: Path | str, *, corpus: Path | str | None = None, guard: Guard | None = None
    ) -> Self:
        """Of a saved model or a run; see `Agent.from_pretrained`."""
        return cls(Agent.from_pretrained(directory, corpus=corpus), guard)

    @property
    def has_action(self) -> bool:
        """Whether the model chooses a category and keywords."""
        return isinstance(self.model.prior_policy, PolicyNetwork | SetPolicy)

    def respond(self, conversation: Conversation, search: Search | None = None) -> Reply:
        """The agent's reply, the same to the last bit, with its evidence."""
        return self.what_if(conversation, NOTHING_CHANGED, search)

    @torch.no_grad()
    def what_if(
        self,
        conversation: Conversation,
        change: Change,
        search: Search | None = None,
        words: tuple[int, ...] | None = None,
    ) -> Reply:
        """The reply, with evidence, if the state or the action of the last turn were as `change` says.

        `words` are the ids of the reply where somebody has searched for them already.
        """
        batch = self.agent.hear(conversation)
        perceived = perceive(self.model, batch, change, self._corpus.inventory)
        row = len(batch.turn) - 1
        decoding = self.agent.config.decoding
        if words is None:
            words = find_words(self.model, perceived.perception, row, search or Search(), decoding)
        reasoning = Reasoning.of(self.model, perceived.perception, row)
        sources = None if reasoning is None else reasoning.sources
        reply = self.agent.reply_of(perceived.perception, row, words, sources)
        evidence = self._evidence(list(conversation), batch, perceived, words, reasoning)
        if self._guard is not None:
            judged = self._guard.judge(self.model, batch, perceived.perception, evidence)
            sure = self._guard.sure_of(evidence.keywords)
            evidence = replace(evidence, keywords=sure, confidence=judged.confidence, abstain=judged.reasons)
        return replace(reply, evidence=replace(evidence, changed=change.changed))

    def steer(self, conversation: Conversation, change: Mapping[str, Any]) -> dict[str, Any]:
        """`what_if` in plain values, for whoever asks over a wire."""
        return self.what_if(conversation, Change.from_dict(change)).to_dict()

    def said(self, conversation: Conversation) -> frozenset[int]:
        """The entities named in a conversation before its last answer."""
        heard = [text for turn in conversation for text in turn][:-1]
        linker = self._corpus.linker
        return frozenset(entity for text in heard for mention in linker.find(text) for entity in mention.entities)

    def _evidence(
        self,
        conversation: list[tuple[str, str]],
        batch: SessionBatch,
        perceived: Perceived,
        words: tuple[int, ...],
        reasoning: Reasoning | None,
    ) -> Evidence:
        row, inventory = len(batch.turn) - 1, self._corpus.inventory
        places = ContextPlaces.of(conversation, int(batch.inputs.context_lengths[row]), self._corpus.encoder)
        perception, said = perceived.perception, self.said(conversation)
        texts = " ".join(text for turn in conversation for text in turn)
        habits = HabitTerms.of(self.model, batch, row, self._corpus.characters, texts)
        return Evidence(
            words=word_evidence(self.model, perception, row, words, places, self._corpus.vocabulary),
            state=state_evidence(self.model, batch, perceived, places, inventory),
            keywords=None
            if reasoning is None
            else keyword_evidence(reasoning, perception, row, said, inventory, habits),
        )
