"""How readily a policy names keywords, set on validation data: the offset or threshold with the best keyword scores.

The most probable keyword is almost always NONE; what serves best is found by looking at the keywords the responses
of the validation split name. Test data and labels play no part. Letters: N rows (turns), K places, E entities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from vrbot.agent.replies import batches_of
from vrbot.baselines.hred_bert import HredBert
from vrbot.baselines.span_chain import ChainedReplies
from vrbot.dialogue.batching import Limits
from vrbot.dialogue.splits import Split

OFFSETS = tuple(-0.3 * step for step in range(17))
"""From 0 (the network's own word) to -4.8; keyword F1 is flat between neighbours."""

NEIGHBOURS = torch.tensor([0.25, 0.5, 0.25])
"""An offset counts by its own score and by those beside it, so that chance decides less (decision 0025)."""


def calibrate(model: Any, split: Split, limits: Limits) -> None:
    """Sets what the model decides its keywords by; nothing, where it has nothing to set."""
    if isinstance(model, HredBert):
        calibrate_threshold(model, split, limits)
    elif isinstance(model, ChainedReplies):
        calibrate_chain(model, split, limits)
    elif isinstance(getattr(model, "none_offset", None), Tensor):
        calibrate_none(model, split, limits)


@torch.no_grad()
def calibrate_none(model: Any, split: Split, limits: Limits) -> float:
    """Sets the `none_offset` of a VRBot (or its like) and gives the keyword micro-F1 (0-100) reached on the split."""
    tally = _Tally.of(model.table.num_entities)
    for batch in batches_of(split, limits):
        heard = model.hear(batch.inputs, batch.layout)
        evidence = model.policy_evidence(heard, model.track(heard, batch.layout))
        said = tally.count_said(batch.targets.response_mentions)
        for i, offset in enumerate(OFFSETS):
            model.none_offset.fill_(offset)
            span = model.prior_policy.decide(evidence, model.action_length, model.decide).action.keywords
            tally.count_named(i, torch.where(span.mask, span.ids, -1), said)
    best, f1 = tally.best()
    model.none_offset.fill_(OFFSETS[best])
    return f1


@torch.no_grad()
def calibrate_chain(model: ChainedReplies, split: Split, limits: Limits) -> float:
    """Sets the `none_offset` of chained decoders and gives the keyword micro-F1 (0-100) it reaches on the split."""
    tally = _Tally.of(model.table.num_entities)
    for batch in batches_of(split, limits):
        name_keywords = model.keyword_namer(batch.inputs, batch.layout)
        said = tally.count_said(batch.targets.response_mentions)
        for i, offset in enumerate(OFFSETS):
            model.none_offset.fill_(offset)
            tally.count_named(i, name_keywords(), said)
    best, f1 = tally.best()
    model.none_offset.fill_(OFFSETS[best])
    return f1


@torch.no_grad()
def calibrate_threshold(model: HredBert, split: Split, limits: Limits) -> float:
    """Sets the model's `threshold` (a logit) and gives the keyword micro-F1 (0-100) it reaches on the split."""
    tally: _Tally | None = None
    for batch in batches_of(split, limits):
        logits = model.predictor(batch.inputs, batch.layout)
        tally = tally or _Tally.of(logits.shape[-1])
        said = tally.count_said(batch.targets.response_mentions)
        for i, threshold in enumerate(OFFSETS):
            model.threshold.fill_(threshold)
            tally.count_named(i, model.choose(logits), said)
    best, f1 = tally.best() if tally else (0, 0.0)
    model.threshold.fill_(OFFSETS[best])
    return f1


@dataclass(frozen=True, eq=False)
class _Tally:
    """How often each entity was said, named and rightly named, under every offset."""

    said: Tensor  # [E]
    named: Tensor  # [offsets, E]
    hits: Tensor  # [offsets, E]

    @classmethod
    def of(cls, num_entities: int) -> _Tally:
        return cls(torch.zeros(num_entities), *torch.zeros(2, len(OFFSETS), num_entities))

    def count_said(self, entities: Tensor) -> Tensor:
        """Ids [N, K], -1 after the end -> which entities each row holds [N, E]."""
        said = self._held(entities)
        self.said.add_(said.sum(dim=0))
        return said

    def count_named(self, offset: int, entities: Tensor, said: Tensor) -> None:
        named = self._held(entities)
        self.named[offset] += named.sum(dim=0)
        self.hits[offset] += (named & said).sum(dim=0)

    def best(self) -> tuple[int, float]:
        """The offset with the best mean of two micro-F1 scores, over all keywords and without the most frequent one
        (which else decides alone how many others are named), smoothed; and its score over all."""
        others = torch.arange(len(self.said)) != self.said.argmax()
        overall, rest = (self._f1(kept) for kept in (torch.ones_like(others), others))
        both = (overall + rest).view(1, -1)
        around = torch.nn.functional.pad(both, (1, 1), mode="replicate").squeeze(0).unfold(0, 3, 1)  # [offsets, 3]
        best = int((around @ NEIGHBOURS).argmax())
        return best, float(overall[best])

    def _f1(self, kept: Tensor) -> Tensor:
        all_named = self.named[:, kept].sum(dim=1) + self.said[kept].sum()
        return 200 * self.hits[:, kept].sum(dim=1) / all_named.clamp_min(1)

    def _held(self, entities: Tensor) -> Tensor:
        held = torch.zeros(len(entities), len(self.said) + 1, dtype=torch.bool)
        return held.scatter(1, torch.where(entities >= 0, entities, len(self.said)), value=True)[:, :-1]
