"""What one pass along the turns of a batch drew, and how probable the networks found it.

Letters: N rows (turns), L span positions, E entities.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from vrbot.model.keyword_scores import SpanScores
from vrbot.model.policy_network import Action, ActionScores
from vrbot.model.spans import Span


@dataclass(frozen=True, eq=False)
class StatePass:
    """S^q of every turn, the state before it, and both trackers' log probabilities along S^q [N, L, E+1]."""

    state: Span
    previous: Span
    posterior: Tensor
    prior: Tensor


@dataclass(frozen=True, eq=False)
class ActionPass:
    """A^q of every turn, and both policies' log probabilities along it."""

    action: Action
    posterior: ActionScores
    prior: ActionScores

    @property
    def posterior_span(self) -> SpanScores:
        """The inference policy always writes a span."""
        scores = self.posterior.keywords
        assert isinstance(scores, SpanScores)
        return scores
