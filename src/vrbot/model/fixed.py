"""Parts that decide nothing: stand-ins by which an ablation is another assembly (VRBot without S, without A).

Their distributions put all mass on one span, so every divergence between two of them is exactly zero.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from vrbot.model.context_encoder import Mentions
from vrbot.model.detectors import PolicyEvidence
from vrbot.model.keyword_scores import SpanScores
from vrbot.model.policy_network import Action, ActionClamp, ActionScores, WrittenAction
from vrbot.model.spans import Choose, Clamp, Span, WrittenSpan, span_of


def certain(span: Span) -> Tensor:
    """Log probabilities [N, L, E+1] of a span that is not in doubt."""
    return torch.where(span.weights > 0, 0.0, -math.inf)


class MentionTracker(nn.Module):
    """The state is what the context mentions, each entity once, the latest if they are too many."""

    def write(
        self,
        evidence: tuple[Tensor, ...],
        length: int,
        mentions: Mentions,
        table: Tensor,
        choose: Choose,
        clamp: Clamp | None = None,
    ) -> WrittenSpan:
        rows = []
        for entities, kept in zip(mentions.entities.tolist(), mentions.mask.tolist(), strict=True):
            latest = dict.fromkeys(e for e, k in zip(reversed(entities), reversed(kept), strict=True) if k)
            distinct = list(latest)[:length][::-1]
            rows.append(distinct + [-1] * (length - len(distinct)))
        entities = torch.tensor(rows, dtype=torch.long, device=table.device).view(len(rows), length)
        span = span_of(entities, length, len(table) - 1)
        return WrittenSpan(certain(span), span)

    def score_along(self, evidence: tuple[Tensor, ...], span: Span, mentions: Mentions, table: Tensor) -> Tensor:
        return certain(span)


class SilentPolicy(nn.Module):
    """No action at all: no category, no keywords."""

    def __init__(self, num_categories: int) -> None:
        super().__init__()
        self.num_categories = num_categories

    def write(
        self,
        evidence: PolicyEvidence,
        length: int,
        choose_category: Choose,
        choose_keyword: Choose,
        clamp: ActionClamp | None = None,
    ) -> WrittenAction:
        num_rows, num_entities = len(evidence.context.summary), len(evidence.table) - 1
        nothing = torch.full((num_rows, 0), -1, dtype=torch.long, device=evidence.table.device)
        category = evidence.table.new_zeros(num_rows, self.num_categories)
        action = Action(category, span_of(nothing, length, num_entities))
        return WrittenAction(self.score_along(evidence, action), action)

    def decide(self, evidence: PolicyEvidence, length: int, choose_keyword: Choose) -> WrittenAction:
        return self.write(evidence, length, choose_keyword, choose_keyword)

    def score_along(self, evidence: PolicyEvidence, action: Action) -> ActionScores:
        uniform = torch.full_like(action.category, -math.log(self.num_categories))
        return ActionScores(uniform, SpanScores(certain(action.keywords)))


class Shown(nn.Module):
    """The span as it is."""

    def forward(self, span: Span) -> Span:
        return span


class Hidden(nn.Module):
    """An empty span, whatever there is."""

    def forward(self, span: Span) -> Span:
        weights = torch.zeros_like(span.weights)
        weights[..., -1] = 1.0
        return Span(weights)
