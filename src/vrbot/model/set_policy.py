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
from vrbot.model.spans import Choose, Span, Written, one_hot_choice

LEAST = 1e-7
EXPECTED = 0.5
"""No probability is nearer to 0 or 1 than `LEAST` when logits are taken of it; a keyword is to be expected where the
probabilities of all add up to `EXPECTED`."""


class SetPolicy(nn.Module):
    """Classifies the category, then judges every entity; the detectors' logits add up.

    The keywords chosen stand in the `order` [E] (highest first, equals likeliest first) in which the generator has met
    those of responses: a set has none of its own.
    """

    order: Tensor

    def __init__(
        self,
        classifier: ActionClassifier,
        detectors: Sequence[nn.Module],
        vectors: nn.Module,
        categories: nn.Embedding,
        evidence_size: int,
        hidden_size: int,
        log_odds: Tensor,
        order: Tensor,
    ) -> None:
        """`log_odds` [E]: how often each entity is named at all, where the judgement starts from."""
        super().__init__()
        self.classifier, self.vectors, self.categories = classifier, vectors, categories
        self.detectors = nn.ModuleList(detectors)
        self.begin = nn.Linear(evidence_size + categories.embedding_dim, hidden_size)
        self.log_odds = nn.Parameter(log_odds.clone())
        self.register_buffer("order", order, persistent=False)

    def classify(self, evidence: PolicyEvidence) -> Tensor:
        """Log probabilities of the category [N, C]."""
        log_probs: Tensor = self.classifier(*self.vectors.for_classifier(evidence))  # type: ignore[operator]
        return log_probs

    def score_along(self, evidence: PolicyEvidence, action: Action) -> ActionScores:
        """How probable category and keywords are; the keywords given the action's category."""
        logits = self._logits(evidence, action.category.unsqueeze(1)).squeeze(1)
        return ActionScores(self.classify(evidence), SetScores(logits))

    def write(
        self,
        evidence: PolicyEvidence,
        length: int,
        choose_category: Choose,
        choose_keyword: Choose,
        clamp: ActionClamp | None = None,
    ) -> WrittenAction:
        """An action; the likeliest `length` of the entities chosen are named."""
        log_probs = self.classify(evidence)
        category = choose_category(log_probs)
        if clamp is not None:
            category = torch.where(clamp.category_rows.unsqueeze(-1), clamp.category, category)
        logits = self._logits(evidence, category.unsqueeze(1)).squeeze(1)
        span = self._likeliest(logits, choose_keyword, length)
        if clamp is not None:
            span = span.where(clamp.keywords.span, clamp.keywords.rows)
        return WrittenAction(ActionScores(log_probs, SetScores(logits)), Action(category, span))

    def decide(self, evidence: PolicyEvidence, length: int, choose_keyword: Choose) -> WrittenAction:
        """The action to take: the likeliest category, and keywords judged under every category, as likely as it is.

        In training the keywords are judged given the category of the response; the likeliest category alone, wrong
        one time in three, would mislead them.
        """
        log_probs = self.classify(evidence)
        every = torch.eye(log_probs.shape[1], device=log_probs.device).expand(len(log_probs), -1, -1)
        named = self._logits(evidence, every).sigmoid()  # [N, C, E]
        logits = torch.bmm(log_probs.exp().unsqueeze(1), named).squeeze(1).clamp(LEAST, 1 - LEAST).logit()
        action = Action(one_hot_choice(log_probs), self._likeliest(logits, choose_keyword, length))
        return WrittenAction(ActionScores(log_probs, SetScores(logits)), action)

    def _logits(self, evidence: PolicyEvidence, categories: Tensor) -> Tensor:
        """Logits of all entities under each of Q categories, [N, Q, C] -> [N, Q, E]."""
        count = categories.shape[1]
        vectors = [vector.unsqueeze(1).expand(-1, count, -1) for vector in self.vectors.for_decoder(evidence)]  # type: ignore[operator]
        states = torch.tanh(self.begin(torch.cat((*vectors, categories @ self.categories.weight), dim=-1)))
        nothing = Written.nothing(len(states), len(evidence.table), states.device)
        nothing = Written(nothing.used.expand(-1, count, -1), nothing.ended.expand(-1, count))
        logits = self.log_odds.expand(*states.shape[:2], -1)
        offered = torch.zeros_like(logits)
        for detector in self.detectors:
            found = detector(states, nothing, evidence)
            if found.generation is not None:
                logits, offered = logits + found.generation, torch.ones_like(offered)
            if found.copies is not None:
                scores, index = found.copies.scores, found.copies.entities.unsqueeze(1).expand(-1, count, -1)
                absent = scores.isneginf()
                logits = logits.scatter_add(2, index, scores.masked_fill(absent, 0.0))
                offered = offered.scatter_add(2, index, (~absent).to(offered.dtype))
        return torch.where(offered > 0, logits, IMPOSSIBLE)  # what no detector can reach is not named

    def _likeliest(self, logits: Tensor, choose: Choose, length: int) -> Span:
        """The span of the chosen entities, at most `length`; a choice is between named and not named (last symbol)."""
        pair = torch.stack((logits, -logits), dim=-1)
        chosen = choose(nn.functional.logsigmoid(pair))[..., 0]  # [N, E]
        rank = torch.where(chosen.detach() > 0.5, logits.detach(), -torch.inf)
        count = min(length, logits.shape[1])
        best, ids = rank.topk(count, dim=1)
        place = torch.where(best > -torch.inf, self.order[ids], -torch.inf).argsort(dim=1, descending=True, stable=True)
        best, ids = best.gather(1, place), ids.gather(1, place)
        there = (best > -torch.inf).to(logits.dtype) * chosen.gather(1, ids)  # [N, L]
        weights = logits.new_zeros(len(logits), length, logits.shape[1] + 1)
        slots = torch.zeros_like(weights[:, :count]).scatter(2, ids.unsqueeze(2), there.unsqueeze(2))
        slots = slots + nn.functional.pad((1.0 - there).unsqueeze(2), (logits.shape[1], 0))
        weights[:, :, -1] = 1.0
        return Span(torch.cat((slots, weights[:, count:]), dim=1))


def with_the_expected(chosen: Tensor, log_probs: Tensor) -> Tensor:
    """Choices between named and not named [N, E, 2], with the likeliest entity named where none is and one is to be
    expected; log probabilities of the same shape."""
    named, likely = chosen[..., 0], log_probs[..., 0]
    lacking = (named.sum(dim=1) == 0) & (likely.exp().sum(dim=1) >= EXPECTED)
    first = one_hot_choice(likely)
    named = torch.where(lacking.unsqueeze(1), first, named)
    return torch.stack((named, 1.0 - named), dim=-1)
