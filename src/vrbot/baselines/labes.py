"""LABES: a discrete state span as the only latent, sampled from q and learnt through straight-through gradients.

Networks, sizes and biases are those of VRBot without an action, so a comparison measures the objective: one bound with
the divergence weighted down, p evaluated on q's samples, q's sample carried to the next turn in training and p's best
state in use (which is how VRBot tracks). Letters: N rows (turns), L span positions, E entities.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vrbot.baselines.span_chain import loss_of_turns
from vrbot.config import Config, LabesSettings
from vrbot.dialogue.batching import SessionBatch
from vrbot.model.build import Assembly, build_vrbot
from vrbot.model.contract import BatchLoss, Moment
from vrbot.model.keyword_scores import SpanScores
from vrbot.model.spans import Choose, Clamp, Span, one_hot_choice, span_of
from vrbot.model.vrbot import VRBot
from vrbot.model.world import World
from vrbot.objective.passes import StatePass
from vrbot.probability.category import masked_log_softmax, sample
from vrbot.probability.span import SpanDistribution


def sampler(settings: LabesSettings, generator: torch.Generator) -> Choose:
    """Log probabilities [N, E+1] -> one drawn symbol as exact one-hot weights; backward is that of the probabilities.

    With `top_k` the draw is among the most probable k; without `straight_through` it sends no gradient back.
    """

    def choose(log_probs: Tensor) -> Tensor:
        kept = most_probable(log_probs, settings.top_k)
        drawn = torch.nn.functional.one_hot(sample(kept, generator), kept.shape[-1]).to(kept.dtype)
        probabilities = kept.exp()
        return drawn + (probabilities - probabilities.detach()) if settings.straight_through else drawn

    return choose


def most_probable(log_probs: Tensor, count: int) -> Tensor:
    """The distribution among its `count` most probable symbols, normalised again; 0 keeps all."""
    if count == 0 or count >= log_probs.shape[-1]:
        return log_probs
    best = log_probs.detach().topk(count, dim=-1).indices
    kept = torch.zeros_like(log_probs, dtype=torch.bool).scatter_(-1, best, True)
    return masked_log_softmax(log_probs, kept & (log_probs.detach() > -math.inf))


class LabesObjective:
    """Unlabelled turns: -log p(R | S) + w KL(q || p), S drawn from q; labelled: -log p(R | S) - log p(S) - log q(S)."""

    def __init__(self, settings: LabesSettings) -> None:
        self.settings = settings

    def __call__(self, model: VRBot, batch: SessionBatch, moment: Moment) -> BatchLoss:
        targets = batch.targets
        known = Clamp(targets.state_known, span_of(targets.state, model.state_length, model.table.num_entities))
        states, reply = self._pass(model, batch, known, sampler(self.settings, moment.generator))
        divergence = SpanDistribution(states.posterior).kl(SpanDistribution(states.prior))
        labels = SpanScores(states.prior).log_prob(known.span) + SpanScores(states.posterior).log_prob(known.span)
        return loss_of_turns(
            batch,
            gains={"reconstruction": reply, "labels": labels.masked_fill(~known.rows, 0.0)},
            costs={"kl_state": self.settings.kl_weight * divergence.masked_fill(known.rows, 0.0)},
        )

    def _pass(self, model: VRBot, batch: SessionBatch, known: Clamp, choose: Choose) -> tuple[StatePass, Tensor]:
        """S of every turn with both distributions along it, and log p(R | S) [N]."""
        heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(batch.targets)
        previous, sizes = model.first_state(batch.layout.num_sessions, heard.words.device), batch.layout.turn_sizes
        rows = (heard.context.summary.split(sizes), heard.mentions.split(sizes), response.encoded.summary.split(sizes))
        passes: list[StatePass] = []
        for summary, mentioned, said, clamp in zip(*rows, known.split(sizes), strict=True):
            previous = Span(previous.weights[: len(summary)].detach())  # no gradient passes from turn to turn
            read, mentions = model.recall(previous, mentioned, heard.table)
            evidence = (summary, read.summary)
            drawn = model.inference_tracker.write(  # type: ignore[operator]
                (*evidence, said), model.state_length, mentions, heard.table, choose, clamp
            )
            prior = model.prior_tracker.score_along(evidence, drawn.span, mentions, heard.table)  # type: ignore[operator]
            passes.append(StatePass(drawn.span, previous, drawn.log_probs, prior))
            previous = drawn.span
        states = _together(passes)
        no_action = model.prior_policy.write(  # type: ignore[operator]
            model.policy_evidence(heard, states.state), model.action_length, one_hot_choice, one_hot_choice
        ).action
        given = model.conditions(heard, states.state, no_action)
        categories = model.category_vectors(no_action)
        targets = batch.targets
        return states, model.generator.log_prob(given, categories, targets.response, targets.response_lengths)


def _together(passes: list[StatePass]) -> StatePass:
    """The rows of all turns."""
    return StatePass(
        Span(torch.cat([each.state.weights for each in passes])),
        Span(torch.cat([each.previous.weights for each in passes])),
        torch.cat([each.posterior for each in passes]),
        torch.cat([each.prior for each in passes]),
    )


def build_labes(config: Config, world: World) -> VRBot:
    """VRBot's networks without an action, under LABES's objective."""
    return build_vrbot(config, world, Assembly(action=False), LabesObjective(config.labes))
