"""A policy network whose keywords are a set: every entity is judged for itself, by all detectors together.

The paper writes keywords one after the other under one normaliser (`policy_network`). There, saying NONE competes
with all entities at once, and what serves best is decided slot by slot; here each entity has its own probability,
so that one threshold, set on validation data, weighs naming too much against naming too little.
Letters: N rows, L span positions, E entities, H hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vrbot.model.action_classifier import ActionClassifier
from vrbot.model.detectors import PolicyEvidence
from vrbot.model.keyword_scores import IMPOSSIBLE, SetScores
from vrbot.model.policy_network import Action, ActionClamp, ActionScores, WrittenAction
from vrbot.model.spans import Choose, Span, Written


class SetPolicy(nn.Module):
    """Classifies the category, then judges every entity; the detectors' logits add up."""

    def __init__(
        self,
        classifier: ActionClassifier,
        detectors: Sequence[nn.Module],
        vectors: nn.Module,
        categories: nn.Embedding,
        evidence_size: int,
        hidden_size: int,
        log_odds: Tensor,
    ) -> None:
        """`log_odds` [E]: how often each entity is named at all, where the judgement starts from."""
        super().__init__()
        self.classifier, self.vectors, self.categories = classifier, vectors, categories
        self.detectors = nn.ModuleList(detectors)
        self.begin = nn.Linear(evidence_size + categories.embedding_dim, hidden_size)
        self.log_odds = nn.Parameter(log_odds.clone())

    def classify(self, evidence: PolicyEvidence) -> Tensor:
        """Log probabilities of the category [N, C]."""
        log_probs: Tensor = self.classifier(*self.vectors.for_classifier(evidence))  # type: ignore[operator]
        return log_probs

    def score_along(self, evidence: PolicyEvidence, action: Action) -> ActionScores:
        """How probable category and keywords are; the keywords given the action's category."""
        return ActionScores(self.classify(evidence), SetScores(self._logits(evidence, action.category)))

    def write(
        self,
        evidence: PolicyEvidence,
        length: int,
        choose_category: Choose,
        choose_keyword: Choose,
        clamp: ActionClamp | None = None,
    ) -> WrittenAction:
        """An action; the likeliest `length` of the entities chosen are named, likeliest first."""
        log_probs = self.classify(evidence)
        category = choose_category(log_probs)
        if clamp is not None:
            category = torch.where(clamp.category_rows.unsqueeze(-1), clamp.category, category)
        logits = self._logits(evidence, category)
        span = _likeliest(logits, choose_keyword, length)
        if clamp is not None:
            span = span.where(clamp.keywords.span, clamp.keywords.rows)
        return WrittenAction(ActionScores(log_probs, SetScores(logits)), Action(category, span))

    def _logits(self, evidence: PolicyEvidence, category: Tensor) -> Tensor:
        vectors = self.vectors.for_decoder(evidence)  # type: ignore[operator]
        state = torch.tanh(self.begin(torch.cat((*vectors, category @ self.categories.weight), dim=-1))).unsqueeze(1)
        nothing = Written.nothing(len(state), len(evidence.table), state.device)
        logits = self.log_odds.expand(len(state), -1)
        offered = torch.zeros_like(logits)
        for detector in self.detectors:
            found = detector(state, nothing, evidence)
            if found.generation is not None:
                logits, offered = logits + found.generation.squeeze(1), torch.ones_like(offered)
            if found.copies is not None:
                scores = found.copies.scores.squeeze(1)
                absent = scores.isneginf()
                logits = logits.scatter_add(1, found.copies.entities, scores.masked_fill(absent, 0.0))
                offered = offered.scatter_add(1, found.copies.entities, (~absent).to(offered.dtype))
        return torch.where(offered > 0, logits, IMPOSSIBLE)  # what no detector can reach is not named


def _likeliest(logits: Tensor, choose: Choose, length: int) -> Span:
    """The span of the chosen entities, at most `length`; a choice is between named and not named (the last symbol)."""
    pair = torch.stack((logits, -logits), dim=-1)
    chosen = choose(nn.functional.logsigmoid(pair))[..., 0]  # [N, E]
    rank = torch.where(chosen.detach() > 0.5, logits.detach(), -torch.inf)
    count = min(length, logits.shape[1])
    best, ids = rank.topk(count, dim=1)
    there = (best > -torch.inf).to(logits.dtype) * chosen.gather(1, ids)  # [N, L]
    weights = logits.new_zeros(len(logits), length, logits.shape[1] + 1)
    slots = torch.zeros_like(weights[:, :count]).scatter(2, ids.unsqueeze(2), there.unsqueeze(2))
    slots = slots + nn.functional.pad((1.0 - there).unsqueeze(2), (logits.shape[1], 0))
    weights[:, :, -1] = 1.0
    return Span(torch.cat((slots, weights[:, count:]), dim=1))
