"""The objective of VRBot: two-stage collapsed inference with labels where there are any (section 3.6).

One pass of the inference tracker along the turns draws S^q; known states are clamped inside it, so that the label
terms are read off the same distributions. Then every turn of the batch is independent of the others.
Letters: N rows (turns), B sessions, L span positions, E entities.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.config import ObjectiveSettings
from vrbot.dialogue.batching import SessionBatch, TurnLayout
from vrbot.model.contract import BatchLoss, Moment
from vrbot.model.policy_network import Action, ActionScores
from vrbot.model.spans import Choose, Span
from vrbot.model.vrbot import Heard, HeardResponse, VRBot
from vrbot.objective.bounds import action_bound, joint_bound, state_bound
from vrbot.objective.labels import KnownLatents, known_latents
from vrbot.probability.annealing import Exponential, free_bits
from vrbot.probability.category import chosen_log_prob, divergence, relaxed_sample
from vrbot.probability.span import SpanDistribution


@dataclass(frozen=True, eq=False)
class StatePass:
    """S^q of every turn, the state before it, and both trackers' log probabilities along S^q [N, L, E+1]."""

    state: Span
    previous: Span
    posterior: Tensor
    prior: Tensor


@dataclass(frozen=True, eq=False)
class ActionPass:
    """A^q of every turn, and both policies' log probabilities along it."""

    action: Action
    posterior: ActionScores
    prior: ActionScores


class VariationalObjective:
    """L_s in the first stage, L_s + L_a in the second (or L_joint throughout), and the label terms."""

    def __init__(self, settings: ObjectiveSettings, preference: Tensor) -> None:
        """`preference` [E] is the order in which the keywords of a label are named."""
        self.settings, self.preference = settings, preference
        self.temperature = Exponential(
            settings.temperature_start, settings.temperature_end, settings.temperature_steps
        )

    def __call__(self, model: VRBot, batch: SessionBatch, moment: Moment) -> BatchLoss:
        heard = model.hear(batch.inputs, batch.layout)
        response = model.hear_response(batch.targets)
        known = known_latents(
            batch.targets,
            model.state_length,
            model.action_length,
            self.preference.to(heard.table.device),
            model.categories.num_embeddings,
        )
        choose = self._chooser(moment)
        states = self._state_pass(model, heard, response, known, batch.layout, choose)
        terms = self._terms(model, batch, heard, response, known, states, choose, moment)
        return self._total(batch, terms, known)

    def _chooser(self, moment: Moment) -> Choose:
        temperature = self.temperature.value(moment.step)
        hard = self.settings.straight_through

        def choose(log_probs: Tensor) -> Tensor:
            return relaxed_sample(log_probs, temperature, moment.generator, hard=hard)

        return choose

    def _state_pass(
        self,
        model: VRBot,
        heard: Heard,
        response: HeardResponse,
        known: KnownLatents,
        layout: TurnLayout,
        choose: Choose,
    ) -> StatePass:
        """S^q turn by turn, then the prior along it in one go; no gradient passes from turn to turn."""
        previous = model.first_state(layout.num_sessions, heard.words.device)
        spans, before, posterior, prior = [], [], [], []
        for start, stop in layout.turns():
            rows = slice(start, stop)
            now, said = heard.select(rows), response.encoded.select(rows)
            previous = Span(previous.select(slice(0, stop - start)).weights.detach())
            read, mentions = model.recall(previous, now)
            clamp = type(known.state_clamp)(known.state_known[rows], known.state.select(rows))
            evidence = (now.context.summary, read.summary)
            drawn = model.inference_tracker.write(  # type: ignore[operator]
                (*evidence, said.summary), model.state_length, mentions, heard.table, choose, clamp
            )
            before.append(previous.weights)
            prior.append(model.prior_tracker.score_along(evidence, drawn.span, mentions, heard.table))  # type: ignore[operator]
            posterior.append(drawn.log_probs)
            spans.append(drawn.span.weights)
            previous = drawn.span
        return StatePass(Span(torch.cat(spans)), Span(torch.cat(before)), torch.cat(posterior), torch.cat(prior))

    def _terms(
        self,
        model: VRBot,
        batch: SessionBatch,
        heard: Heard,
        response: HeardResponse,
        known: KnownLatents,
        states: StatePass,
        choose: Choose,
        moment: Moment,
    ) -> dict[str, Tensor]:
        """Every term of the bounds and the labels, [N] each."""
        terms = {"kl_state": self._kl_spans(states.posterior, states.prior, self.settings.free_bits_state, moment)}
        if self.settings.bound == "joint":
            actions = self._action_pass(model, heard, response, known, states.state, choose)
            terms["reconstruction"] = self._reconstruct(model, batch, heard, states.state, actions.action)
        else:
            evidence = model.policy_evidence(heard, states.state)
            guess = model.prior_policy.write(evidence, model.action_length, choose, choose)  # type: ignore[operator]
            terms["reconstruction_state"] = self._reconstruct(model, batch, heard, states.state, guess.action)
            actions = None
            if moment.stage > 1 or bool(known.keywords_known.any()):
                drawn = self._draw_prior_state(model, heard, states, known, choose)
                actions = self._action_pass(model, heard, response, known, drawn, choose)
                terms["reconstruction_action"] = self._reconstruct(model, batch, heard, drawn, actions.action)
        if actions is not None:
            terms["kl_action"] = self._kl_actions(actions, moment)
        terms |= _label_terms(states, actions, known)
        return terms

    def _draw_prior_state(
        self, model: VRBot, heard: Heard, states: StatePass, known: KnownLatents, choose: Choose
    ) -> Span:
        """S^p, given the state before it."""
        read, mentions = model.recall(states.previous, heard)
        evidence = (heard.context.summary, read.summary)
        drawn: Span = model.prior_tracker.write(  # type: ignore[operator]
            evidence, model.state_length, mentions, heard.table, choose, known.state_clamp
        ).span
        return drawn

    def _action_pass(
        self,
        model: VRBot,
        heard: Heard,
        response: HeardResponse,
        known: KnownLatents,
        state: Span,
        choose: Choose,
    ) -> ActionPass:
        drawn = model.inference_policy.write(  # type: ignore[operator]
            model.policy_evidence(heard, state, response), model.action_length, choose, choose, known.action_clamp
        )
        prior = model.prior_policy.score_along(model.policy_evidence(heard, state), drawn.action)  # type: ignore[operator]
        return ActionPass(drawn.action, drawn.scores, prior)

    def _reconstruct(self, model: VRBot, batch: SessionBatch, heard: Heard, state: Span, action: Action) -> Tensor:
        targets = batch.targets
        given = model.conditions(heard, state, action)
        return model.generator.log_prob(
            given, model.category_vectors(action), targets.response, targets.response_lengths
        )

    def _kl_spans(self, posterior: Tensor, prior: Tensor, floor: float, moment: Moment) -> Tensor:
        if self.settings.stop_gradient_on_q:
            posterior = posterior.detach()
        kl = SpanDistribution(posterior).kl(SpanDistribution(prior), floor=self.settings.kl_floor)
        return free_bits(kl, floor) * self._warmth(moment)

    def _kl_actions(self, actions: ActionPass, moment: Moment) -> Tensor:
        posterior = actions.posterior.category
        if self.settings.stop_gradient_on_q:
            posterior = posterior.detach()
        category = divergence(posterior, actions.prior.category) * self._warmth(moment)
        floor = self.settings.free_bits_action
        return category + self._kl_spans(actions.posterior.keywords, actions.prior.keywords, floor, moment)

    def _warmth(self, moment: Moment) -> float:
        steps = self.settings.kl_warmup_steps
        return min(1.0, (moment.step + 1) / steps) if steps else 1.0

    def _total(self, batch: SessionBatch, terms: dict[str, Tensor], known: KnownLatents) -> BatchLoss:
        """The loss of each turn, summed; a divergence whose latent is known counts as its label terms instead."""
        settings = self.settings
        answered = (batch.targets.response_lengths > 0).float()
        zero = torch.zeros_like(answered)
        kl_state = terms["kl_state"] * ~known.state_known
        kl_action = terms.get("kl_action", zero) * ~known.keywords_known
        if settings.bound == "joint":
            bound = joint_bound(terms["reconstruction"], kl_state, kl_action)
        else:
            bound = settings.state_bound_weight * state_bound(terms["reconstruction_state"], kl_state)
            if "reconstruction_action" in terms:
                bound = bound + settings.action_bound_weight * action_bound(terms["reconstruction_action"], kl_action)
        counted = known.state_known & known.keywords_known if settings.labelled_turns_only else answered > 0
        loss = counted * -bound - settings.supervised_weight * terms["labels"] * (answered > 0)
        per_session = torch.zeros(len(batch.session_ids), device=loss.device).index_add(0, batch.session, loss.detach())
        logged = {name: (value.detach() * answered).sum() for name, value in terms.items()}
        return BatchLoss(loss.sum(), int(answered.sum()), logged, per_session)


def _label_terms(states: StatePass, actions: ActionPass | None, known: KnownLatents) -> dict[str, Tensor]:
    """log p(S) + log q(S) and log p(A) + log q(A) where they are known (Eq. 19); the reply's term is the bounds' own."""
    labels = _span_label(states.posterior, known.state, known.state_known)
    labels = labels + _span_label(states.prior, known.state, known.state_known)
    if actions is not None:
        for scores in (actions.posterior, actions.prior):
            labels = labels + _span_label(scores.keywords, known.keywords, known.keywords_known)
            chosen = chosen_log_prob(scores.category, known.category.argmax(dim=-1))
            labels = labels + chosen * known.category_known
    return {"labels": labels}


def _span_label(log_probs: Tensor, span: Span, known: Tensor) -> Tensor:
    """Log probability of a known span, 0 elsewhere [N]; what a network cannot write at all costs a fixed price."""
    chosen = chosen_log_prob(log_probs, span.ids)
    chosen = torch.where(chosen.isfinite(), chosen, IMPOSSIBLE)
    return chosen.sum(dim=-1) * known


IMPOSSIBLE = -20.0
"""What a labelled entity costs, in nats, that the network has no way to write (a keyword the response never names)."""
