"""Where an action keyword came from: how much each detector of the prior policy spoke for it.

Letters: N rows, A judged actions, L span positions, E entities, J slots, H hidden size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from vrbot.model.contract import Perception
from vrbot.model.detectors import Copies, PolicyEvidence
from vrbot.model.keyword_scores import IMPOSSIBLE
from vrbot.model.policy_network import Action, PolicyNetwork
from vrbot.model.response_generator import Conditions
from vrbot.model.set_policy import SetPolicy
from vrbot.model.spans import Written, span_of
from vrbot.model.subgraphs import EncodedSubgraphs
from vrbot.model.vrbot import VRBot


@dataclass(frozen=True, eq=False)
class KeywordSources:
    """Of each keyword position [N, L]: its probability, the share of the graph detector, and both detectors' scores.

    The share is exp(graph) / (exp(context) + exp(graph)) of the two detectors' scores; where keywords are written
    under one normaliser it is the share of the keyword's probability that was copied from the graph. Where keywords
    are a set, judged under every category, it is the mean of these shares, each category counted by what it gave to
    the probability; the scores are those under the likeliest category. A score is -inf where a detector cannot reach
    the keyword.
    """

    probability: Tensor
    from_graph: Tensor
    context_score: Tensor
    graph_score: Tensor


@dataclass(frozen=True, eq=False)
class _Asked:
    """What the detectors are asked with: decoder states [N, Q, H] and what was written before each."""

    states: Tensor
    written: Written


@dataclass(frozen=True, eq=False)
class JudgedActions:
    """The A actions under which keywords were judged, in blocks of N rows, and how much each counted [A, N]."""

    chances: Tensor
    actions: Action

    @classmethod
    def of(cls, policy: PolicyNetwork | SetPolicy, perception: Perception, rows: Tensor) -> JudgedActions:
        """The action that was taken; where keywords are a set, under every category, as likely as it was held."""
        action: Action = perception.conditions.action.select(rows)
        if not isinstance(policy, SetPolicy) or perception.category is None:
            return cls(torch.ones(1, len(rows)), action)
        chances = perception.category[rows].exp().T
        every = torch.eye(len(chances)).repeat_interleave(len(rows), dim=0)
        return cls(chances, Action(every, action.keywords.select(torch.arange(len(rows)).repeat(len(chances)))))

    def select(self, rows: Tensor) -> JudgedActions:
        """The same actions for these rows."""
        count, num_rows = self.chances.shape
        return JudgedActions(
            self.chances[:, rows], self.actions.select((num_rows * torch.arange(count).unsqueeze(1) + rows).flatten())
        )


@dataclass(frozen=True, eq=False)
class Judging:
    """How the prior policy judged the keywords [N, L] of N rows, and all it did so by."""

    policy: PolicyNetwork | SetPolicy
    evidence: PolicyEvidence
    judged: JudgedActions
    keywords: Tensor

    @classmethod
    def of(cls, model: Any, perception: Perception, rows: Tensor) -> Judging | None:
        """None for a model whose policy does not consist of detectors."""
        if not isinstance(model, VRBot) or perception.state is None:
            return None
        policy, given = model.prior_policy, perception.conditions.select(rows)
        if not isinstance(policy, PolicyNetwork | SetPolicy):
            return None
        evidence = evidence_of(model, perception.state[rows], given)
        keywords = given.action.keywords.ids.clamp_max(model.table.num_entities - 1)  # NONE names nothing to ask for
        return cls(policy, evidence, JudgedActions.of(policy, perception, rows), keywords)

    def of_first_row(self, subgraphs: EncodedSubgraphs) -> Judging:
        """The first row's judging, had it seen each of these subgraphs instead: a row for each."""
        rows = torch.zeros(len(subgraphs.nodes), dtype=torch.long)
        evidence = self.evidence.of_prior(rows, subgraphs)
        return Judging(self.policy, evidence, self.judged.select(rows), self.keywords[rows])

    @torch.no_grad()
    def probability(self) -> Tensor:
        """How probable each keyword is where it stands [N, L]."""
        return self._given().sum(dim=0)

    @torch.no_grad()
    def sources(self) -> KeywordSources:
        """Who spoke for each keyword, and how much."""
        (context, graph), given = self._scores, self._given()
        probability = given.sum(dim=0)
        shares = (graph - torch.logaddexp(context, graph)).exp().nan_to_num(nan=0.0)  # what nobody can reach: no share
        from_graph = (given * shares).sum(dim=0) / probability.clamp_min(torch.finfo(probability.dtype).tiny)
        likeliest, row = self.judged.chances.argmax(dim=0), torch.arange(len(self.keywords))
        return KeywordSources(probability, from_graph, context[likeliest, row], graph[likeliest, row])

    def _given(self) -> Tensor:
        """What each action gives to the keywords' probabilities [A, N, L]."""
        policy, chances = self.policy, self.judged.chances.unsqueeze(-1)
        if isinstance(policy, SetPolicy):
            return chances * _logits(policy.log_odds[self.keywords], *self._scores).sigmoid()
        log_probs = policy.score_spans(self.evidence, self.judged.actions).gather(-1, self.keywords.unsqueeze(-1))
        return chances * log_probs.squeeze(-1).exp()

    @cached_property
    def _scores(self) -> tuple[Tensor, Tensor]:
        """What the context detector and the graph detector say of each keyword [A, N, L]."""
        evidence, shape = self._evidence_of_each(), self.judged.chances.shape
        asked = _asked(self.policy, evidence, self.judged.actions)
        keywords = self.keywords.repeat(len(self.judged.chances), 1)
        found = [detector(asked.states, asked.written, evidence) for detector in self.policy.detectors]
        nothing = torch.full(keywords.shape, -math.inf)
        generated = [_generated(each.generation, keywords) for each in found if each.generation is not None]
        copied = [_copied(each.copies, keywords) for each in found if each.copies is not None]
        context, graph = (torch.stack([nothing, *each]).logsumexp(dim=0) for each in (generated, copied))
        return context.unflatten(0, shape), graph.unflatten(0, shape)

    def _evidence_of_each(self) -> PolicyEvidence:
        """The evidence, once for each action."""
        count, num_rows = self.judged.chances.shape
        if count == 1:
            return self.evidence
        rows, seen = torch.arange(num_rows).repeat(count), self.evidence
        graphs = None if seen.subgraphs is None else seen.subgraphs.select(rows)
        return seen.of_prior(rows, graphs)


def keyword_sources(model: Any, perception: Perception, rows: Tensor) -> KeywordSources | None:
    """None for a model whose policy does not consist of detectors."""
    judging = Judging.of(model, perception, rows)
    return None if judging is None else judging.sources()


def evidence_of(model: VRBot, state: Tensor, given: Conditions) -> PolicyEvidence:
    """What the prior policy saw when it chose the action."""
    assert given.by_policy is not None, "what a VRBot writes from holds what its policy has read"
    span = span_of(state, model.state_length, model.table.num_entities)
    return model.prior_evidence(given.by_policy, span, model.table())


def _asked(policy: PolicyNetwork | SetPolicy, evidence: PolicyEvidence, action: Action) -> _Asked:
    vectors = policy.vectors.for_decoder(evidence)  # type: ignore[operator]
    vectors = (*vectors, action.category @ policy.categories.weight)
    if isinstance(policy, SetPolicy):
        states = torch.tanh(policy.begin(torch.cat(vectors, dim=-1))).unsqueeze(1)
        return _Asked(states, Written.nothing(len(states), len(evidence.table), states.device))
    states = policy.writer.states_along(policy.writer.initial(*vectors), action.keywords, evidence.table)
    return _Asked(states, Written.before_each(action.keywords))


def _logits(base: Tensor, context: Tensor, graph: Tensor) -> Tensor:
    """The logit of a keyword of a set: its own and what the detectors add; what none can reach is not named."""
    total = base + context.masked_fill(context.isneginf(), 0.0) + graph.masked_fill(graph.isneginf(), 0.0)
    return torch.where(context.isneginf() & graph.isneginf(), IMPOSSIBLE, total)


def _generated(logits: Tensor, keywords: Tensor) -> Tensor:
    """The logits [N, Q, E] of each position's entity [N, L]; Q is L, or 1 where all positions are asked for alike."""
    return logits.expand(-1, keywords.shape[1], -1).gather(-1, keywords.unsqueeze(-1)).squeeze(-1)


def _copied(copies: Copies, keywords: Tensor) -> Tensor:
    """Log mass [N, L] of the slots that hold each position's entity."""
    match = copies.entities.unsqueeze(1) == keywords.unsqueeze(-1)  # [N, L, J]
    return copies.scores.expand_as(match).masked_fill(~match, -math.inf).logsumexp(dim=-1)
