"""Who spoke for each keyword of an action: the detectors' shares and scores, and the paths that carry it.

Letters: L keyword positions, P subgraphs that are tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.agent.sources import (
    JudgedAction,
    KeywordSources,
    evidence_of,
    judged_actions,
    keyword_probability,
    keyword_sources,
)
from vrbot.explain.evidence import KeywordEvidence, Path, Reason
from vrbot.explain.paths import Edges, Weights, attention_in, nodes_along, path_weights, paths_to, without_edges
from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.retrieval import Subgraph
from vrbot.model.contract import Perception
from vrbot.model.detectors import PolicyEvidence
from vrbot.model.policy_network import PolicyNetwork
from vrbot.model.set_policy import SetPolicy
from vrbot.model.subgraphs import SubgraphEncoder
from vrbot.model.vrbot import VRBot

PATHS_SHOWN = 3
PATHS_TRIED = 12
"""So many paths, those with the largest weights, are taken away one by one to see what they carry."""

SMALLEST_EFFECT = 1e-6
"""A path that changes the probability by less carries nothing."""


@dataclass(frozen=True, eq=False)
class Reasoning:
    """One turn's action as the prior policy reasoned about it, ready to be asked again with another subgraph."""

    model: VRBot
    policy: PolicyNetwork | SetPolicy
    evidence: PolicyEvidence
    judged: tuple[JudgedAction, ...]
    keywords: Tensor  # [1, L] entity ids

    @classmethod
    def of(cls, model: VRBot, perception: Perception, row: int) -> Reasoning | None:
        """None where the policy does not consist of detectors."""
        policy = model.prior_policy
        if perception.state is None or not isinstance(policy, PolicyNetwork | SetPolicy):
            return None
        rows = torch.tensor([row])
        given = perception.conditions.select(rows)
        evidence = evidence_of(model, perception.state[rows], given)
        keywords = given.action.keywords.ids.clamp_max(model.table.num_entities - 1)
        return cls(model, policy, evidence, tuple(judged_actions(policy, perception, rows)), keywords)

    @property
    def subgraph(self) -> Subgraph | None:
        """What the graph detector saw."""
        return None if self.evidence.subgraphs is None else self.evidence.subgraphs.subgraphs[0]

    @property
    def encoder(self) -> SubgraphEncoder:
        encoder = self.model.subgraph_encoder
        assert isinstance(encoder, SubgraphEncoder), "paths need a graph encoder"
        return encoder

    @property
    def num_relations(self) -> int:
        return len(self.encoder.retriever.graph.relations)

    @torch.no_grad()
    def probabilities(self, subgraphs: Sequence[Subgraph]) -> Tensor:
        """The probability of each keyword if the policy had seen each of these subgraphs instead [P, L].

        The category, or how likely each is held, and the keywords before stay as they are.
        """
        rows = torch.zeros(len(subgraphs), dtype=torch.long)
        seen = self.evidence
        evidence = PolicyEvidence(
            seen.context.select(rows), seen.state.select(rows), seen.table, self.encoder.encode(subgraphs)
        )
        judged = [(chance[rows], action.select(rows)) for chance, action in self.judged]
        return keyword_probability(self.policy, evidence, judged, self.keywords[rows])

    def without(self, path: Edges) -> Subgraph:
        """The subgraph without a path's edges."""
        assert self.subgraph is not None, "there is no subgraph"
        return without_edges(self.subgraph, path, self.encoder.retriever.hops, self.num_relations)

    def paths(self, entity: int) -> list[Edges]:
        """All paths to an entity; none where there is no graph."""
        if self.subgraph is None:
            return []
        return paths_to(self.subgraph, entity, self.encoder.retriever.hops, self.num_relations)


@torch.no_grad()
def keyword_evidence(
    model: VRBot, perception: Perception, row: int, said: frozenset[int], inventory: Inventory
) -> tuple[KeywordEvidence, ...] | None:
    """The evidence for each keyword; `said` are the entities named in the conversation so far."""
    reasoning = Reasoning.of(model, perception, row)
    sources = keyword_sources(model, perception, torch.tensor([row]))
    if reasoning is None or sources is None or perception.state is None or perception.keywords is None:
        return None
    explanations = _Explanations(frozenset(perception.state[row].tolist()), said, reasoning.subgraph)
    attention = None if reasoning.subgraph is None else attention_in(reasoning.encoder, reasoning.subgraph)
    found = []
    for position, entity in enumerate(perception.keywords[row].tolist()):
        if entity < 0:
            continue
        paths = reasoning.paths(entity)
        shown = [] if attention is None else _carrying(reasoning, attention, position, paths, inventory)
        graph = float(sources.from_graph[0, position])
        probability = float(sources.probability[0, position])
        found.append(
            KeywordEvidence(
                name=inventory.names[entity],
                type=inventory.types[entity],
                probability=probability,
                from_conversation=1.0 - graph,
                from_graph=graph,
                base=float(reasoning.policy.log_odds[entity]) if isinstance(reasoning.policy, SetPolicy) else None,
                **_scores(sources, position),
                copy_weight=probability * graph,
                explained_by=explanations.of(entity),
                num_paths=len(paths),
                paths=tuple(shown),
            )
        )
    return tuple(found)


def _scores(sources: KeywordSources, position: int) -> dict[str, float | None]:
    scores = {"conversation_score": sources.context_score, "graph_score": sources.graph_score}
    values = {name: float(score[0, position]) for name, score in scores.items()}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _carrying(
    reasoning: Reasoning, attention: Weights, position: int, paths: Sequence[Edges], inventory: Inventory
) -> list[Path]:
    """The paths without which the keyword would be less probable, the one that carries most first."""
    subgraph = reasoning.subgraph
    if subgraph is None or not paths:
        return []
    weights = dict(zip(paths, path_weights(subgraph, attention, paths), strict=True))
    tried = sorted(paths, key=lambda path: (-weights[path], path))[:PATHS_TRIED]
    probabilities = reasoning.probabilities([subgraph, *(reasoning.without(path) for path in tried)])[:, position]
    effects = (probabilities[0] - probabilities[1:]).tolist()
    relations = reasoning.encoder.retriever.graph.relations
    shown = [
        Path(
            entities=tuple(inventory.names[node] for node in nodes_along(subgraph, path)),
            relations=tuple(relations[int(subgraph.relations[edge])] for edge in path),
            attention=tuple(tuple(attention[:, edge].tolist()) for edge in path),
            weight=weights[path],
            effect=effect,
        )
        for path, effect in zip(tried, effects, strict=True)
        if effect > SMALLEST_EFFECT
    ]
    return sorted(shown, key=lambda path: -path.effect)[:PATHS_SHOWN]


@dataclass(frozen=True)
class _Explanations:
    """What counts as an explanation of a keyword, by the rule of MEP."""

    state: frozenset[int]
    said: frozenset[int]
    subgraph: Subgraph | None

    def of(self, entity: int) -> tuple[Reason, ...]:
        graph = self.subgraph
        reached = graph is not None and bool((graph.hops[graph.nodes == entity] > 0).any())
        reasons: dict[Reason, bool] = {"state": entity in self.state, "context": entity in self.said, "path": reached}
        return tuple(reason for reason, holds in reasons.items() if holds)
