"""The physician policy network: a category, then keywords (paper, section 3.4).

Prior and inference policy are this one class with different classifiers' evidence and detectors.
Letters: N rows, L span positions, C categories, E entities, H hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.model.action_classifier import ActionClassifier
from vrbot.model.detectors import PolicyEvidence
from vrbot.model.keyword_scores import KeywordScores, SpanScores
from vrbot.model.spans import Choose, Clamp, Span, SpanWriter, Written, one_hot_choice
from vrbot.nets.attention import AdditiveAttention
from vrbot.nets.symbol_scores import symbol_log_probs


@dataclass(frozen=True, eq=False)
class Action:
    """A_t: weights over categories [N, C] and the keywords."""

    category: Tensor
    keywords: Span

    def followed_by(self, other: Action) -> Action:
        """The rows of both."""
        return Action(torch.cat((self.category, other.category)), self.keywords.followed_by(other.keywords))

    def select(self, rows: Tensor) -> Action:
        return Action(self.category[rows], self.keywords.select(rows))


@dataclass(frozen=True, eq=False)
class ActionScores:
    """Log probabilities of the category [N, C], and the distribution of the keywords."""

    category: Tensor
    keywords: KeywordScores


@dataclass(frozen=True, eq=False)
class WrittenAction:
    """An action and what it was drawn from."""

    scores: ActionScores
    action: Action


@dataclass(frozen=True, eq=False)
class ActionClamp:
    """Which rows' category and keywords are known, and what they are."""

    category_rows: Tensor
    category: Tensor  # [N, C] one-hot
    keywords: Clamp


class PriorEvidence(nn.Module):
    """h^S, h^c; the classifier also sees q_t, an attentive reading of the subgraph (Eq. 9)."""

    def __init__(self, hidden_size: int, *, with_graph: bool) -> None:
        super().__init__()
        self.read_graph = AdditiveAttention(hidden_size, hidden_size, hidden_size) if with_graph else None

    def for_decoder(self, evidence: PolicyEvidence) -> tuple[Tensor, ...]:
        return evidence.state.summary, evidence.context.summary

    def for_classifier(self, evidence: PolicyEvidence) -> tuple[Tensor, ...]:
        vectors = self.for_decoder(evidence)
        if self.read_graph is None or evidence.subgraphs is None:
            return vectors
        graphs = evidence.subgraphs
        return *vectors, self.read_graph(evidence.context.summary, graphs.nodes, graphs.mask)


class InferenceEvidence(nn.Module):
    """h^c, h^S and h^R (Eqs. 13 and 14)."""

    def for_decoder(self, evidence: PolicyEvidence) -> tuple[Tensor, ...]:
        assert evidence.response is not None, "the inference policy needs the response"
        return evidence.context.summary, evidence.state.summary, evidence.response.summary

    def for_classifier(self, evidence: PolicyEvidence) -> tuple[Tensor, ...]:
        return self.for_decoder(evidence)


class PolicyNetwork(nn.Module):
    """Classifies the category, then writes the keywords under one normaliser for all detectors.

    `ending_bias` is added to NONE while a response detector still has something to copy: 0 is the paper's form,
    -inf makes the network name everything there is to name.
    """

    def __init__(
        self,
        classifier: ActionClassifier,
        writer: SpanWriter,
        detectors: Sequence[nn.Module],
        vectors: nn.Module,
        categories: nn.Embedding,
        hidden_size: int,
        *,
        ending_bias: float = 0.0,
    ) -> None:
        super().__init__()
        self.classifier, self.writer, self.vectors, self.categories = classifier, writer, vectors, categories
        self.detectors = nn.ModuleList(detectors)
        self.ending = nn.Linear(2 * hidden_size, 1)
        self.ending_bias = ending_bias

    def classify(self, evidence: PolicyEvidence) -> Tensor:
        """Log probabilities of the category [N, C]."""
        log_probs: Tensor = self.classifier(*self.vectors.for_classifier(evidence))  # type: ignore[operator]
        return log_probs

    def score_along(self, evidence: PolicyEvidence, action: Action) -> ActionScores:
        """How probable each part of the action is, given the parts before it."""
        return ActionScores(self.classify(evidence), SpanScores(self.score_spans(evidence, action)))

    def score_spans(self, evidence: PolicyEvidence, action: Action) -> Tensor:
        """Log probabilities of each keyword position, given the category and the keywords before it [N, L, E+1]."""
        return self.writer.score(
            self._initial(evidence, action.category),
            action.keywords,
            evidence.table,
            lambda states, written: self._score(states, written, evidence),
        )

    def decide(self, evidence: PolicyEvidence, length: int, choose_keyword: Choose) -> WrittenAction:
        """The action to take: the likeliest category, then keywords given it."""
        return self.write(evidence, length, one_hot_choice, choose_keyword)

    def write(
        self,
        evidence: PolicyEvidence,
        length: int,
        choose_category: Choose,
        choose_keyword: Choose,
        clamp: ActionClamp | None = None,
    ) -> WrittenAction:
        """An action: the category first, then `length` keywords."""
        log_probs = self.classify(evidence)
        category = choose_category(log_probs)
        if clamp is not None:
            category = torch.where(clamp.category_rows.unsqueeze(-1), clamp.category, category)
        written = self.writer.write(
            self._initial(evidence, category),
            length,
            evidence.table,
            lambda states, written: self._score(states, written, evidence),
            choose_keyword,
            None if clamp is None else clamp.keywords,
        )
        return WrittenAction(ActionScores(log_probs, SpanScores(written.log_probs)), Action(category, written.span))

    def _initial(self, evidence: PolicyEvidence, category: Tensor) -> Tensor:
        vectors = self.vectors.for_decoder(evidence)  # type: ignore[operator]
        return self.writer.initial(*vectors, category @ self.categories.weight)

    def _score(self, states: Tensor, written: Written, evidence: PolicyEvidence) -> Tensor:
        found = [detector(states, written, evidence) for detector in self.detectors]
        logits = [detection.generation for detection in found if detection.generation is not None]
        copies = [detection.copies for detection in found if detection.copies is not None]
        num_entities = len(evidence.table) - 1
        entities = sum(logits) if logits else states.new_full((*states.shape[:2], num_entities), -math.inf)
        summary = evidence.context.summary.unsqueeze(1).expand(-1, states.shape[1], -1)
        ending = self.ending(torch.cat((summary, states), dim=-1))
        if copies and self.ending_bias:
            left = torch.stack([(copy.scores > -math.inf).any(dim=-1) for copy in copies]).any(dim=0)
            ending = torch.where(left.unsqueeze(-1), ending + self.ending_bias, ending)
        generation = torch.cat((entities, ending), dim=-1)
        scores = torch.cat([copy.scores for copy in copies], dim=-1) if copies else states[..., :0]
        slots = [copy.entities for copy in copies] or [written.ended[:, :0].long()]
        return symbol_log_probs(generation, scores, torch.cat(slots, dim=-1), None, written.ended)
