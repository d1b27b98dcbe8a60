"""How probable physicians' own responses and actions are under a model."""

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
from vrbot.model.policy_network import Action
from vrbot.model.vrbot import VRBot
from vrbot.objective.labels import known_latents

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


@torch.no_grad()
def action_log_probs(model: VRBot, batch: SessionBatch) -> list[float | None]:
    """Log probability of each row's labelled category and keywords, in nats, for the prior policy beside the state it
    tracks; None where either label is missing.

    No offset and no threshold is in it: it judges what the policy believes, not what is made of that.
    """
    num_categories = model.categories.num_embeddings
    preference: Tensor = getattr(model.objective, "preference", torch.zeros(model.table.num_entities))
    labels = known_latents(batch.targets, model.state_length, model.action_length, preference, num_categories)
    heard = model.hear(batch.inputs, batch.layout)
    evidence = model.policy_evidence(heard, model.track(heard, batch.layout))  # not what the generator is shown of it
    action = Action(labels.category, labels.keywords)
    scores = model.prior_policy.score_along(evidence, action)  # type: ignore[operator]
    both = (scores.category * labels.category).sum(dim=1) + scores.keywords.log_prob(labels.keywords)
    known = labels.category_known & labels.keywords_known
    return [value if is_known else None for value, is_known in zip(both.tolist(), known.tolist(), strict=True)]


def action_nats_score(turns: Sequence[ScoredTurn]) -> PooledScore:
    """Mean of - log probability of the labelled action over turns that have one; lower is better."""
    found = [turn.action_log_prob for turn in turns]
    rows = dense_rows([[-(value or 0.0) for value in found], [value is not None for value in found]])
    return PooledScore(rows, _mean_of_sums, higher_is_better=False)


def perplexity_score(turns: Sequence[ScoredTurn]) -> PooledScore:
    """exp(- summed log probability / summed tokens) over turns that have both; lower is better.

    A reference of probability 0 makes it infinite, which is shown as "does not apply".
    """
    columns = [_log_prob_and_tokens(turn) for turn in turns]
    rows = dense_rows([[log_prob for log_prob, _ in columns], [num_tokens for _, num_tokens in columns]])
    return PooledScore(rows, _perplexity_of_sums, higher_is_better=False)


def _mean_of_sums(sums: Floats) -> Floats:
    mean: Floats = sums[..., 0] / np.where(sums[..., 1] > 0, sums[..., 1], math.nan)
    return mean


def _log_prob_and_tokens(turn: ScoredTurn) -> tuple[float, int]:
    if turn.log_prob is None or turn.num_log_prob_tokens is None:
        return 0.0, 0
    return turn.log_prob, turn.num_log_prob_tokens


def _perplexity_of_sums(sums: Floats) -> Floats:
    tokens = np.where(sums[..., 1] > 0, sums[..., 1], math.nan)
    with np.errstate(over="ignore"):  # beyond what a float can hold it is infinite
        perplexity: Floats = np.exp(-sums[..., 0] / tokens)
    return perplexity
