"""When a model should not be relied on, and why: limits set on validation data so that few good turns are lost.

The reasons: `unknown words` (too many words of the patient's are not in the vocabulary), `out of domain` (the text does
not look like the training dialogues, or nothing medical has been said), `flat action` (the calibrated probability of
the category is low), `no path` (keywords are named, and none is in the state, was said, or is reached by a path).
Letters: N turns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrbot.dialogue.batching import Limits, SessionBatch
from vrbot.dialogue.splits import Split
from vrbot.dialogue.vocabulary import CHARACTER_SEP, SEP, UNK
from vrbot.errors import DataError, UsageError
from vrbot.explain.confidence import Judged, fit_temperature, perceived_turns, tempered
from vrbot.explain.evidence import Evidence, KeywordEvidence
from vrbot.explain.keyword_confidence import KeywordScale, fit_keyword_scale, judged_keywords
from vrbot.files import atomic_write
from vrbot.model.contract import Perception
from vrbot.model.policy_network import PolicyNetwork
from vrbot.model.set_policy import SetPolicy
from vrbot.model.vrbot import VRBot
from vrbot.nets.bags import ngram_buckets

KEPT = 0.98
"""The share of validation turns that each limit lets through."""

SURE = 0.5
"""Below this calibrated probability the category is called flat, unless validation data ask for less."""


@dataclass(frozen=True)
class Guard:
    """A temperature for the category, the limits beyond which a reply is not relied on, and a scale for keywords."""

    temperature: float
    unknown_words: float  # the highest share of the patient's words that may be unknown
    strangeness: float  # the highest mean rarity of the patient's character n-grams
    confidence: float  # the lowest calibrated probability of the category
    keywords: KeywordScale | None = None  # where keywords were labelled

    def judge(self, model: VRBot, batch: SessionBatch, perception: Perception, evidence: Evidence) -> Judgement:
        """The confidence in the last turn's action and the reasons to abstain, in the order of their weight."""
        row = len(batch.turn) - 1
        signals = signals_of(model, batch)
        confidence = _confidence(perception, self.temperature)
        reasons = {
            "unknown words": bool(signals.unknown[row] > self.unknown_words),
            "out of domain": bool(signals.strangeness[row] > self.strangeness) or not bool(signals.medical[row]),
            "flat action": confidence is not None and float(confidence[row]) < self.confidence,
            "no path": bool(evidence.keywords) and not any(each.explained_by for each in evidence.keywords or ()),
        }
        found = tuple(reason for reason, holds in reasons.items() if holds)
        return Judgement(None if confidence is None else float(confidence[row]), found)

    def sure_of(self, keywords: tuple[KeywordEvidence, ...] | None) -> tuple[KeywordEvidence, ...] | None:
        """The same keywords, each with its calibrated probability of being right."""
        if keywords is None or self.keywords is None:
            return keywords
        sure = self.keywords.apply(np.array([each.probability for each in keywords]))
        return tuple(replace(each, confidence=value) for each, value in zip(keywords, sure.tolist(), strict=True))

    def save(self, path: Path) -> None:
        """Writes the guard as JSON."""
        with atomic_write(path) as file:
            json.dump(asdict(self), file, indent=2)
            file.write("\n")

    @classmethod
    def load(cls, path: Path) -> Guard:
        """Reads what `save` wrote."""
        try:
            content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            limits = {field.name: float(content[field.name]) for field in fields(cls) if field.name != "keywords"}
            scale = content.get("keywords")
            return cls(**limits, keywords=None if scale is None else KeywordScale.from_dict(scale))
        except (OSError, ValueError, KeyError, TypeError) as error:
            fix = "write it again with `vrbot explain RUN --audit CORPUS --guard FILE`"
            raise DataError(path, None, "guard", f"cannot be read ({error})", fix) from None


@dataclass(frozen=True)
class Judgement:
    """The calibrated probability that the category is right (None: no action), and why not to rely on the reply."""

    confidence: float | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Signals:
    """Of each row: the share of unknown words, how strange the characters are, whether anything medical was said."""

    unknown: NDArray[np.float64]
    strangeness: NDArray[np.float64]
    medical: NDArray[np.bool_]


def signals_of(model: VRBot, batch: SessionBatch) -> Signals:
    """Signals of what the patients say, row by row; `medical` looks at the whole dialogue so far."""
    inputs = batch.inputs
    by_patient = _after_last(inputs.context, SEP) & _within(inputs.context, inputs.context_lengths)
    unknown = ((inputs.context == UNK) & by_patient).sum(dim=1) / by_patient.sum(dim=1).clamp_min(1)
    characters = torch.where(_after_last(inputs.characters, CHARACTER_SEP), inputs.characters, 0)
    named = (inputs.mention_entities >= 0).any(dim=1)
    medical = torch.zeros(batch.layout.num_sessions, dtype=torch.bool)
    along = []
    for rows in named.split(batch.layout.turn_sizes):
        medical = medical[: len(rows)] | rows
        along.append(medical)
    return Signals(unknown.double().numpy(), _strangeness(model, characters), torch.cat(along).numpy())


def fit_guard(model: VRBot, split: Split, limits: Limits, num_turns: int | None = None) -> Guard:
    """Temperature and limits from a validation split."""
    log_probs, gold, unknown, strangeness = [], [], [], []
    for batch, perception in perceived_turns(model, split, limits, num_turns):
        if perception.category is None:
            raise UsageError("this model has no action to be confident of")
        known, signals = batch.targets.category_known, signals_of(model, batch)
        log_probs.append(perception.category[known])
        gold.append(batch.targets.category[known])
        unknown.append(signals.unknown)
        strangeness.append(signals.strangeness)
    judged = Judged(torch.cat(log_probs), torch.cat(gold))
    temperature = fit_temperature(judged)
    confidence = tempered(judged.log_probs.double(), temperature).exp().amax(dim=1).numpy()
    return Guard(
        temperature,
        float(np.quantile(np.concatenate(unknown), KEPT)),
        float(np.quantile(np.concatenate(strangeness), KEPT)),
        min(SURE, float(np.quantile(confidence, 1.0 - KEPT))) if len(confidence) else SURE,
        _keyword_scale(model, split, limits, num_turns),
    )


def _keyword_scale(model: VRBot, split: Split, limits: Limits, num_turns: int | None) -> KeywordScale | None:
    """None where no keyword of the split can be judged."""
    if not isinstance(model.prior_policy, PolicyNetwork | SetPolicy):
        return None
    judged = judged_keywords(model, split, limits, num_turns)
    return fit_keyword_scale(judged) if len(judged.right) else None


def _confidence(perception: Perception, temperature: float) -> Tensor | None:
    if perception.category is None:
        return None
    return tempered(perception.category.double(), temperature).exp().amax(dim=1)


def _after_last(ids: Tensor, separator: int) -> Tensor:
    """True behind the last separator of each row [N, T]."""
    return (ids == separator).flip(1).cumsum(dim=1).flip(1) == 0


def _within(ids: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(ids.shape[1]) < lengths.unsqueeze(1)


def _strangeness(model: VRBot, characters: Tensor) -> NDArray[np.float64]:
    """The mean rarity of each row's character n-grams in the training texts; 0 for a model that keeps no rarity."""
    bag = getattr(model.context_encoder, "characters", None)
    if bag is None:
        return np.zeros(len(characters))
    rarity: Tensor = bag.rarity
    buckets, exists = ngram_buckets(characters, len(rarity))
    total = (rarity[buckets] * exists).flatten(1).sum(dim=1)
    means = total / exists.flatten(1).sum(dim=1).clamp_min(1)
    found: NDArray[np.float64] = means.double().numpy()
    return found
