"""An agent: a trained model in conversation, with its prior networks only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from vrbot.agent.card import Facts, model_card
from vrbot.agent.pretrained import Pretrained, load_pretrained, save_pretrained
from vrbot.agent.reply import Keyword, Reply, StateEntity
from vrbot.agent.searching import Search, find_words
from vrbot.agent.sources import KeywordSources, keyword_sources
from vrbot.baselines.catalogue import CATALOGUE
from vrbot.config import Config
from vrbot.dialogue.batching import SessionBatch, limits_of
from vrbot.dialogue.conversation import batch_from_conversation
from vrbot.dialogue.session import CATEGORIES
from vrbot.errors import UsageError
from vrbot.model.contract import DialogueModel, Perception

Conversation = Sequence[tuple[str, str]]
"""What patient and physician said, turn by turn; what stands in the place of the last answer is not looked at."""


class Agent:
    """A model one can talk to; known as `vrbot.VRBot` too, whichever system of the catalogue it is."""

    def __init__(self, pretrained: Pretrained) -> None:
        self._pretrained = pretrained
        self._model: DialogueModel = pretrained.model  # type: ignore[assignment]
        self._encoder = pretrained.corpus.encoder
        self._labels = CATALOGUE[pretrained.facts.model].labels

    @classmethod
    def from_pretrained(cls, directory: Path | str, *, corpus: Path | str | None = None) -> Self:
        """From a folder `save_pretrained` wrote, or from a run; `corpus` says where a run's corpus has moved to."""
        return cls(load_pretrained(directory, corpus))

    def save_pretrained(self, directory: Path | str, *, overwrite: bool = False) -> None:
        """Writes a folder that needs nothing else: weights, settings, words, graph, a model card, and a manifest."""
        save_pretrained(directory, self._pretrained, overwrite=overwrite)

    @property
    def facts(self) -> Facts:
        """What the model is, and how it did on validation data."""
        return self._pretrained.facts

    @property
    def config(self) -> Config:
        return self._pretrained.config

    @property
    def language(self) -> str:
        """The language its words are cut for: "en" where blanks separate them, else "zh"."""
        return "en" if self._pretrained.corpus.segmenter_settings[0] == "spaces" else "zh"

    @property
    def card(self) -> str:
        """The model card, as Markdown."""
        return model_card(self.facts, self.config, self._pretrained.corpus)

    @property
    def pretrained(self) -> Pretrained:
        """The model, and all it was built from."""
        return self._pretrained

    @torch.no_grad()
    def respond(self, conversation: Conversation, search: Search | None = None) -> Reply:
        """The reply to the last thing the patient said; the same conversation and search give the same reply."""
        batch = self.hear(conversation)
        perception = self._model.perceive(batch.inputs, batch.layout)
        row = len(batch.turn) - 1
        words = find_words(self._model, perception, row, search or Search(), self.config.decoding)
        return self.reply_of(perception, row, words)

    def hear(self, conversation: Conversation) -> SessionBatch:
        """The batch the model reads, a row for each turn; the last answer is not in it."""
        self._pretrained.model.eval()
        return batch_from_conversation(self._encoder, _heard(conversation), limits_of(self.config.network))

    def reply_of(
        self, perception: Perception, row: int, words: Sequence[int], sources: KeywordSources | None = None
    ) -> Reply:
        """These word ids as the reply to one row of what was perceived; `sources` are the row's, if they are known."""
        return Reply(
            text=self._encoder.decode(words),
            state=self._state(perception, row),
            dropped=self._dropped(perception, row),
            categories=self._categories(perception, row),
            keywords=self._keywords(perception, row, sources),
        )

    def _state(self, perception: Perception, row: int) -> tuple[StateEntity, ...] | None:
        if perception.state is None or "state" not in self._labels:
            return None
        before = _entities(perception.state, row - 1)
        inventory = self._pretrained.corpus.inventory
        return tuple(
            StateEntity(inventory.names[entity], inventory.types[entity], "kept" if entity in before else "new")
            for entity in _entities(perception.state, row)
        )

    def _dropped(self, perception: Perception, row: int) -> tuple[str, ...] | None:
        if perception.state is None or "state" not in self._labels:
            return None
        now = _entities(perception.state, row)
        names = self._pretrained.corpus.inventory.names
        return tuple(names[entity] for entity in _entities(perception.state, row - 1) if entity not in now)

    def _categories(self, perception: Perception, row: int) -> dict[str, float] | None:
        if perception.category is None or "category" not in self._labels:
            return None
        return dict(zip(CATEGORIES, perception.category[row].exp().tolist(), strict=True))

    def _keywords(self, perception: Perception, row: int, sources: KeywordSources | None) -> tuple[Keyword, ...] | None:
        if perception.keywords is None or "keywords" not in self._labels:
            return None
        inventory = self._pretrained.corpus.inventory
        if sources is None:
            sources = keyword_sources(self._model, perception, torch.tensor([row]))
        keywords = []
        for position, entity in enumerate(perception.keywords[row].tolist()):
            if entity < 0:
                continue
            name, kind = inventory.names[entity], inventory.types[entity]
            if sources is None:
                keywords.append(Keyword(name, kind))
                continue
            graph = float(sources.from_graph[0, position])
            keywords.append(Keyword(name, kind, float(sources.probability[0, position]), 1.0 - graph, graph))
        return tuple(keywords)


def _entities(spans: Tensor, row: int) -> list[int]:
    """The entities of one row's span [L]; none before the first row."""
    return [] if row < 0 else [entity for entity in spans[row].tolist() if entity >= 0]


def _heard(conversation: Any) -> list[tuple[str, str]]:
    """The conversation checked, without the last answer."""
    turns: list[tuple[str, str]] = []
    for turn in conversation:
        if isinstance(turn, str) or len(turn) != 2 or not all(isinstance(text, str) for text in turn):
            raise UsageError(f"turn {len(turns) + 1} of the conversation is not a pair of texts (patient, physician)")
        turns.append((turn[0], turn[1]))
    if not turns:
        raise UsageError("a conversation needs at least one turn: give what the patient said")
    return [*turns[:-1], (turns[-1][0], "")]
