"""What a trivial system gives, and what it learns from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.splits import Split


@dataclass(frozen=True)
class ReferenceAnswer:
    """A reply as text, and the state and action behind it; None: the system does not say."""

    text: str
    state: tuple[int, ...] | None = None
    category: int | None = None
    keywords: tuple[int, ...] | None = None


class Reference(Protocol):
    """A system that answers every turn of a split from what was said before it."""

    def answer(self, split: Split) -> list[ReferenceAnswer]:
        """An answer for each turn; no reply to it, no label and no later turn plays a part."""
        ...


@dataclass(frozen=True, eq=False)
class Experience:
    """What the trivial systems learn from: the training split, and the validation split to choose a threshold on."""

    corpus: Corpus

    @cached_property
    def train(self) -> Split:
        return self.corpus.split("train")

    @cached_property
    def valid(self) -> Split:
        return self.corpus.split("valid")

    @cached_property
    def replies(self) -> list[str]:
        """The physicians' replies of the training split, one for each turn, "" where none is recorded."""
        return [turn.physician.strip() for session in self.corpus.sessions("train") for turn in session.turns]

    @cached_property
    def phrases(self) -> Phrasebook:
        return Phrasebook(zip(self.replies, reply_entities(self.train), strict=True), self.corpus.inventory.names)

    @property
    def usual_category(self) -> int | None:
        """The most frequent category of the training split; None where it has no categories."""
        labelled = self.train.labels.category[self.train.labels.category >= 0]
        return int(np.bincount(labelled).argmax()) if len(labelled) else None


class Phrasebook:
    """The most frequent way to name exactly these entities; names in a row where nobody ever did."""

    def __init__(self, replies: Iterable[tuple[str, tuple[int, ...]]], names: Sequence[str]) -> None:
        counts: dict[frozenset[int], Counter[str]] = {}
        for text, entities in replies:
            if text:
                counts.setdefault(frozenset(entities), Counter())[text] += 1
        self._phrases = {named: _most_frequent(texts) for named, texts in counts.items()}
        self._names = names

    def say(self, entities: Iterable[int]) -> str:
        named = tuple(dict.fromkeys(entities))
        usual = self._phrases.get(frozenset(named))
        return ", ".join(self._names[entity] for entity in named) if usual is None else usual


def most_frequent_text(texts: Iterable[str]) -> str:
    """Of equals the one that comes first in the alphabet; "" where there is none."""
    return _most_frequent(Counter(text for text in texts if text))


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda text: (-counts[text], text), default="")


def reply_entities(split: Split) -> list[tuple[int, ...]]:
    """The entities each turn's reply names, in order, each once."""
    texts = split.texts
    offsets = texts.mention_offsets.tolist()
    return [
        tuple(dict.fromkeys(texts.mention_entities[offsets[2 * turn + 1] : offsets[2 * turn + 2]].tolist()))
        for turn in range(split.num_turns)
    ]


def learnt_keywords(split: Split) -> list[tuple[int, ...]]:
    """The labelled keywords of each turn; where there is no label, the entities its reply names."""
    labels, named = split.labels, reply_entities(split)
    offsets = labels.keyword_offsets.tolist()
    return [
        tuple(labels.keyword_entities[offsets[turn] : offsets[turn + 1]].tolist()) if known else named[turn]
        for turn, known in enumerate(labels.keywords_known.tolist())
    ]
