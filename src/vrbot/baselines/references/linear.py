"""A linear action predictor: TF-IDF of the history's character n-grams, one logistic regression for each keyword.

Letters: T turns, F features, K outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vrbot.baselines.references.answers import Experience, Phrasebook, ReferenceAnswer, learnt_keywords
from vrbot.baselines.references.histories import CharacterFeatures
from vrbot.dialogue.session import CATEGORIES
from vrbot.dialogue.splits import Split
from vrbot.nets.regressions import Floats, LogisticRegressions, fit_regressions

FEWEST_EXAMPLES = 10
"""A keyword with fewer training turns is never predicted."""

HISTORIES_PER_NGRAM = 700
"""An n-gram counts if at least one of so many histories has it (and at least two in all)."""

THRESHOLDS = np.linspace(0.02, 0.98, 97)


@dataclass(frozen=True, eq=False)
class LinearAction:
    """Names every keyword whose probability passes the threshold, in the most usual words for them."""

    features: CharacterFeatures
    regressions: LogisticRegressions
    keywords: NDArray[np.int64]  # the entity of each output; categories follow
    threshold: float
    has_categories: bool
    phrases: Phrasebook

    def answer(self, split: Split) -> list[ReferenceAnswer]:
        scores = self.regressions.scores(self.features.of(split))
        count = len(self.keywords)
        categories = scores[:, count:].argmax(axis=1).tolist() if self.has_categories else [None] * len(scores)
        answers = []
        for row, category in zip(scores[:, :count], categories, strict=True):
            passing = np.flatnonzero(row > self.threshold)
            named = tuple(self.keywords[passing[np.argsort(-row[passing], kind="stable")]].tolist())
            answers.append(ReferenceAnswer(self.phrases.say(named), None, category, named))
        return answers


def linear_action(experience: Experience) -> LinearAction:
    """Fitted on the training split, its threshold chosen on the validation split as that of every system is."""
    train, num_entities = experience.train, len(experience.corpus.inventory.names)
    least = max(2, train.num_turns // HISTORIES_PER_NGRAM)
    features = CharacterFeatures(train, len(experience.corpus.characters), minimum_count=least)
    wanted = _indicators(learnt_keywords(train), num_entities)
    keywords = np.flatnonzero(wanted.sum(axis=0) >= min(FEWEST_EXAMPLES, max(1, train.num_turns // 100)))
    categories = (
        np.eye(len(CATEGORIES), dtype=np.float32)[train.labels.category] * (train.labels.category >= 0)[:, None]
    )
    outputs = np.concatenate((wanted[:, keywords], categories), axis=1)
    regressions = fit_regressions(features.of(train), outputs)
    scores = regressions.scores(features.of(experience.valid))[:, : len(keywords)]
    threshold = best_threshold(scores, _indicators(learnt_keywords(experience.valid), num_entities)[:, keywords])
    return LinearAction(features, regressions, keywords, threshold, bool(categories.any()), experience.phrases)


def best_threshold(scores: Floats, wanted: Floats) -> float:
    """The threshold with the best mean of two micro-F1 scores, over all keywords and without the most frequent one, the
    lowest of equals."""
    if not wanted.shape[1]:
        return float(THRESHOLDS[0])
    others = np.arange(wanted.shape[1]) != wanted.sum(axis=0).argmax()

    def micro_f1(limit: float, kept: NDArray[np.bool_]) -> float:
        named, right = scores[:, kept] > limit, wanted[:, kept]
        return float(2 * right[named].sum() / max(named.sum() + right.sum(), 1))

    both = [micro_f1(limit, np.ones_like(others)) + micro_f1(limit, others) for limit in THRESHOLDS]
    return float(THRESHOLDS[int(np.argmax(both))])


def _indicators(named: Sequence[tuple[int, ...]], num_entities: int) -> Floats:
    """[T, E]: 1 where a turn names an entity."""
    found = np.zeros((len(named), num_entities), dtype=np.float32)
    for turn, entities in enumerate(named):
        found[turn, list(entities)] = 1
    return found
