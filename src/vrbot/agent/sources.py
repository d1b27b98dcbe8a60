"""Where an action keyword came from: how much of its probability each detector of the prior policy gave.

Letters: N rows, L span positions, E entities, J slots.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vrbot.model.contract import Perception
from vrbot.model.detectors import Copies, PolicyEvidence
from vrbot.model.policy_network import PolicyNetwork
from vrbot.model.response_generator import Conditions
from vrbot.model.spans import Written, span_of
from vrbot.model.vrbot import VRBot


@dataclass(frozen=True, eq=False)
class KeywordSources:
    """Of each keyword position [N, L]: its probability, and the share of it that the graph detector gave."""

    probability: Tensor
    from_graph: Tensor


@torch.no_grad()
def keyword_sources(model: Any, perception: Perception, rows: Tensor) -> KeywordSources | None:
    """None for a model whose policy does not consist of detectors."""
    if not isinstance(model, VRBot) or not isinstance(model.prior_policy, PolicyNetwork) or perception.state is None:
        return None
    policy, given = model.prior_policy, perception.conditions.select(rows)
    evidence = _evidence(model, perception.state[rows], given)
    span = given.action.keywords
    chosen = span.ids.unsqueeze(-1)  # [N, L, 1]
    log_probs = policy.score_spans(evidence, given.action).gather(-1, chosen).squeeze(-1)
    begun = policy.vectors.for_decoder(evidence)  # type: ignore[operator]
    initial = policy.writer.initial(*begun, given.action.category @ policy.categories.weight)
    states, written = policy.writer.states_along(initial, span, evidence.table), Written.before_each(span)
    found = [detector(states, written, evidence) for detector in policy.detectors]
    nothing = torch.full_like(log_probs, -math.inf)
    own = chosen.clamp_max(len(evidence.table) - 2)
    generated = [each.generation.gather(-1, own).squeeze(-1) for each in found if each.generation is not None]
    copied = [_copied(each.copies, span.ids) for each in found if each.copies is not None]
    generation = torch.stack([nothing, *generated]).logsumexp(dim=0)
    copies = torch.stack([nothing, *copied]).logsumexp(dim=0)
    return KeywordSources(log_probs.exp(), (copies - torch.logaddexp(generation, copies)).exp())


def _evidence(model: VRBot, state: Tensor, given: Conditions) -> PolicyEvidence:
    """What the prior policy saw when it wrote the action."""
    table = model.table()
    span = span_of(state, model.state_length, model.table.num_entities)
    graphs = None if model.subgraph_encoder is None else model.subgraph_encoder(span)
    return PolicyEvidence(given.context, model.state_reader(span, table), table, graphs)


def _copied(copies: Copies, ids: Tensor) -> Tensor:
    """Log mass [N, L] of the slots that hold each position's entity."""
    match = copies.entities.unsqueeze(1) == ids.unsqueeze(-1)  # [N, L, J]
    return copies.scores.masked_fill(~match, -math.inf).logsumexp(dim=-1)
