"""How sure a model may say it is of each keyword it names: a scale set on validation data, and how well it then fits.

Which keywords are named is decided by a threshold chosen for their F1, and how often those named are right is another
matter. A scale is an increasing function of their probabilities: it changes no order and no choice. Letters: K keywords
named, in all turns together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, xlogy
from sklearn.isotonic import IsotonicRegression

from vrbot.agent.sources import keyword_sources
from vrbot.dialogue.batching import Limits
from vrbot.dialogue.splits import Split
from vrbot.errors import UsageError
from vrbot.explain.confidence import (
    Flags,
    Floats,
    Reliability,
    RiskCoverage,
    perceived_turns,
    reliability,
    risk_coverage,
)
from vrbot.model.vrbot import VRBot

Form = Literal["temperature", "platt", "isotonic"]
NUM_FOLDS = 5
LEAST = 1e-6
"""No probability is nearer to 0 or 1 than this before its logit is taken."""


@dataclass(frozen=True, eq=False)
class JudgedKeywords:
    """Of each keyword named in a turn with labelled keywords: its probability, whether it is a labelled one, and the
    number of its dialogue; [K] each."""

    probability: Floats
    right: Flags
    dialogue: NDArray[np.int64]

    def select(self, chosen: Flags) -> JudgedKeywords:
        return JudgedKeywords(self.probability[chosen], self.right[chosen], self.dialogue[chosen])


@dataclass(frozen=True)
class KeywordScale:
    """From a keyword's probability to the probability that it is right: σ(slope · logit p + shift), or straight lines
    between `knots` and `levels` where there are any."""

    form: Form
    slope: float = 1.0
    shift: float = 0.0
    knots: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()

    def apply(self, probability: Floats) -> Floats:
        """Calibrated probabilities; a higher one never comes out lower."""
        if self.form == "isotonic":
            lines: Floats = np.interp(probability, self.knots, self.levels)
            return lines
        curve: Floats = expit(self.slope * _logit(probability) + self.shift)
        return curve

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> KeywordScale:
        """From plain values, as `evidence.plain` gives them; ValueError, KeyError or TypeError for others."""
        form: Form = content["form"]
        if form not in FITS:
            raise ValueError(f"{form!r} is not a form of scale")
        knots, levels = (tuple(map(float, content[name])) for name in ("knots", "levels"))
        if len(knots) != len(levels) or bool(knots) != (form == "isotonic"):
            raise ValueError("a scale needs a level for each knot, and knots only where it is isotonic")
        return cls(form, float(content["slope"]), float(content["shift"]), knots, levels)


@dataclass(frozen=True)
class KeywordConfidence:
    """How confidence in keywords fits on a split, before and after the scale; `precision`: the share of right ones."""

    num_keywords: int
    precision: float
    form: Form
    before: Reliability
    after: Reliability
    risk_coverage: RiskCoverage


def judged_keywords(model: VRBot, split: Split, limits: Limits, num_turns: int | None = None) -> JudgedKeywords:
    """Every keyword the model names in the turns of a split that have labelled keywords."""
    places = {name: number for number, name in enumerate(split.session_ids)}
    probability, right, dialogue = [np.zeros(0)], [np.zeros(0, bool)], [np.zeros(0, np.int64)]
    for batch, perception in perceived_turns(model, split, limits, num_turns):
        sources = keyword_sources(model, perception, torch.arange(len(batch.turn)))
        if sources is None or perception.keywords is None:
            raise UsageError("this model names no keywords to be confident of")
        named = perception.keywords  # [N, L]
        counted = (named >= 0) & batch.targets.keywords_known.unsqueeze(1)
        hits = (named.unsqueeze(2) == batch.targets.keywords.unsqueeze(1)).any(dim=2)
        sessions = torch.tensor([places[name] for name in batch.session_ids], dtype=torch.long)[batch.session]
        probability.append(sources.probability[counted].double().numpy())
        right.append(hits[counted].numpy())
        dialogue.append(sessions.unsqueeze(1).expand_as(named)[counted].numpy())
    return JudgedKeywords(np.concatenate(probability), np.concatenate(right), np.concatenate(dialogue))


def fit_keyword_scale(judged: JudgedKeywords) -> KeywordScale:
    """The form whose scales, fitted without a fifth of the dialogues, explain that fifth best; fitted on all of them.

    Of equals the simpler form; with dialogues too few to leave some out, a temperature.
    """
    if not len(judged.right):
        raise UsageError("confidence needs turns with labelled keywords: calibrate on a split that has them")
    losses = {form: _held_out_loss(judged, fit) for form, fit in FITS.items()}
    best = min(FITS, key=lambda form: losses[form])
    return FITS[best](judged)


def measure_keyword_confidence(judged: JudgedKeywords, scale: KeywordScale) -> KeywordConfidence:
    """How the confidence in named keywords fits, as it is and on the scale."""
    warm = scale.apply(judged.probability)
    return KeywordConfidence(
        num_keywords=len(judged.right),
        precision=float(judged.right.mean()) if len(judged.right) else math.nan,
        form=scale.form,
        before=reliability(judged.probability, judged.right),
        after=reliability(warm, judged.right),
        risk_coverage=risk_coverage(warm, judged.right),
    )


def _fit_temperature(judged: JudgedKeywords) -> KeywordScale:
    slope = _best_curve(judged, with_shift=False)[0]
    return KeywordScale("temperature", slope)


def _fit_platt(judged: JudgedKeywords) -> KeywordScale:
    return KeywordScale("platt", *_best_curve(judged, with_shift=True))


def _fit_isotonic(judged: JudgedKeywords) -> KeywordScale:
    """Levels keep off 0 and 1, as far as the number of keywords allows to tell."""
    least = 1.0 / (len(judged.right) + 2)
    fitted = IsotonicRegression(y_min=least, y_max=1.0 - least, out_of_bounds="clip")
    fitted.fit(judged.probability, judged.right.astype(np.float64))
    knots, levels = fitted.X_thresholds_.tolist(), fitted.y_thresholds_.tolist()
    return KeywordScale("isotonic", knots=tuple(knots), levels=tuple(levels))


FITS: Mapping[Form, Callable[[JudgedKeywords], KeywordScale]] = {
    "temperature": _fit_temperature,
    "platt": _fit_platt,
    "isotonic": _fit_isotonic,
}
"""The forms, simple ones first."""


def _best_curve(judged: JudgedKeywords, *, with_shift: bool) -> tuple[float, float]:
    """The slope (never below 0) and shift under which what happened is most probable."""
    given, right = _logit(judged.probability), judged.right.astype(np.float64)

    def cost(parameters: Floats) -> float:
        shift = parameters[1] if with_shift else 0.0
        scores = math.exp(parameters[0]) * given + shift
        return float(np.mean(np.logaddexp(0.0, scores) - right * scores))

    found = minimize(cost, np.zeros(2 if with_shift else 1), method="Nelder-Mead", options={"xatol": 1e-4})
    slope, shift = (*found.x.tolist(), 0.0)[:2]
    return math.exp(slope), shift


def _held_out_loss(judged: JudgedKeywords, fit: Callable[[JudgedKeywords], KeywordScale]) -> float:
    """Mean log loss of keywords by scales that were fitted on the other folds' dialogues."""
    total = 0.0
    for fold in range(NUM_FOLDS):
        held = judged.dialogue % NUM_FOLDS == fold
        if not held.any() or held.all():
            continue
        predicted = fit(judged.select(~held)).apply(judged.probability[held]).clip(LEAST, 1 - LEAST)
        right = judged.right[held].astype(np.float64)
        total -= float((xlogy(right, predicted) + xlogy(1 - right, 1 - predicted)).sum())
    return total / len(judged.right)


def _logit(probability: Floats) -> Floats:
    found: Floats = logit(probability.clip(LEAST, 1 - LEAST))
    return found
