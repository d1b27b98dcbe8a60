"""The gradient of one step: every shard's loss and backward pass, added up over shards and processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vrbot.dialogue.batching import Limits, SessionBatch, collate
from vrbot.dialogue.splits import Split
from vrbot.dialogue.supervision import LabelMasks
from vrbot.model.contract import BatchLoss, Moment
from vrbot.training.distributed import Workers
from vrbot.training.gradients import clear_gradient, flat_gradient, have_gradient, pairwise_sum, set_gradient


@dataclass(frozen=True)
class StepData:
    """What shards are collated from."""

    split: Split
    masks: LabelMasks | None
    limits: Limits


@dataclass(frozen=True)
class ShardReport:
    """What one shard has to say; sums over its turns."""

    loss: float
    terms: dict[str, float]
    bad_sessions: tuple[str, ...]


@dataclass(frozen=True)
class _OwnPart:
    """What one process computed of a step."""

    reports: list[ShardReport]
    used: tuple[bool, ...]  # which parameters have a gradient


def gradients_of_step(
    model: Any,
    parameters: Sequence[Tensor],
    data: StepData,
    shards: Sequence[NDArray[np.int64]],
    moment_of: Callable[[int], Moment],
    turns: int,
    workers: Workers,
) -> list[ShardReport]:
    """Leaves the gradient of the mean loss per turn in the parameters; one report for each shard that has sessions.

    Where a loss is not finite the gradient is not computed: the reports name the dialogues.
    """
    reports: list[ShardReport] = []
    flats: list[Tensor] = []
    used = tuple(False for _ in parameters)
    for shard in workers.own_shards(len(shards)):
        clear_gradient(parameters)
        if len(shards[shard]):
            batch = collate(data.split, shards[shard], data.masks, data.limits).to(workers.device)
            loss = model.loss(batch, moment_of(shard))
            reports.append(_report_of(loss, batch))
            if not reports[-1].bad_sessions:
                (loss.total / turns).backward()
        used = tuple(before or now for before, now in zip(used, have_gradient(parameters), strict=True))
        if len(shards) > 1:
            flats.append(flat_gradient(parameters))
    parts = workers.gather(_OwnPart(reports, used))
    everything = [report for part in parts for report in part.reports]
    if len(shards) > 1 and not any(report.bad_sessions for report in everything):
        present = [any(flags) for flags in zip(*(part.used for part in parts), strict=True)]
        set_gradient(parameters, workers.sum(pairwise_sum(flats)), present)
    return everything


def mean_terms(reports: Sequence[ShardReport], turns: int) -> dict[str, float]:
    """The loss and its terms per turn, added in the order of the shards."""
    names = list(dict.fromkeys(name for report in reports for name in report.terms if name != "loss"))
    means = {name: math.fsum(report.terms.get(name, 0.0) for report in reports) / turns for name in names}
    return {"loss": math.fsum(report.loss for report in reports) / turns, **means}


def _report_of(loss: BatchLoss, batch: SessionBatch) -> ShardReport:
    total = float(loss.total.detach())
    finite = torch.isfinite(loss.per_session).tolist()
    bad = tuple(name for name, good in zip(batch.session_ids, finite, strict=True) if not good)
    if not math.isfinite(total) and not bad:
        bad = batch.session_ids
    return ShardReport(total, {name: float(term) for name, term in loss.terms.items()}, bad)
