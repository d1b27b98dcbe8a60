"""When a model should not be relied on, and why: limits set on validation data so that few good turns are lost.

The reasons: `unknown words` (too many words of the patient's are not in the vocabulary), `out of domain` (the text does
not look like the training dialogues; where nothing medical has been said it must look more like them than usual),
`flat action` (the calibrated probability of the category is low), `no path` (keywords are named that the graph could
lead to, and none is in the state, was said, or is reached by a path). Letters: N turns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
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
from vrbot.model.subgraphs import SubgraphEncoder
from vrbot.model.vrbot import VRBot
from vrbot.nets.bags import ngram_buckets

KEPT = 0.98
"""The share of validation turns that each limit lets through."""

FAMILIAR = 0.5
"""Who names nothing medical must sound as familiar as this share of the first utterances in the validation split."""

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
    strangeness_unnamed: float = 0.0  # the rarity that is too high already where nothing medical has been said

    def judge(self, model: VRBot, batch: SessionBatch, perception: Perception, evidence: Evidence) -> Judgement:
        """The confidence in the last turn's action and the reasons to abstain, in the order of their weight."""
        unexplained = bool(evidence.keywords) and not any(each.explained_by for each in evidence.keywords or ())
        if unexplained and perception.keywords is not None:
            unexplained = _may_be_reached(model, _entities(perception.keywords[-1]))
        signals, confidence = signals_of(model, batch), _confidence(perception, self.temperature)
        return self._judgement(signals, confidence, len(batch.turn) - 1, unexplained)

    def judge_all(self, model: VRBot, batch: SessionBatch, perception: Perception) -> list[Judgement]:
        """What `judge` says of every row, each as the last turn of its dialogue so far."""
        unexplained = unexplained_rows(model, batch, perception).tolist()
        signals, confidence = signals_of(model, batch), _confidence(perception, self.temperature)
        return [self._judgement(signals, confidence, row, found) for row, found in enumerate(unexplained)]

    def _judgement(self, signals: Signals, confidence: Tensor | None, row: int, unexplained: bool) -> Judgement:
        sure = None if confidence is None else float(confidence[row])
        strange, medical = float(signals.strangeness[row]), bool(signals.medical[row])
        reasons = {
            "unknown words": bool(signals.unknown[row] > self.unknown_words),
            "out of domain": strange > self.strangeness or (not medical and strange >= self.strangeness_unnamed),
            "flat action": sure is not None and sure < self.confidence,
            "no path": unexplained,
        }
        return Judgement(sure, tuple(reason for reason, holds in reasons.items() if holds))

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
            limits = {field.name: float(content[field.name]) for field in fields(cls) if field.default is MISSING}
            scale, unnamed = content.get("keywords"), float(content.get("strangeness_unnamed", 0.0))
            return cls(
                **limits, keywords=None if scale is None else KeywordScale.from_dict(scale), strangeness_unnamed=unnamed
            )
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


@torch.no_grad()
def unexplained_rows(model: VRBot, batch: SessionBatch, perception: Perception) -> NDArray[np.bool_]:
    """Rows that name keywords of which none is in the state, was said, or is reached by a path [N].

    One of them must be an entity that some edge leads to: where there can be no path, its absence says nothing. What
    was said is what the model read: mentions beyond the longest context do not count.
    """
    unexplained = np.zeros(len(batch.turn), dtype=bool)
    if perception.keywords is None or perception.state is None:
        return unexplained
    said = [frozenset[int]()] * batch.layout.num_sessions
    states = [_entities(row) for row in perception.state]
    keywords = [_entities(row) for row in perception.keywords]
    row = 0
    for heard in batch.inputs.mention_entities.split(batch.layout.turn_sizes):
        for session, mentions in enumerate(heard):
            said[session] |= _entities(mentions)
            unexplained[row] = not keywords[row] & (states[row] | said[session]) and _may_be_reached(
                model, keywords[row]
            )
            row += 1
    encoder = model.subgraph_encoder
    if isinstance(encoder, SubgraphEncoder):
        rows = np.flatnonzero(unexplained).tolist()
        seeds = [tuple(sorted(states[row])) for row in rows]
        for row, graph in zip(rows, encoder.retriever.retrieve_many(seeds), strict=True):
            unexplained[row] = keywords[row].isdisjoint(graph.nodes[graph.hops > 0].tolist())
    return unexplained


def fit_guard(model: VRBot, split: Split, limits: Limits, num_turns: int | None = None) -> Guard:
    """Temperature and limits from a validation split."""
    log_probs, gold, unknown, strangeness, first = [], [], [], [], []
    for batch, perception in perceived_turns(model, split, limits, num_turns):
        if perception.category is None:
            raise UsageError("this model has no action to be confident of")
        known, signals = batch.targets.category_known, signals_of(model, batch)
        log_probs.append(perception.category[known])
        gold.append(batch.targets.category[known])
        unknown.append(signals.unknown)
        strangeness.append(signals.strangeness)
        first.append(signals.strangeness[batch.turn.numpy() == 0])
    judged = Judged(torch.cat(log_probs), torch.cat(gold))
    temperature = fit_temperature(judged)
    confidence = tempered(judged.log_probs.double(), temperature).exp().amax(dim=1).numpy()
    return Guard(
        temperature,
        float(np.quantile(np.concatenate(unknown), KEPT)),
        float(np.quantile(np.concatenate(strangeness), KEPT)),
        min(SURE, float(np.quantile(confidence, 1.0 - KEPT))) if len(confidence) else SURE,
        _keyword_scale(model, split, limits, num_turns),
        float(np.quantile(np.concatenate(first), FAMILIAR)),
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


def _may_be_reached(model: VRBot, entities: frozenset[int]) -> bool:
    """Whether an edge of the graph leads to one of these entities."""
    encoder = model.subgraph_encoder
    return isinstance(encoder, SubgraphEncoder) and bool(np.isin(encoder.retriever.graph.targets, [*entities]).any())


def _entities(ids: Tensor) -> frozenset[int]:
    return frozenset(ids[ids >= 0].tolist())


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
    exists = exists & (characters > 0).repeat(1, 3)  # none begins in the gap that was left by the other speaker
    total = (rarity[buckets] * exists).flatten(1).sum(dim=1)
    means = total / exists.flatten(1).sum(dim=1).clamp_min(1)
    found: NDArray[np.float64] = means.double().numpy()
    return found
