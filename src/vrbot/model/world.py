"""What a model is built around: vocabularies, graph, and counts of the training texts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.splits import Split
from vrbot.dialogue.vocabulary import EOS, SEP, Vocabulary
from vrbot.knowledge.graph import Graph
from vrbot.nets.bags import ngram_buckets

NGRAM_BUCKETS = 1 << 15


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


def count_response_words(corpus: Corpus) -> Tensor:
    """How often the training responses say each word [V]; each ends once."""
    split = corpus.split("train")
    by_physician = np.arange(len(split.texts.utterance_offsets) - 1) % 2 == 1
    counts, recorded = _count_words(split, by_physician, len(corpus.vocabulary))
    counts[EOS] += recorded
    return torch.from_numpy(counts)


def count_context_words(corpus: Corpus) -> Tensor:
    """How often the training contexts (previous response, separator, patient's utterance) say each word [V]."""
    split = corpus.split("train")
    last_responses = np.asarray(split.session_offsets[1:]) * 2 - 1
    in_contexts = np.ones(len(split.texts.utterance_offsets) - 1, dtype=np.bool_)
    in_contexts[last_responses] = False
    counts, _ = _count_words(split, in_contexts, len(corpus.vocabulary))
    counts[SEP] += split.num_turns
    return torch.from_numpy(counts)


def _count_words(split: Split, chosen: NDArray[np.bool_], num_words: int) -> tuple[NDArray[np.int64], int]:
    """How often the chosen utterances say each word [V], and how many of them say anything."""
    lengths = np.diff(split.texts.utterance_offsets)
    said = split.texts.tokens[np.repeat(chosen, lengths)]
    return np.bincount(said, minlength=num_words), int(np.count_nonzero(lengths[chosen]))


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
