"""Spans of fixed length: a product of categoricals over positions (paper, Eqs. 7 and 8).

A span is written token by token, so each position is conditioned on what was fed back before it; given that, the
positions are independent and every quantity here is a sum over them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.probability import category


@dataclass(frozen=True, eq=False)
class SpanDistribution:
    """Spans of L positions over V symbols for each of B sessions; log_probs [B, L, V], normalised per position.

    `mask` [B, L] is true where a position exists; the others add nothing to any sum and get no sampled mass.
    """

    log_probs: Tensor
    mask: Tensor | None = None

    def kl(self, prior: SpanDistribution, *, floor: float | None = None) -> Tensor:
        """KL(self || prior) over the positions of self -> [B]."""
        return self.kl_per_position(prior, floor=floor).sum(dim=-1)

    def kl_per_position(self, prior: SpanDistribution, *, floor: float | None = None) -> Tensor:
        """What each position adds to the divergence -> [B, L]; see `category.divergence` for zero mass."""
        terms = category.divergence(self._kept(self.log_probs), self._kept(prior.log_probs), floor)
        return self._only_real(terms)

    def log_prob(self, span: Tensor, mask: Tensor | None = None) -> Tensor:
        """Log probability of span ids [B, L] -> [B]; positions outside `mask` [B, L] (or self.mask) do not count.

        Ids at positions that do not count may be anything, also out of range.
        """
        real = self.mask if mask is None else mask if self.mask is None else mask & self.mask
        if real is None:
            return category.chosen_log_prob(self.log_probs, span).sum(dim=-1)
        chosen = category.chosen_log_prob(self.log_probs, span.masked_fill(~real, 0))
        return chosen.masked_fill(~real, 0.0).sum(dim=-1)

    def entropy(self) -> Tensor:
        """Entropy in nats -> [B]."""
        return self._only_real(category.entropy(self._kept(self.log_probs))).sum(dim=-1)

    def mode(self) -> Tensor:
        """The most probable symbol at each position -> [B, L]; the lower id of equals."""
        return self.log_probs.argmax(dim=-1)

    def sample(self, generator: torch.Generator) -> Tensor:
        """An exact draw per position -> ids [B, L]."""
        return category.sample(self.log_probs, generator)

    def relaxed_sample(self, temperature: float, generator: torch.Generator, *, hard: bool = False) -> Tensor:
        """A differentiable draw -> weights [B, L, V]; zeros at positions that do not exist."""
        weights = category.relaxed_sample(self._kept(self.log_probs), temperature, generator, hard=hard)
        return weights if self.mask is None else weights.masked_fill(~self.mask.unsqueeze(-1), 0.0)

    def detach(self) -> SpanDistribution:
        """The same distribution, sending no gradient back."""
        return SpanDistribution(self.log_probs.detach(), self.mask)

    def _kept(self, log_probs: Tensor) -> Tensor:
        # Positions that do not exist may hold anything (an all-masked row holds nan): replaced before any arithmetic.
        return log_probs if self.mask is None else log_probs.masked_fill(~self.mask.unsqueeze(-1), 0.0)

    def _only_real(self, terms: Tensor) -> Tensor:
        return terms if self.mask is None else terms.masked_fill(~self.mask, 0.0)
