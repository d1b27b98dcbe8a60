"""Known states and actions of a batch, as spans that clamp what the networks would draw.

Letters: N rows, C categories, E entities.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vrbot.dialogue.batching import TurnTargets
from vrbot.model.policy_network import Action, ActionClamp
from vrbot.model.spans import Clamp, Span, span_of

LABEL_KINDS = ("state", "category", "keywords")


@dataclass(frozen=True, eq=False)
class KnownLatents:
    """The labels of every turn; rows without a label hold an empty span and do not count."""

    state: Span
    state_known: Tensor  # [N]
    category: Tensor  # [N, C] one-hot
    category_known: Tensor  # [N]
    keywords: Span
    keywords_known: Tensor  # [N]

    @property
    def state_clamp(self) -> Clamp:
        return Clamp(self.state_known, self.state)

    @property
    def action_clamp(self) -> ActionClamp:
        return ActionClamp(self.category_known, self.category, Clamp(self.keywords_known, self.keywords))

    def only(self, kinds: Collection[str]) -> KnownLatents:
        """As if labels of no other kind were there."""
        others = [f"{kind}_known" for kind in LABEL_KINDS if kind not in kinds]
        changes: dict[str, Any] = {name: torch.zeros_like(getattr(self, name)) for name in others}
        return replace(self, **changes)

    def with_pseudo_keywords(self, mentions: Tensor, preference: Tensor) -> KnownLatents:
        """Unlabelled turns get the entities of their response [N, K] as keywords: a start for a free posterior."""
        length, num_entities = self.keywords.weights.shape[1], self.keywords.weights.shape[2] - 1
        guessed = span_of(in_order_of(mentions, preference), length, num_entities)
        keywords = guessed.where(self.keywords, self.keywords_known)
        return replace(self, keywords=keywords, keywords_known=torch.ones_like(self.keywords_known))

    def with_categories(self, guessed: Tensor) -> KnownLatents:
        """Turns without a category get the one guessed [N]."""
        one_hot = torch.nn.functional.one_hot(guessed, self.category.shape[1]).to(self.category.dtype)
        category = torch.where(self.category_known.unsqueeze(1), self.category, one_hot)
        return replace(self, category=category, category_known=torch.ones_like(self.category_known))

    @property
    def action(self) -> Action:
        return Action(self.category, self.keywords)


def known_latents(
    targets: TurnTargets, state_length: int, action_length: int, preference: Tensor, num_categories: int
) -> KnownLatents:
    """Labels as spans; keywords stand in the order of `preference` [E], highest first, ties as mentioned."""
    num_entities = len(preference)
    keywords = in_order_of(targets.keywords, preference)
    category = torch.nn.functional.one_hot(targets.category.clamp_min(0), num_categories).float()
    return KnownLatents(
        state=span_of(targets.state, state_length, num_entities),
        state_known=targets.state_known,
        category=category,
        category_known=targets.category_known,
        keywords=span_of(keywords, action_length, num_entities),
        keywords_known=targets.keywords_known,
    )


def in_order_of(entities: Tensor, preference: Tensor) -> Tensor:
    """Entity ids [N, K] (-1 after the end) sorted by preference [E], highest first; equals keep their order."""
    if entities.shape[1] == 0:
        return entities
    rank = torch.where(entities >= 0, preference[entities.clamp_min(0)], -torch.inf)
    return entities.gather(1, rank.argsort(dim=1, descending=True, stable=True))
