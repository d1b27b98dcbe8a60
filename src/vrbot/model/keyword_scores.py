"""Two forms of a distribution over the action keywords, and what a bound needs of them.

A span names keywords one after the other (the paper's form); a set says of each entity whether it is named. Both can
tell how probable given keywords are, and what it costs a prior to explain keywords that a posterior drew.
Letters: N rows, L span positions, E entities.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from vrbot.model.spans import Span
from vrbot.probability.span import SpanDistribution

IMPOSSIBLE = -20.0
"""What a keyword costs, in nats, that a network has no way to write (one the response never names)."""


@dataclass(frozen=True, eq=False)
class SpanScores:
    """Log probabilities of each position of a span [N, L, E+1]."""

    log_probs: Tensor

    def log_prob(self, keywords: Span) -> Tensor:
        """Log probability of known keywords [N]; what cannot be written costs a fixed price."""
        ids = keywords.ids
        places = ids + self.log_probs.shape[-1] * torch.arange(ids.numel(), device=ids.device).view_as(ids)
        # `gather` would keep all log probabilities for its backward pass.
        chosen = self.log_probs.flatten().index_select(0, places.flatten()).view_as(ids)
        return torch.where(chosen.isfinite(), chosen, IMPOSSIBLE).sum(dim=-1)

    def divergence_from(self, posterior: SpanScores, drawn: Span, floor: float | None) -> Tensor:
        """KL(posterior || this) along the drawn keywords, exact at each position [N]."""
        return SpanDistribution(posterior.log_probs).kl(SpanDistribution(self.log_probs), floor=floor)


@dataclass(frozen=True, eq=False)
class SetScores:
    """Logits of each entity's being named, independently of the others [N, E]."""

    logits: Tensor

    def log_prob(self, keywords: Span) -> Tensor:
        """Log probability of naming exactly these [N]."""
        named = keywords.weights[..., :-1].sum(dim=1).clamp_max(1.0)
        return -F.binary_cross_entropy_with_logits(self.logits, named, reduction="none").sum(dim=-1)

    def divergence_from(self, posterior: SpanScores, drawn: Span, floor: float | None) -> Tensor:
        """-log p(the drawn set) [N]: the divergence from a posterior that is sure of its set, whatever its order."""
        return -self.log_prob(drawn)


KeywordScores = SpanScores | SetScores
