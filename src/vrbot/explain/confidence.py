"""How sure a model may say it is: temperatures set on validation data, and how well confidence then fits.

A temperature divides log probabilities before they are normalised again; it never changes which action is the most
probable. Letters: N turns (or keywords), C categories.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor

from vrbot.agent.replies import batches_of
from vrbot.dialogue.batching import Limits, SessionBatch
from vrbot.dialogue.splits import Split
from vrbot.errors import UsageError
from vrbot.model.contract import Perception
from vrbot.model.vrbot import VRBot

NUM_BINS = 15
HOTTEST = 20.0
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Bin:
    """Answers of about the same confidence: how many, how confident and how often right on average."""

    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Reliability:
    """Bins of equal width over [0, 1], empty ones left out, and the expected calibration error."""

    bins: tuple[Bin, ...]
    error: float


@dataclass(frozen=True)
class RiskCoverage:
    """If only the most confident share of answers (`coverage`) is given, how many of them are wrong (`risk`).

    `area` is the mean risk over all coverages; one that knew right from wrong would have `best_area`.
    """

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    area: float
    best_area: float

    def at(self, share: float) -> float:
        """The risk of the smallest coverage that is at least this share; nan where there are no answers."""
        return next(
            (risk for coverage, risk in zip(self.coverage, self.risk, strict=True) if coverage >= share), math.nan
        )


@dataclass(frozen=True)
class Confidence:
    """How confidence fits on a split, before and after the temperature."""

    num_turns: int
    accuracy: float
    temperature: float
    before: Reliability
    after: Reliability
    risk_coverage: RiskCoverage


@dataclass(frozen=True, eq=False)
class Judged:
    """Log probabilities of the category [N, C] and the labelled category [N] of the turns that have one."""

    log_probs: Tensor
    gold: Tensor


def tempered(log_probs: Tensor, temperature: float) -> Tensor:
    """The distribution at another temperature; -inf stays -inf."""
    return (log_probs / temperature).log_softmax(dim=-1)


def fit_temperature(judged: Judged) -> float:
    """The temperature under which the labelled categories are most probable."""
    if not len(judged.gold):
        raise UsageError("confidence needs turns with a labelled category: calibrate on a split that has them")
    log_probs = judged.log_probs.double()

    def cost(log_temperature: float) -> float:
        chosen = tempered(log_probs, math.exp(log_temperature)).gather(1, judged.gold.unsqueeze(1))
        return -float(chosen.clamp_min(-1e3).mean())

    bounds = (-math.log(HOTTEST), math.log(HOTTEST))
    return math.exp(float(minimize_scalar(cost, bounds=bounds, method="bounded").x))


def reliability(confidence: Floats, right: Flags, num_bins: int = NUM_BINS) -> Reliability:
    """How often answers of a confidence are right; the error is the mean gap, weighted by how many they are."""
    place = np.minimum((confidence * num_bins).astype(np.int64), num_bins - 1)
    bins, error = [], 0.0
    for number in range(num_bins):
        inside = place == number
        count = int(inside.sum())
        if count:
            found = Bin(count, float(confidence[inside].mean()), float(right[inside].mean()))
            bins.append(found)
            error += count * abs(found.confidence - found.accuracy)
    return Reliability(tuple(bins), error / max(len(confidence), 1))


def risk_coverage(confidence: Floats, right: Flags) -> RiskCoverage:
    """The most confident answers first; answers of equal confidence are given together."""
    order = np.argsort(-confidence, kind="stable")
    wrong, given = ~right[order], np.arange(1, len(order) + 1)
    last_of_equals = np.append(np.diff(confidence[order]) != 0, True)[: len(order)]
    risk = (np.cumsum(wrong) / given)[last_of_equals]
    sizes = np.diff(given[last_of_equals], prepend=0)
    best = np.cumsum(np.sort(wrong)) / given
    count = max(len(order), 1)
    return RiskCoverage(
        tuple((given[last_of_equals] / count).tolist()),
        tuple(risk.tolist()),
        float((risk * sizes).sum() / count),
        float(best.sum() / count),
    )


def measure_confidence(judged: Judged, temperature: float) -> Confidence:
    """How the confidence in the most probable category fits, with and without the temperature."""
    cold, warm = (_confidence(judged.log_probs, each) for each in (1.0, temperature))
    right = (judged.log_probs.argmax(dim=1) == judged.gold).numpy()
    return Confidence(
        num_turns=len(right),
        accuracy=float(right.mean()) if len(right) else math.nan,
        temperature=temperature,
        before=reliability(cold, right),
        after=reliability(warm, right),
        risk_coverage=risk_coverage(warm, right),
    )


def _confidence(log_probs: Tensor, temperature: float) -> Floats:
    found: Floats = tempered(log_probs.double(), temperature).exp().amax(dim=1).numpy()
    return found


@torch.no_grad()
def perceived_turns(
    model: VRBot, split: Split, limits: Limits, num_turns: int | None = None
) -> Iterator[tuple[SessionBatch, Perception]]:
    """What the model makes of the turns of a split, batch by batch, until there are `num_turns`."""
    seen = 0
    model.eval()
    for batch in batches_of(split, limits):
        yield batch, model.perceive(batch.inputs, batch.layout)
        seen += len(batch.turn)
        if num_turns is not None and seen >= num_turns:
            return


def judged_turns(model: VRBot, split: Split, limits: Limits, num_turns: int | None = None) -> Judged:
    """The model's categories beside the labelled ones, on the turns of a split that have one."""
    log_probs, gold = [], []
    for batch, perception in perceived_turns(model, split, limits, num_turns):
        if perception.category is None:
            raise UsageError("this model has no action to be confident of")
        known = batch.targets.category_known
        log_probs.append(perception.category[known])
        gold.append(batch.targets.category[known])
    return Judged(torch.cat(log_probs), torch.cat(gold))
