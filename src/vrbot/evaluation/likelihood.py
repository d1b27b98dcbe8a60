"""Perplexity of the physicians' own responses under a model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vrbot.evaluation.pooling import Floats, PooledScore, dense_rows
from vrbot.evaluation.turns import ScoredTurn


def perplexity_score(turns: Sequence[ScoredTurn]) -> PooledScore:
    """exp(- summed log probability / summed tokens) over turns that have both; lower is better.

    A reference of probability 0 makes it infinite, which is shown as "does not apply".
    """
    known = [turn for turn in turns if turn.log_prob is not None and turn.num_log_prob_tokens is not None]
    if any(turn.log_prob == -math.inf for turn in known):
        known = []
    counted = {id(turn) for turn in known}
    log_probs = [turn.log_prob or 0.0 if id(turn) in counted else 0.0 for turn in turns]
    tokens = [turn.num_log_prob_tokens or 0 if id(turn) in counted else 0 for turn in turns]
    return PooledScore(dense_rows([log_probs, tokens]), _perplexity_of_sums, higher_is_better=False)


def _perplexity_of_sums(sums: Floats) -> Floats:
    tokens = np.where(sums[..., 1] > 0, sums[..., 1], math.nan)
    with np.errstate(over="ignore"):  # beyond what a float can hold it is infinite
        perplexity: Floats = np.exp(-sums[..., 0] / tokens)
    return perplexity
