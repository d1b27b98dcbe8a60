"""How words and contexts are read: by a system's own networks, or with a pretrained encoder beside them."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from vrbot.config import Config
from vrbot.dialogue.vocabulary import PAD
from vrbot.errors import ConfigError
from vrbot.model.context_encoder import CarriedContextEncoder, HistoryContextEncoder, SessionContextEncoder
from vrbot.model.world import World
from vrbot.nets.bags import CharacterBag, EntityBag
from vrbot.nets.history_reader import HistoryReader, NoHistory, open_history_reader
from vrbot.nets.initial_vectors import begin_with_encoder
from vrbot.nets.pretrained import ContextualWords, open_reader

BAG_SIZE = 64

PartT = TypeVar("PartT", bound=nn.Module)


def build_words(config: Config, world: World) -> nn.Embedding:
    """Vectors of the words, on the scale every system begins with; those of an encoder's sub-tokens if asked."""
    size = config.network.embedding_size
    words = nn.Embedding(world.num_words, size, padding_idx=PAD)
    nn.init.normal_(words.weight, std=size**-0.5)
    if config.network.embeddings_from is not None:
        begin_with_encoder(words, config.network.embeddings_from, world.words)
    return words


def build_heard_words(config: Config, world: World, words: nn.Embedding) -> ContextualWords | nn.Embedding:
    """Vectors of words in their context: their own and those of the pretrained encoder, if any layers are asked for."""
    settings = config.pretrained
    if not settings.layers:
        return words
    reader = open_reader(
        _encoder_folder(config),
        world.words,
        layers=settings.layers,
        freeze=settings.freeze,
        learning_rate_factor=settings.learning_rate_factor,
        cache_bytes=settings.cache_megabytes * 1_000_000,
    )
    return ContextualWords(words, reader, config.network.dropout)


def build_context_encoder(config: Config, world: World) -> nn.Module:
    network = config.network
    if network.memory == "carried":
        return CarriedContextEncoder(network.embedding_size, network.hidden_size, network.word_dropout)
    return SessionContextEncoder(
        network.embedding_size,
        network.hidden_size,
        network.dropout,
        at_policy_rate(config, CharacterBag(world.rarity, BAG_SIZE, network.ngram_dropout)),
        at_policy_rate(config, EntityBag(world.num_entities, BAG_SIZE)),
        network.word_dropout,
    )


def at_policy_rate(config: Config, part: PartT) -> PartT:
    """The part, which will learn as slowly as the settings want of the policy."""
    return at_rate(config.policy.learning_rate_factor, part)


def at_rate(factor: float, part: PartT) -> PartT:
    """The part, which will learn at so much of the rate of what holds it."""
    part.learning_rate_factor = factor  # type: ignore[assignment]
    return part


def build_history_encoder(config: Config, world: World) -> nn.Module:
    """The usual encoder, and beside it the pretrained one that reads the whole history, for the policy alone."""
    encoder, reader = build_context_encoder(config, world), at_policy_rate(config, build_history_reader(config, world))
    return HistoryContextEncoder(encoder, reader, config.network.hidden_size, reader.size)


def build_history_reader(config: Config, world: World) -> HistoryReader | NoHistory:
    settings = config.pretrained
    if not settings.history:
        return NoHistory()
    return open_history_reader(
        _encoder_folder(config),
        world.words,
        learning_layers=settings.learning_layers,
        most=settings.history,
        size=2 * config.network.hidden_size,
        dropout=config.network.dropout,
        learning_rate_factor=settings.learning_rate_factor,
        cache_bytes=settings.cache_megabytes * 1_000_000,
    )


def _encoder_folder(config: Config) -> str:
    if config.pretrained.directory is None:
        raise ConfigError(
            "this model reads with a pretrained encoder: name its folder, --set pretrained.directory=FOLDER"
        )
    return config.pretrained.directory
