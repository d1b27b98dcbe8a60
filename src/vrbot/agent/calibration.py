"""How readily the prior policy says NONE, set on validation data: the offset with the best keyword micro-F1.

The most probable keyword is almost always NONE; what serves best is found by looking at the keywords the responses
of the validation split name. Test data and labels play no part.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vrbot.agent.replies import batches_of
from vrbot.dialogue.batching import Limits, SessionBatch
from vrbot.dialogue.splits import Split
from vrbot.model.spans import one_hot_choice
from vrbot.model.vrbot import VRBot

OFFSETS = tuple(-0.4 * step for step in range(13))
"""From 0 (the network's own word) to -4.8; keyword F1 is flat between neighbours."""


@torch.no_grad()
def calibrate_none(model: VRBot, split: Split, limits: Limits) -> float:
    """Sets the model's `none_offset` and gives the keyword micro-F1 (0-100) it reaches on the split."""
    hits, named, gold = torch.zeros(len(OFFSETS)), torch.zeros(len(OFFSETS)), 0
    for batch in batches_of(split, limits):
        heard = model.hear(batch.inputs, batch.layout)
        evidence = model.policy_evidence(heard, model.track(heard, batch.layout))
        gold += int((batch.targets.response_mentions >= 0).sum())
        for i, offset in enumerate(OFFSETS):
            model.none_offset.fill_(offset)
            written = model.prior_policy.write(evidence, model.action_length, one_hot_choice, model.decide)  # type: ignore[operator]
            span = written.action.keywords
            hits[i] += _hits(torch.where(span.mask, span.ids, -1), batch)
            named[i] += int(span.mask.sum())
    f1 = 200 * hits / (named + gold).clamp_min(1)
    best = int(f1.argmax())
    model.none_offset.fill_(OFFSETS[best])
    return float(f1[best])


def _hits(keywords: Tensor, batch: SessionBatch) -> int:
    said = batch.targets.response_mentions
    return int(((keywords.unsqueeze(2) == said.unsqueeze(1)) & (keywords >= 0).unsqueeze(2)).sum())
