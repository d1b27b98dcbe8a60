"""Who spoke for each keyword of an action: the detectors' shares and scores, and the paths that carry it.

Letters: L keyword positions, P subgraphs that are tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from vrbot.agent.sources import Judging, KeywordSources
from vrbot.explain.evidence import KeywordEvidence, Path, Reason
from vrbot.explain.habit_words import HabitTerms
from vrbot.explain.paths import Edges, Weights, attention_in, nodes_along, path_weights, paths_to, without_edges
from vrbot.knowledge.entities import Inventory
from vrbot.knowledge.retrieval import Subgraph
from vrbot.model.contract import Perception
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
    judging: Judging  # of one row

    @classmethod
    def of(cls, model: VRBot, perception: Perception, row: int) -> Reasoning | None:
        """None where the policy does not consist of detectors."""
        judging = Judging.of(model, perception, torch.tensor([row]))
        return None if judging is None else cls(model, judging)

    @property
    def keywords(self) -> Tensor:
        """The entity ids [1, L]."""
        return self.judging.keywords

    @cached_property
    def sources(self) -> KeywordSources:
        """Who spoke for each keyword."""
        return self.judging.sources()

    @property
    def subgraph(self) -> Subgraph | None:
        """What the graph detector saw."""
        graphs = self.judging.evidence.subgraphs
        return None if graphs is None else graphs.subgraphs[0]

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
        standing = self.judging.evidence.standing
        each = None if standing is None else standing[:1].expand(len(subgraphs), -1, -1)
        return self.judging.of_first_row(self.encoder.encode(subgraphs, each)).probability()

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
    reasoning: Reasoning,
    perception: Perception,
    row: int,
    said: frozenset[int],
    inventory: Inventory,
    habits: HabitTerms | None = None,
) -> tuple[KeywordEvidence, ...] | None:
    """The evidence for each keyword of a row; `said` are the entities named in the conversation so far."""
    if perception.state is None or perception.keywords is None:
        return None
    policy, sources = reasoning.judging.policy, reasoning.sources
    explanations = _Explanations(frozenset(perception.state[row].tolist()), said, reasoning.subgraph)
    named = {place: entity for place, entity in enumerate(perception.keywords[row].tolist()) if entity >= 0}
    paths = {position: reasoning.paths(entity) for position, entity in named.items()}
    shown = _carrying(reasoning, paths, inventory)
    found = []
    for position, entity in named.items():
        graph = float(sources.from_graph[0, position])
        probability = float(sources.probability[0, position])
        found.append(
            KeywordEvidence(
                name=inventory.names[entity],
                type=inventory.types[entity],
                probability=probability,
                from_conversation=1.0 - graph,
                from_graph=graph,
                base=float(policy.log_odds[entity]) if isinstance(policy, SetPolicy) else None,
                **_scores(sources, position),
                copy_weight=probability * graph,
                explained_by=explanations.of(entity),
                num_paths=len(paths[position]),
                paths=shown.get(position, ()),
                habit_score=None if habits is None else habits.score(entity),
                habit_words=() if habits is None else habits.words(entity),
            )
        )
    return tuple(found)


def _scores(sources: KeywordSources, position: int) -> dict[str, float | None]:
    scores = {"conversation_score": sources.context_score, "graph_score": sources.graph_score}
    values = {name: float(score[0, position]) for name, score in scores.items()}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _carrying(
    reasoning: Reasoning, paths: Mapping[int, Sequence[Edges]], inventory: Inventory
) -> dict[int, tuple[Path, ...]]:
    """Of the paths to the keyword at each position those without which it would be less probable.

    The one that carries most stands first. The policy is asked once for all of them.
    """
    subgraph = reasoning.subgraph
    if subgraph is None or not any(paths.values()):
        return {}
    attention = attention_in(reasoning.encoder, subgraph)
    weighted = {
        position: sorted(zip(path_weights(subgraph, attention, each), each, strict=True), key=_heaviest)[:PATHS_TRIED]
        for position, each in paths.items()
    }
    tried = [(position, path, weight) for position, each in weighted.items() for weight, path in each]
    probabilities = reasoning.probabilities([subgraph, *(reasoning.without(path) for _, path, _ in tried)])
    shown: dict[int, list[Path]] = {position: [] for position in paths}
    for row, (position, path, weight) in enumerate(tried, start=1):
        effect = float(probabilities[0, position] - probabilities[row, position])
        if effect > SMALLEST_EFFECT:
            shown[position].append(_path(reasoning, subgraph, attention, path, weight, effect, inventory))
    return {
        position: tuple(sorted(each, key=lambda path: -path.effect)[:PATHS_SHOWN]) for position, each in shown.items()
    }


def _heaviest(weighted: tuple[float, Edges]) -> tuple[float, Edges]:
    return -weighted[0], weighted[1]


def _path(
    reasoning: Reasoning,
    subgraph: Subgraph,
    attention: Weights,
    path: Edges,
    weight: float,
    effect: float,
    inventory: Inventory,
) -> Path:
    relations = reasoning.encoder.retriever.graph.relations
    return Path(
        entities=tuple(inventory.names[node] for node in nodes_along(subgraph, path)),
        relations=tuple(relations[int(subgraph.relations[edge])] for edge in path),
        attention=tuple(tuple(attention[:, edge].tolist()) for edge in path),
        weight=weight,
        effect=effect,
    )


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
