"""Where an action keyword came from: how much each detector of the prior policy spoke for it.

Letters: N rows, L span positions, E entities, J slots, H hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vrbot.model.contract import Perception
from vrbot.model.detectors import Copies, PolicyEvidence
from vrbot.model.keyword_scores import SetScores
from vrbot.model.policy_network import Action, PolicyNetwork
from vrbot.model.response_generator import Conditions
from vrbot.model.set_policy import SetPolicy
from vrbot.model.spans import Written, span_of
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


@torch.no_grad()
def keyword_sources(model: Any, perception: Perception, rows: Tensor) -> KeywordSources | None:
    """None for a model whose policy does not consist of detectors."""
    if not isinstance(model, VRBot) or perception.state is None:
        return None
    policy, given = model.prior_policy, perception.conditions.select(rows)
    if not isinstance(policy, PolicyNetwork | SetPolicy):
        return None
    evidence = evidence_of(model, perception.state[rows], given)
    keywords = given.action.keywords.ids.clamp_max(model.table.num_entities - 1)  # NONE names nothing to ask for
    judged = judged_actions(policy, perception, rows)
    scores = [_scores(policy, evidence, action, keywords) for _, action in judged]
    context, graph = torch.stack([each[0] for each in scores]), torch.stack([each[1] for each in scores])
    given_by = torch.stack([_given_by(policy, evidence, each, keywords) for each in judged])  # [actions, N, L]
    probability = given_by.sum(dim=0)
    shares = (graph - torch.logaddexp(context, graph)).exp().nan_to_num(nan=0.0)  # what nobody can reach: no share
    from_graph = (given_by * shares).sum(dim=0) / probability.clamp_min(torch.finfo(probability.dtype).tiny)
    likeliest = torch.stack([chance for chance, _ in judged]).argmax(dim=0)  # [N]
    row = torch.arange(len(rows))
    return KeywordSources(probability, from_graph, context[likeliest, row], graph[likeliest, row])


JudgedAction = tuple[Tensor, Action]
"""An action whose keywords were judged, and how much that counted in each row [N]."""


def judged_actions(policy: PolicyNetwork | SetPolicy, perception: Perception, rows: Tensor) -> list[JudgedAction]:
    """The action that was taken; where keywords are a set, under every category, as likely as it was held."""
    action: Action = perception.conditions.action.select(rows)
    if not isinstance(policy, SetPolicy) or perception.category is None:
        return [(torch.ones(len(rows)), action)]
    chances = perception.category[rows].exp()
    every = torch.eye(chances.shape[1])
    return [
        (chances[:, number], Action(category.expand(len(rows), -1), action.keywords))
        for number, category in enumerate(every)
    ]


def _scores(
    policy: PolicyNetwork | SetPolicy, evidence: PolicyEvidence, action: Action, keywords: Tensor
) -> tuple[Tensor, Tensor]:
    """What the context detector and the graph detector say of each keyword [N, L]."""
    asked = _asked(policy, evidence, action)
    found = [detector(asked.states, asked.written, evidence) for detector in policy.detectors]
    nothing = torch.full(keywords.shape, -math.inf)
    generated = [_generated(each.generation, keywords) for each in found if each.generation is not None]
    copied = [_copied(each.copies, keywords) for each in found if each.copies is not None]
    return torch.stack([nothing, *generated]).logsumexp(dim=0), torch.stack([nothing, *copied]).logsumexp(dim=0)


def evidence_of(model: VRBot, state: Tensor, given: Conditions) -> PolicyEvidence:
    """What the prior policy saw when it chose the action."""
    table = model.table()
    span = span_of(state, model.state_length, model.table.num_entities)
    graphs = None if model.subgraph_encoder is None else model.subgraph_encoder(span)
    return PolicyEvidence(given.context, model.state_reader(span, table), table, graphs)


def _asked(policy: PolicyNetwork | SetPolicy, evidence: PolicyEvidence, action: Action) -> _Asked:
    vectors = policy.vectors.for_decoder(evidence)  # type: ignore[operator]
    vectors = (*vectors, action.category @ policy.categories.weight)
    if isinstance(policy, SetPolicy):
        states = torch.tanh(policy.begin(torch.cat(vectors, dim=-1))).unsqueeze(1)
        return _Asked(states, Written.nothing(len(states), len(evidence.table), states.device))
    states = policy.writer.states_along(policy.writer.initial(*vectors), action.keywords, evidence.table)
    return _Asked(states, Written.before_each(action.keywords))


def keyword_probability(
    policy: PolicyNetwork | SetPolicy, evidence: PolicyEvidence, judged: Sequence[JudgedAction], keywords: Tensor
) -> Tensor:
    """How probable each of the actions' keywords is where it stands [N, L]; `keywords` are their ids [N, L]."""
    return torch.stack([_given_by(policy, evidence, each, keywords) for each in judged]).sum(dim=0)


def _given_by(
    policy: PolicyNetwork | SetPolicy, evidence: PolicyEvidence, judged: JudgedAction, keywords: Tensor
) -> Tensor:
    """What one judged action gives to the keywords' probabilities [N, L]."""
    chance, action = judged
    scores = policy.score_along(evidence, action).keywords
    if isinstance(scores, SetScores):
        return chance.unsqueeze(1) * scores.logits.sigmoid().gather(1, keywords)
    return chance.unsqueeze(1) * scores.log_probs.gather(-1, keywords.unsqueeze(-1)).squeeze(-1).exp()


def _generated(logits: Tensor, keywords: Tensor) -> Tensor:
    """The logits [N, Q, E] of each position's entity [N, L]; Q is L, or 1 where all positions are asked for alike."""
    return logits.expand(-1, keywords.shape[1], -1).gather(-1, keywords.unsqueeze(-1)).squeeze(-1)


def _copied(copies: Copies, keywords: Tensor) -> Tensor:
    """Log mass [N, L] of the slots that hold each position's entity."""
    match = copies.entities.unsqueeze(1) == keywords.unsqueeze(-1)  # [N, L, J]
    return copies.scores.expand_as(match).masked_fill(~match, -math.inf).logsumexp(dim=-1)
