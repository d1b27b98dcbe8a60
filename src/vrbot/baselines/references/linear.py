"""A linear action predictor: TF-IDF of the history's character n-grams, one logistic regression for each keyword.

All regressions are fitted at once, by L-BFGS on the sparse matrix. Letters: T turns, F features, K outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from vrbot.baselines.references.answers import Experience, Phrasebook, ReferenceAnswer, learnt_keywords
from vrbot.baselines.references.histories import CharacterFeatures, Counts
from vrbot.dialogue.session import CATEGORIES
from vrbot.dialogue.splits import Split

Floats = NDArray[np.float32]
LossAndGradient = Callable[[Floats], tuple[float, Floats]]

FEWEST_EXAMPLES = 10
"""A keyword with fewer training turns is never predicted."""

HISTORIES_PER_NGRAM = 700
"""An n-gram counts if at least one of so many histories has it (and at least two in all)."""

RIDGE = 0.5
STEPS = 40
REMEMBERED_STEPS = 5
SMALLEST_GAIN = 1e-4
THRESHOLDS = np.linspace(0.02, 0.98, 97)


@dataclass(frozen=True, eq=False)
class LogisticRegressions:
    """K independent outputs: probabilities expit(X W + b)."""

    weights: Floats  # [F + 1, K], the last row is b

    def scores(self, features: Counts) -> Floats:
        """Probabilities [T, K]."""
        found: Floats = expit(features @ self.weights[:-1] + self.weights[-1])
        return found


def fit_regressions(
    features: Counts, wanted: Floats, *, ridge: float = RIDGE, steps: int = STEPS
) -> LogisticRegressions:
    """Maximum likelihood with a penalty of ridge / 2 times the squared weights (the biases go free).

    `wanted` [T, K] is 1 where the output applies.
    """
    transposed = sparse.csr_array(features.T)

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = features @ weights[:-1] + weights[-1]
        error = expit(logits) - wanted
        gradient = np.concatenate((transposed @ error + ridge * weights[:-1], error.sum(axis=0, keepdims=True)))
        likelihood = np.logaddexp(0, logits).sum(dtype=np.float64) - (wanted * logits).sum(dtype=np.float64)
        return float(likelihood + 0.5 * ridge * np.square(weights[:-1]).sum(dtype=np.float64)), gradient

    start = np.zeros((features.shape[1] + 1, wanted.shape[1]), dtype=np.float32)
    share = (wanted.sum(axis=0) + 0.5) / (len(wanted) + 1)
    start[-1] = np.log(share / (1 - share))
    return LogisticRegressions(minimise(loss, start, first_step=20 / max(len(wanted), 1), steps=steps))


def minimise(loss: LossAndGradient, start: Floats, *, first_step: float, steps: int) -> Floats:
    """L-BFGS with halving of the step until the loss falls."""
    weights, (value, gradient) = start, loss(start)
    memory: list[tuple[Floats, Floats]] = []
    for _ in range(steps):
        direction = _descent(gradient, memory, first_step)
        moved = _step(loss, weights, value, direction)
        if moved is None:
            break
        new_weights, new_value, new_gradient = moved
        change = (new_weights - weights, new_gradient - gradient)
        if np.vdot(*change) > 0:
            memory = [*memory, change][-REMEMBERED_STEPS:]
        gain, weights, value, gradient = value - new_value, new_weights, new_value, new_gradient
        if gain < SMALLEST_GAIN * abs(value):
            break
    return weights


def _descent(gradient: Floats, memory: Sequence[tuple[Floats, Floats]], first_step: float) -> Floats:
    """The two-loop recursion: the gradient times what is known of the inverse curvature."""
    direction, shares = gradient.copy(), []
    for moved, bent in reversed(memory):
        shares.append(np.vdot(moved, direction) / np.vdot(moved, bent))
        direction -= shares[-1] * bent
    if memory:
        moved, bent = memory[-1]
        direction *= np.vdot(moved, bent) / np.vdot(bent, bent)
    else:
        direction *= first_step
    for (moved, bent), share in zip(memory, reversed(shares), strict=True):
        direction += moved * (share - np.vdot(bent, direction) / np.vdot(moved, bent))
    return direction


def _step(
    loss: LossAndGradient, weights: Floats, value: float, direction: Floats
) -> tuple[Floats, float, Floats] | None:
    for halvings in range(20):
        new_weights = weights - direction * np.float32(0.5**halvings)
        new_value, new_gradient = loss(new_weights)
        if new_value < value:
            return new_weights, new_value, new_gradient
    return None


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
    """Fitted on the training split, the threshold with the best keyword micro-F1 on the validation split."""
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
    """The threshold with the best micro-F1, the lowest of equals."""
    f1 = [2 * wanted[scores > limit].sum() / max((scores > limit).sum() + wanted.sum(), 1) for limit in THRESHOLDS]
    return float(THRESHOLDS[int(np.argmax(f1))])


def _indicators(named: Sequence[tuple[int, ...]], num_entities: int) -> Floats:
    """[T, E]: 1 where a turn names an entity."""
    found = np.zeros((len(named), num_entities), dtype=np.float32)
    for turn, entities in enumerate(named):
        found[turn, list(entities)] = 1
    return found
