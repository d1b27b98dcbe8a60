"""What kind of action a response is, read off its form: does it ask, and what kinds of thing does it name?

A weak guess that needs no label: it stands in for the inference network's word on the category of an unlabelled turn,
as the response's own entities do for the keywords. Letters: N rows, V words, E entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.dialogue.batching import TurnTargets
from vrbot.dialogue.session import CATEGORIES

ASKING = ("?", "\uff1f", "吗", "呢", "么", "几", "多久", "多大", "什么", "是否", "有没有")
"""What makes a word one of a question, in Chinese and English."""

ASK, DIAGNOSE, PRESCRIBE, CHAT = (
    CATEGORIES.index(name) for name in ("ask_symptoms", "diagnosis", "prescribe_medicine", "chitchat")
)
SPEAKS_FOR = {"medicine": PRESCRIBE, "disease": DIAGNOSE, "symptom": ASK, "attribute": ASK}
"""The category that naming an entity of a type speaks for; other types speak for none."""


@dataclass(frozen=True, eq=False)
class ResponseForm:
    """A question asks; else naming a medicine prescribes, a disease diagnoses, a symptom asks; else it is chitchat."""

    asking_words: Tensor  # [V]
    spoken_for: Tensor  # [E] a category, or -1

    @classmethod
    def of(cls, words: Sequence[str], entity_types: Sequence[str]) -> ResponseForm:
        """`words` [V] as text, `entity_types` [E] as the inventory names them."""
        asking = [any(mark in word for mark in ASKING) for word in words]
        return cls(torch.tensor(asking), torch.tensor([SPEAKS_FOR.get(kind, -1) for kind in entity_types]))

    def categories(self, targets: TurnTargets) -> Tensor:
        """The category of each response [N]."""
        response, lengths = targets.response, targets.response_lengths
        within = torch.arange(response.shape[1], device=response.device) < lengths.unsqueeze(1)
        asks = (self.asking_words.to(response.device)[response] & within).any(dim=1)
        mentions = targets.response_mentions
        named = torch.where(mentions >= 0, self.spoken_for.to(response.device)[mentions.clamp_min(0)], -1)
        category = torch.full_like(lengths, CHAT)
        for kind in (ASK, DIAGNOSE, PRESCRIBE):  # the last one that applies holds
            category = torch.where((named == kind).any(dim=1), kind, category)
        return torch.where(asks, ASK, category)
