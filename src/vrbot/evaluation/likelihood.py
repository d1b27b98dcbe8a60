"""Perplexity of the physicians' own responses under a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vrbot.dialogue.batching import SessionBatch
from vrbot.evaluation.pooling import Floats, PooledScore, dense_rows
from vrbot.evaluation.turns import ScoredTurn
from vrbot.model.contract import Imagines, Perception

DRAWS = 8
"""Of latent variables, for each turn."""


def response_log_prob(model: Any, batch: SessionBatch, perception: Perception) -> Tensor:
    """Log probability of the responses of a batch [N], in nats, after what was perceived in it.

    A model with latent variables answers for all they could have been, not for the likeliest alone: its probability is
    the mean over draws from its prior networks, whose logarithm is a bound from below in expectation.
    """
    targets = batch.targets
    if not isinstance(model, Imagines):
        found: Tensor = model.reply_log_prob(perception, targets.response, targets.response_lengths)
        return found
    imagined = model.imagine(batch.inputs, batch.layout, DRAWS, torch.Generator().manual_seed(0))
    each = [model.reply_log_prob(seen, targets.response, targets.response_lengths) for seen in imagined]
    return torch.stack(each).logsumexp(dim=0) - math.log(len(each))


def perplexity_score(turns: Sequence[ScoredTurn]) -> PooledScore:
    """exp(- summed log probability / summed tokens) over turns that have both; lower is better.

    A reference of probability 0 makes it infinite, which is shown as "does not apply".
    """
    columns = [_log_prob_and_tokens(turn) for turn in turns]
    rows = dense_rows([[log_prob for log_prob, _ in columns], [num_tokens for _, num_tokens in columns]])
    return PooledScore(rows, _perplexity_of_sums, higher_is_better=False)


def _log_prob_and_tokens(turn: ScoredTurn) -> tuple[float, int]:
    if turn.log_prob is None or turn.num_log_prob_tokens is None:
        return 0.0, 0
    return turn.log_prob, turn.num_log_prob_tokens


def _perplexity_of_sums(sums: Floats) -> Floats:
    tokens = np.where(sums[..., 1] > 0, sums[..., 1], math.nan)
    with np.errstate(over="ignore"):  # beyond what a float can hold it is infinite
        perplexity: Floats = np.exp(-sums[..., 0] / tokens)
    return perplexity
