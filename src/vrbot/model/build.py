"""VRBot and each of its ablations as an assembly of parts; only this file reads the configuration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.session import CATEGORIES
from vrbot.dialogue.splits import Split
from vrbot.dialogue.vocabulary import BOS, PAD, Vocabulary
from vrbot.errors import ConfigError
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.retrieval import SubgraphRetriever
from vrbot.model.action_classifier import ActionClassifier
from vrbot.model.context_encoder import CarriedContextEncoder, SessionContextEncoder
from vrbot.model.contract import Objective
from vrbot.model.detectors import (
    BilinearNodeScore,
    ContextDetector,
    GraphDetector,
    LinearNodeScore,
    ResponseDetector,
)
from vrbot.model.fixed import Hidden, MentionTracker, Shown, SilentPolicy
from vrbot.model.policy_network import InferenceEvidence, PolicyNetwork, PriorEvidence
from vrbot.model.reply_cells import ReadingsFed, ReadingsLate
from vrbot.model.response_generator import ResponseGenerator
from vrbot.model.set_policy import SetPolicy
from vrbot.model.spans import EntityTable, SpanReader, SpanWriter
from vrbot.model.state_tracker import StateTracker
from vrbot.model.subgraphs import SubgraphEncoder
from vrbot.model.vrbot import VRBot
from vrbot.nets.bags import CharacterBag, EntityBag, ngram_buckets
from vrbot.nets.encoders import BidirectionalEncoder
from vrbot.nets.initial_vectors import begin_with_encoder
from vrbot.nets.pretrained import ContextualWords, open_reader

CATEGORY_SIZE = 32
NGRAM_BUCKETS = 1 << 15
BAG_SIZE = 64


@dataclass(frozen=True, eq=False)
class World:
    """What a model is built around: the vocabularies, the graph, and how often responses name each entity."""

    num_words: int
    entity_words: Tensor  # [E]
    graph: Graph
    entity_counts: Tensor  # [E]
    rarity: Tensor  # [buckets] of character n-grams
    meanings: Tensor  # [V, K] the entities a word stands for, -1 where there is none
    num_responses: int = 0  # this and what follows is asked for by training only
    words: tuple[str, ...] = ()  # [V]
    entity_types: tuple[str, ...] = ()  # [E]

    @property
    def num_entities(self) -> int:
        return len(self.entity_words)

    @property
    def log_odds(self) -> Tensor:
        """How likely a response is to name each entity [E], as log odds."""
        share = (self.entity_counts.float() + 0.5) / (self.num_responses + 1.0)
        return share.clamp(1e-6, 0.5).logit()

    @property
    def preference(self) -> Tensor:
        """A canonical order of keywords: frequent ones first [E], rarer ones at most a few nats behind each other."""
        return self.entity_counts.float().add(1.0).log() * 5.0


def world_of(corpus: Corpus) -> World:
    """Counts are taken from the training texts."""
    split = corpus.split("train")
    return World(
        len(corpus.vocabulary),
        torch.from_numpy(np.asarray(corpus.vocabulary.entity_word).astype(np.int64)),
        corpus.graph,
        _count_response_entities(split, len(corpus.inventory.names)),
        _count_ngrams(split),
        meanings_of(corpus.vocabulary),
        split.num_turns,
        tuple(corpus.vocabulary.words),
        corpus.inventory.types,
    )


def meanings_of(vocabulary: Vocabulary) -> Tensor:
    """The entities each word stands for [V, K], -1 after the last."""
    most = max((len(entities) for entities in vocabulary.word_entities.values()), default=1)
    meanings = torch.full((len(vocabulary), most), -1)
    for word, entities in vocabulary.word_entities.items():
        meanings[word, : len(entities)] = torch.tensor(entities)
    return meanings


def _count_response_entities(split: Split, num_entities: int) -> Tensor:
    """How many training responses name each entity [E]."""
    offsets = split.texts.mention_offsets
    counts = np.zeros(num_entities, dtype=np.int64)
    for start, stop in zip(offsets[1:-1:2].tolist(), offsets[2::2].tolist(), strict=True):
        counts[np.unique(split.texts.mention_entities[start:stop])] += 1
    return torch.from_numpy(counts)


def _count_ngrams(split: Split) -> Tensor:
    """Inverse document frequency of the character n-gram buckets over the patients' and physicians' texts."""
    seen = torch.zeros(NGRAM_BUCKETS, dtype=torch.long)
    offsets, characters = split.texts.character_offsets.tolist(), split.texts.characters
    for start, stop in itertools.pairwise(offsets):
        text = torch.from_numpy(characters[start:stop].astype(np.int64)).unsqueeze(0)
        buckets, exists = ngram_buckets(text, NGRAM_BUCKETS)
        seen[buckets[exists].unique()] += 1
    return ((len(offsets) + 1) / (seen + 1)).log() + 1.0


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
    return VRBot(
        words=build_heard_words(config, world, words) if assembly.pretrained else words,
        table=EntityTable(words, world.entity_words),
        categories=categories,
        context_encoder=build_context_encoder(config, world),
        response_encoder=BidirectionalEncoder(size, hidden),
        state_reader=SpanReader(size, hidden),
        keyword_reader=SpanReader(size, hidden),
        prior_tracker=build_tracker(config, (hidden, hidden)) if assembly.state else MentionTracker(),
        inference_tracker=build_tracker(config, (hidden, hidden, hidden)) if assembly.state else MentionTracker(),
        subgraph_encoder=_subgraph_encoder(config, world) if assembly.graph and assembly.action else None,
        prior_policy=policy.prior(),
        inference_policy=policy.inference(),
        show_state=Shown() if assembly.state else Hidden(),
        generator=build_generator(config, world, words),
        state_length=config.tracker.length,
        action_length=config.policy.length,
        dropout=network.dropout,
        objective=objective,
    )


def build_words(config: Config, world: World) -> nn.Embedding:
    """Vectors of the words, on the scale every system begins with; those of an encoder's sub-tokens if asked."""
    size = config.network.embedding_size
    words = nn.Embedding(world.num_words, size, padding_idx=PAD)
    nn.init.normal_(words.weight, std=size**-0.5)
    if config.network.embeddings_from is not None:
        begin_with_encoder(words, config.network.embeddings_from, world.words)
    return words


def build_heard_words(config: Config, world: World, words: nn.Embedding) -> ContextualWords:
    """Vectors of words in their context: their own and those of the pretrained encoder."""
    settings = config.pretrained
    if settings.directory is None:
        raise ConfigError(
            "this model reads with a pretrained encoder: name its folder, --set pretrained.directory=FOLDER"
        )
    reader = open_reader(
        settings.directory,
        world.words,
        layers=settings.layers,
        freeze=settings.freeze,
        learning_rate_factor=settings.learning_rate_factor,
        cache_bytes=settings.cache_megabytes * 1_000_000,
    )
    return ContextualWords(words, reader, config.network.dropout)


def build_generator(config: Config, world: World, words: nn.Embedding) -> ResponseGenerator:
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
    )


def build_context_encoder(config: Config, world: World) -> nn.Module:
    network = config.network
    if network.memory == "carried":
        return CarriedContextEncoder(network.embedding_size, network.hidden_size)
    return SessionContextEncoder(
        network.embedding_size,
        network.hidden_size,
        network.dropout,
        CharacterBag(world.rarity, BAG_SIZE, network.ngram_dropout),
        EntityBag(world.num_entities, BAG_SIZE),
        network.word_dropout,
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
    )


def _subgraph_encoder(config: Config, world: World) -> SubgraphEncoder:
    settings = config.policy
    retriever = SubgraphRetriever(world.graph, settings.hops, settings.subgraph_limit, cache_size=20_000)
    return SubgraphEncoder(retriever, world.num_entities, settings.graph_size, config.network.hidden_size)


def keyword_order(config: Config, world: World) -> Tensor:
    """In which order the keywords of a response or a label are named [E]: frequent first, or as mentioned."""
    return world.preference if config.policy.order == "frequency" else torch.zeros(world.num_entities)


@dataclass(frozen=True, eq=False)
class _PolicyBuilder:
    prior: Callable[[], nn.Module]
    inference: Callable[[], nn.Module]


def _policy_builder(config: Config, world: World, assembly: Assembly, categories: nn.Embedding) -> _PolicyBuilder:
    size, hidden, dropout = config.network.embedding_size, config.network.hidden_size, config.network.dropout
    free = config.policy.posterior == "free"

    def context_detector() -> nn.Module:
        return ContextDetector(size, hidden, world.num_entities, dropout)

    def network(detectors: list[nn.Module], vectors: nn.Module, parts: int, seen: int, ending_bias: float) -> nn.Module:
        writer = SpanWriter(size, hidden, (*(hidden for _ in range(parts)), CATEGORY_SIZE))
        classifier = ActionClassifier(tuple(hidden for _ in range(seen)), len(CATEGORIES), dropout)
        return PolicyNetwork(classifier, writer, detectors, vectors, categories, hidden, ending_bias=ending_bias)

    def set_policy(detectors: list[nn.Module], vectors: nn.Module, seen: int) -> nn.Module:
        classifier = ActionClassifier(tuple(hidden for _ in range(seen)), len(CATEGORIES), dropout)
        return SetPolicy(classifier, detectors, vectors, categories, 2 * hidden, hidden, world.log_odds)

    def prior() -> nn.Module:
        if not assembly.action:
            return SilentPolicy(len(CATEGORIES))
        detectors = [context_detector()] if assembly.context else []
        if assembly.graph:
            linear = config.policy.graph_score == "linear"
            score = LinearNodeScore(2 * hidden, hidden) if linear else BilinearNodeScore(2 * hidden, hidden, dropout)
            detectors.append(GraphDetector(score))
        vectors = PriorEvidence(hidden, with_graph=assembly.graph)
        seen = 2 + assembly.graph
        if config.policy.form == "set":
            return set_policy(detectors, vectors, seen)
        return network(detectors, vectors, parts=2, seen=seen, ending_bias=0.0)

    def inference() -> nn.Module:
        if not assembly.action:
            return SilentPolicy(len(CATEGORIES))
        detectors = ([context_detector()] if free else []) + [ResponseDetector(hidden, keyword_order(config, world))]
        bias = 0.0 if free else -math.inf
        return network(detectors, InferenceEvidence(), parts=3, seen=3, ending_bias=bias)

    return _PolicyBuilder(prior, inference)
