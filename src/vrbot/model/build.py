"""VRBot and each of its ablations as an assembly of parts; only the `build` files read the configuration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.config import Config
from vrbot.dialogue.session import CATEGORIES
from vrbot.dialogue.vocabulary import BOS
from vrbot.knowledge.retrieval import SubgraphRetriever
from vrbot.model.action_classifier import ActionClassifier
from vrbot.model.build_reading import (
    at_policy_rate,
    build_context_encoder,
    build_heard_words,
    build_history_encoder,
    build_words,
)
from vrbot.model.contract import Objective
from vrbot.model.detectors import (
    BilinearNodeScore,
    ContextDetector,
    GraphDetector,
    LinearNodeScore,
    ResponseDetector,
    TraitScore,
)
from vrbot.model.fixed import Hidden, MentionTracker, Shown, SilentPolicy
from vrbot.model.habits import Habits
from vrbot.model.policy_network import InferenceEvidence, PolicyNetwork, PriorEvidence
from vrbot.model.reply_cells import ReadingsFed, ReadingsLate
from vrbot.model.response_generator import ResponseGenerator
from vrbot.model.set_policy import SetPolicy
from vrbot.model.spans import EntityTable, SpanReader, SpanWriter
from vrbot.model.spreading import SpreadingActivation, num_traits
from vrbot.model.standing import NUM_STANDINGS
from vrbot.model.state_tracker import StateTracker
from vrbot.model.subgraphs import SubgraphEncoder
from vrbot.model.surroundings import Surroundings
from vrbot.model.vrbot import VRBot
from vrbot.model.world import World
from vrbot.nets.encoders import BidirectionalEncoder

CATEGORY_SIZE = 32


@dataclass(frozen=True)
class Assembly:
    """Which parts a variant has."""

    state: bool = True
    action: bool = True
    graph: bool = True
    context: bool = True
    pretrained: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The kinds of label its parts can learn from."""
        return (("state",) if self.state else ()) + (("category", "keywords") if self.action else ())


def build_vrbot(config: Config, world: World, assembly: Assembly, objective: Objective) -> VRBot:
    """A VRBot with the parts the assembly names."""
    network = config.network
    size, hidden = network.embedding_size, network.hidden_size
    words = build_words(config, world)
    categories = nn.Embedding(len(CATEGORIES), CATEGORY_SIZE)
    policy = _policy_builder(config, world, assembly, categories)
    guesses = config.objective.marks_guesses and config.objective.bound == "two-stage"
    return VRBot(
        words=build_heard_words(config, world, words) if assembly.pretrained else words,
        table=EntityTable(words, world.entity_words),
        categories=categories,
        context_encoder=build_context_encoder(config, world),
        policy_encoder=_policy_encoder(config, world, assembly),
        response_encoder=BidirectionalEncoder(size, hidden),
        surroundings=_surroundings(config, world) if assembly.state else None,
        habits=_habits(config, world) if assembly.action and assembly.context else None,
        state_reader=SpanReader(size, hidden),
        keyword_reader=SpanReader(size, hidden),
        prior_tracker=build_tracker(config, (hidden, hidden)) if assembly.state else MentionTracker(),
        inference_tracker=build_tracker(config, (hidden, hidden, hidden)) if assembly.state else MentionTracker(),
        subgraph_encoder=_subgraph_encoder(config, world) if assembly.graph and assembly.action else None,
        prior_policy=policy.prior(),
        inference_policy=policy.inference(),
        show_state=Shown() if assembly.state else Hidden(),
        generator=build_generator(config, world, words, obeys=assembly.action, doubts=assembly.action and guesses),
        state_length=config.tracker.length,
        action_length=config.policy.length,
        dropout=network.dropout,
        minds_standing=config.policy.standing and assembly.action and assembly.context,
        at_least_one=config.policy.at_least_one,
        objective=objective,
    )


def _surroundings(config: Config, world: World) -> Surroundings | None:
    reach = config.tracker.surroundings
    return Surroundings(world.num_words, world.num_entities, reach) if reach else None


def _habits(config: Config, world: World) -> Habits | None:
    count = config.policy.habits
    return Habits(count, world.num_entities) if count else None


def _policy_encoder(config: Config, world: World, assembly: Assembly) -> nn.Module | None:
    """What the policy networks read with, where that is not what all others do: the reader of the whole history."""
    if not (assembly.action and assembly.pretrained and config.pretrained.history):
        return None
    return build_history_encoder(config, world)


def build_generator(
    config: Config, world: World, words: nn.Embedding, *, obeys: bool, doubts: bool = False
) -> ResponseGenerator:
    """`obeys` says whether there is an action that decides what the reply names, `doubts` whether the generator is told
    which actions are guesses."""
    network = config.network
    cell = (ReadingsFed if network.readings == "fed" else ReadingsLate)(network.embedding_size, network.hidden_size)
    return ResponseGenerator(
        words,
        world.entity_words,
        CATEGORY_SIZE,
        network.hidden_size,
        network.dropout,
        BOS,
        cell,
        world.meanings,
        coverage=network.coverage,
        keyword_bonus=config.decoding.keyword_bonus,
        only_keywords=obeys and config.decoding.only_keywords,
        doubts=doubts,
        precision=config.decoding.precision,
    )


def build_tracker(config: Config, evidence_sizes: tuple[int, ...]) -> StateTracker:
    settings = config.tracker
    return StateTracker(
        config.network.embedding_size,
        config.network.hidden_size,
        evidence_sizes,
        generation_bias=settings.generation_bias,
        ending_bias=settings.ending_bias,
        order_bias=settings.order_bias,
        caution=settings.caution,
    )


def _subgraph_encoder(config: Config, world: World) -> SubgraphEncoder:
    settings = config.policy
    retriever = SubgraphRetriever(world.graph, settings.hops, settings.subgraph_limit, cache_size=20_000)
    spreading = SpreadingActivation(world.graph) if settings.graph_score == "spreading" else None
    encoder = SubgraphEncoder(retriever, world.num_entities, settings.graph_size, config.network.hidden_size, spreading)
    return at_policy_rate(config, encoder)


def keyword_order(config: Config, world: World) -> Tensor:
    """In which order the keywords of a response or a label are named [E]: frequent first, or as mentioned."""
    return world.preference if config.policy.order == "frequency" else torch.zeros(world.num_entities)


def _graph_detector(config: Config, world: World) -> GraphDetector:
    hidden, dropout = config.network.hidden_size, config.network.dropout
    if config.policy.graph_score == "linear":
        return GraphDetector(LinearNodeScore(2 * hidden, hidden))
    score = BilinearNodeScore(2 * hidden, hidden, dropout)
    if config.policy.graph_score == "bilinear":
        return GraphDetector(score)
    return GraphDetector(score, TraitScore(2 * hidden, num_traits(world.graph), dropout))


@dataclass(frozen=True, eq=False)
class _PolicyBuilder:
    prior: Callable[[], nn.Module]
    inference: Callable[[], nn.Module]


def _policy_builder(config: Config, world: World, assembly: Assembly, categories: nn.Embedding) -> _PolicyBuilder:
    size, hidden, dropout = config.network.embedding_size, config.network.hidden_size, config.network.dropout
    free = config.policy.posterior == "free"

    def context_detector(*, prior: bool) -> nn.Module:
        standing = TraitScore(hidden, NUM_STANDINGS, dropout) if prior and config.policy.standing else None
        minds_habits = prior and config.policy.habits > 0
        return ContextDetector(size, hidden, world.num_entities, dropout, standing, minds_habits=minds_habits)

    def network(detectors: list[nn.Module], vectors: nn.Module, parts: int, seen: int, ending_bias: float) -> nn.Module:
        writer = SpanWriter(size, hidden, (*(hidden for _ in range(parts)), CATEGORY_SIZE))
        classifier = ActionClassifier(tuple(hidden for _ in range(seen)), len(CATEGORIES), dropout)
        policy = PolicyNetwork(classifier, writer, detectors, vectors, categories, hidden, ending_bias=ending_bias)
        return at_policy_rate(config, policy)

    def set_policy(detectors: list[nn.Module], vectors: nn.Module, seen: int) -> nn.Module:
        classifier = ActionClassifier(tuple(hidden for _ in range(seen)), len(CATEGORIES), dropout)
        order = keyword_order(config, world)
        policy = SetPolicy(classifier, detectors, vectors, categories, 2 * hidden, hidden, world.log_odds, order)
        return at_policy_rate(config, policy)

    def prior() -> nn.Module:
        if not assembly.action:
            return SilentPolicy(len(CATEGORIES))
        detectors = [context_detector(prior=True)] if assembly.context else []
        if assembly.graph:
            detectors.append(_graph_detector(config, world))
        vectors = PriorEvidence(hidden, with_graph=assembly.graph)
        seen = 2 + assembly.graph
        if config.policy.form == "set":
            return set_policy(detectors, vectors, seen)
        return network(detectors, vectors, parts=2, seen=seen, ending_bias=0.0)

    def inference() -> nn.Module:
        if not assembly.action:
            return SilentPolicy(len(CATEGORIES))
        detectors = ([context_detector(prior=False)] if free else []) + [
            ResponseDetector(hidden, keyword_order(config, world))
        ]
        bias = 0.0 if free else -math.inf
        return network(detectors, InferenceEvidence(), parts=3, seen=3, ending_bias=bias)

    return _PolicyBuilder(prior, inference)
