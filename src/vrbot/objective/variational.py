"""The objective of VRBot: two-stage collapsed inference with labels where there are any (section 3.6).

One pass of the inference tracker along the turns draws S^q; known states are clamped inside it, so that the label
terms are read off the same distributions. Then every turn of the batch is independent of the others.
Letters: N rows (turns), B sessions, L span positions, E entities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import reduce

import torch
from torch import Tensor

from vrbot.config import ObjectiveSettings
from vrbot.dialogue.batching import SessionBatch, TurnLayout
from vrbot.model.contract import BatchLoss, Moment
from vrbot.model.keyword_scores import SpanScores
from vrbot.model.policy_network import Action
from vrbot.model.reply_sources import ReplySources
from vrbot.model.response_generator import Conditions
from vrbot.model.spans import Choose, Span
from vrbot.model.vrbot import Heard, HeardResponse, VRBot
from vrbot.nets.recomputing import computed_again
from vrbot.objective.bounds import action_bound, joint_bound, state_bound
from vrbot.objective.habit_teacher import teach_habits
from vrbot.objective.labels import LABEL_KINDS, KnownLatents, known_latents
from vrbot.objective.mention_reader import teach_surroundings
from vrbot.objective.passes import ActionPass, StatePass
from vrbot.objective.response_form import ResponseForm
from vrbot.objective.response_reader import TellsCategories, best_teller
from vrbot.probability.annealing import Exponential, free_bits
from vrbot.probability.category import chosen_log_prob, divergence, relaxed_sample
from vrbot.probability.span import SpanDistribution


class VariationalObjective:
    """L_s in the first stage, L_s + L_a in the second (or L_joint throughout), and the label terms."""

    def __init__(
        self,
        settings: ObjectiveSettings,
        preference: Tensor,
        labels: Collection[str] = LABEL_KINDS,
        form: ResponseForm | None = None,
    ) -> None:
        """`preference` [E] is the order in which the keywords of a label are named; `labels` are the kinds to use;
        `form` tells the category of an unlabelled turn where the settings ask for it, until `study` finds better."""
        self.settings, self.preference, self.labels, self.form = settings, preference, labels, form
        self.teller: TellsCategories | None = form
        self.temperature = Exponential(settings.temperature_start, settings.temperature_end, settings.temperature_steps)

    @property
    def needed_labels(self) -> tuple[str, ...]:
        """The labels without which a turn teaches nothing."""
        return ("state", "keywords") if self.settings.labelled_turns_only else ()

    def study(self, model: VRBot, batches: Callable[[], Iterable[SessionBatch]]) -> None:
        """Learns before training what is usually named next, and from labelled turns how to read: the category of a
        response, and what the words around a mention say of it."""
        if model.habits is not None:
            teach_habits(model.habits, batches(), labelled_only=self.settings.labelled_turns_only)
        if not self.settings.labels_teach_reading:
            return
        if self.form is not None and "category" in self.labels:
            self.teller = best_teller(self.form, (batch.targets for batch in batches()))
        if model.surroundings is not None and "state" in self.labels:
            teach_surroundings(model.surroundings, batches())

    def __call__(self, model: VRBot, batch: SessionBatch, moment: Moment) -> BatchLoss:
        heard = model.hear(batch.inputs, batch.layout)
        response = model.hear_response(batch.targets)
        known = self._known(model, batch, moment)
        choose = self._chooser(moment)
        states = self._state_pass(model, heard, response, known, batch.layout, self._unless_guessed(choose))
        terms = self._terms(model, batch, heard, response, known, states, choose, moment)
        return self._total(batch, terms, known, moment)

    def _known(self, model: VRBot, batch: SessionBatch, moment: Moment) -> KnownLatents:
        """The labels, and what the settings put in the place of missing ones."""
        settings, targets = self.settings, batch.targets
        preference = self.preference.to(targets.response.device)
        known = known_latents(
            targets, model.state_length, model.action_length, preference, model.categories.num_embeddings
        )
        if settings.categories_by_form and self.teller is not None and not settings.labelled_turns_only:
            known = known.with_categories(self.teller.categories(targets))
        if moment.step < settings.pseudo_label_steps:
            known = known.with_pseudo_keywords(targets.response_mentions, preference)
        return known.only(self.labels)

    def _chooser(self, moment: Moment) -> Choose:
        temperature = self.temperature.value(moment.step)
        hard = self.settings.straight_through

        def choose(log_probs: Tensor) -> Tensor:
            return relaxed_sample(log_probs, temperature, moment.generator, hard=hard)

        return choose

    def _unless_guessed(self, choose: Choose) -> Choose:
        """How everything is drawn that is no guess of the prior policy."""
        return choose if self.settings.gradient_through == "draws" else _without_gradient(choose)

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
        sizes = layout.turn_sizes
        kept = 2 * len(heard.words) * model.state_length * len(heard.table)  # by all turns together
        turns = zip(
            heard.context.summary.split(sizes),
            heard.mentions.split(sizes),
            response.encoded.summary.split(sizes),
            known.state_clamp.split(sizes),
            strict=True,
        )
        spans, before, posterior, prior = [], [], [], []
        for summary, mentioned, said, clamp in turns:
            previous = Span(previous.weights[: len(summary)].detach())
            read, mentions = model.recall(previous, mentioned, heard.table)
            evidence = (summary, read.summary)
            drawn = model.inference_tracker.write(  # type: ignore[operator]
                (*evidence, said), model.state_length, mentions, heard.table, choose, clamp
            )
            before.append(previous.weights)
            along = self._as_given(drawn.span)
            score: Callable[..., Tensor] = model.prior_tracker.score_along  # type: ignore[assignment]
            prior.append(computed_again(kept, score, evidence, along, mentions, heard.table))
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
            seen = self._as_given(states.state)
            actions = self._action_pass(model, heard, response, known, states.state, seen, self._unless_guessed(choose))
            given = {"reconstruction": model.conditions(heard, states.state, actions.action)}
        else:
            evidence = model.policy_evidence(heard, states.state)
            guess = model.prior_policy.write(evidence, model.action_length, choose, choose)  # type: ignore[operator]
            given = {"reconstruction_state": model.conditions(heard, states.state, guess.action, guessed=True)}
            actions = None
            if moment.stage > 1 or bool((known.keywords_known | known.category_known).any()):
                drawn = self._draw_prior_state(model, heard, states, known, self._unless_guessed(choose))
                actions = self._action_pass(model, heard, response, known, drawn, drawn, self._unless_guessed(choose))
                given["reconstruction_action"] = model.conditions(heard, drawn, actions.action)
        if actions is not None:
            terms |= self._kl_actions(actions, moment)
        return (
            terms | self._reconstruct(model, batch, given, moment) | _label_terms(states, actions, known, self.settings)
        )

    def _draw_prior_state(
        self, model: VRBot, heard: Heard, states: StatePass, known: KnownLatents, choose: Choose
    ) -> Span:
        """S^p, given the state before it."""
        read, mentions = model.recall(states.previous, heard.mentions, heard.table)
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
        state_of_prior: Span,
        choose: Choose,
    ) -> ActionPass:
        """A^q, and the prior along it; both spans are the same state, but maybe only one sends gradient back."""
        drawn = model.inference_policy.write(  # type: ignore[operator]
            model.policy_evidence(heard, state, response), model.action_length, choose, choose, known.action_clamp
        )
        along = Action(self._held(drawn.action.category), self._as_given(drawn.action.keywords))
        prior = model.prior_policy.score_along(model.policy_evidence(heard, state_of_prior), along)  # type: ignore[operator]
        return ActionPass(drawn.action, drawn.scores, prior)

    def _reconstruct(
        self, model: VRBot, batch: SessionBatch, given: dict[str, Conditions], moment: Moment
    ) -> dict[str, Tensor]:
        """log p(R | ...) under each of the conditions [N]; one pass of the generator for all of them.

        With `split_reconstruction` each turn is decoded under one of the conditions, drawn in proportion to the
        weights of their bounds, and counts for all of them: the expectation is the same and the pass half as long.
        """
        targets, num_rows = batch.targets, len(batch.turn)
        rows, times = [torch.arange(num_rows)] * len(given), [1.0] * len(given)
        if self.settings.split_reconstruction:
            shares = self._decoding_shares(given)
            drawn = torch.multinomial(shares, num_rows, replacement=True, generator=moment.generator)
            rows = [(drawn == i).nonzero().squeeze(1) for i in range(len(given))]
            times = [1.0 / share if share else 0.0 for share in shares.tolist()]
        sources = (model.generator.sources(c, targets.response) for c in given.values())
        together = reduce(ReplySources.followed_by, (s.select(r) for s, r in zip(sources, rows, strict=True)))
        categories = [model.category_vectors(c.action)[r] for c, r in zip(given.values(), rows, strict=True)]
        chosen = torch.cat(rows)
        log_probs = model.generator.log_prob_of(
            together,
            torch.cat(categories),
            targets.response[chosen],
            targets.response_lengths[chosen],
        )
        parts = log_probs.split([len(r) for r in rows])
        return {
            name: torch.zeros(num_rows, device=part.device).index_add(0, r, part * counts)
            for name, r, part, counts in zip(given, rows, parts, times, strict=True)
        }

    def _decoding_shares(self, given: Collection[str]) -> Tensor:
        """The share of turns to decode under each of the conditions."""
        settings = self.settings
        weights = {
            "reconstruction": 1.0,
            "reconstruction_state": settings.state_bound_weight,
            "reconstruction_action": settings.action_bound_weight,
        }
        chosen = torch.tensor([weights[name] for name in given])
        return chosen / chosen.sum() if chosen.sum() > 0 else torch.ones_like(chosen) / len(chosen)

    def _held(self, drawn: Tensor) -> Tensor:
        """What a divergence sees of the posterior: no gradient reaches it where the settings say so."""
        return drawn.detach() if self.settings.stop_gradient_on_q else drawn

    def _as_given(self, span: Span) -> Span:
        """A drawn span that a prior is scored along."""
        return Span(self._held(span.weights))

    def _kl_spans(self, posterior: Tensor, prior: Tensor, floor: float, moment: Moment) -> Tensor:
        kl = SpanDistribution(self._held(posterior)).kl(SpanDistribution(prior))
        return free_bits(kl, floor) * self._warmth(moment)

    def _kl_actions(self, actions: ActionPass, moment: Moment) -> dict[str, Tensor]:
        category = divergence(self._held(actions.posterior.category), actions.prior.category) * self._warmth(moment)
        floor = self.settings.free_bits_action
        posterior = SpanScores(self._held(actions.posterior_span.log_probs))
        drawn = self._as_given(actions.action.keywords)
        keywords = actions.prior.keywords.divergence_from(posterior, drawn, self.settings.kl_floor)
        keywords = free_bits(keywords, floor) * self._warmth(moment)
        return {"kl_category": category, "kl_keywords": keywords}

    def _warmth(self, moment: Moment) -> float:
        steps = self.settings.kl_warmup_steps
        return min(1.0, (moment.step + 1) / steps) if steps else 1.0

    def _total(self, batch: SessionBatch, terms: dict[str, Tensor], known: KnownLatents, moment: Moment) -> BatchLoss:
        """The loss of each turn, summed; a divergence whose latent is known counts as its label terms instead."""
        settings = self.settings
        answered = batch.targets.response_lengths > 0
        kl_state = terms["kl_state"].masked_fill(known.state_known, 0.0)
        kl_action = torch.zeros_like(kl_state)
        if "kl_keywords" in terms:
            kl_action = terms["kl_category"].masked_fill(known.category_known, 0.0)
            kl_keywords = terms["kl_keywords"].masked_fill(known.keywords_known, 0.0)
            kl_action = settings.policy_weight * (kl_action + kl_keywords)
        if settings.bound == "joint":
            bound = joint_bound(terms["reconstruction"], kl_state, kl_action)
        else:
            bound = settings.state_bound_weight * state_bound(terms["reconstruction_state"], kl_state)
            if "reconstruction_action" in terms:
                of_action = settings.action_bound_weight * action_bound(terms["reconstruction_action"], kl_action)
                bound = bound + (of_action if moment.stage > 1 else of_action * known.keywords_known)
        counted = answered & known.state_known & known.keywords_known if settings.labelled_turns_only else answered
        loss = counted * -bound - settings.supervised_weight * terms["labels"] * answered
        per_session = torch.zeros(len(batch.session_ids), device=loss.device).index_add(0, batch.session, loss.detach())
        logged = {name: (value.detach() * answered).sum() for name, value in terms.items()}
        if "kl_keywords" in terms:
            logged["kl_action"] = logged["kl_category"] + logged["kl_keywords"]
        return BatchLoss(loss.sum(), int(answered.sum()), logged, per_session)


def _without_gradient(choose: Choose) -> Choose:
    def chosen(log_probs: Tensor) -> Tensor:
        return choose(log_probs.detach())

    return chosen


def _label_terms(
    states: StatePass, actions: ActionPass | None, known: KnownLatents, settings: ObjectiveSettings
) -> dict[str, Tensor]:
    """log p(S) + log q(S) and log p(A) + log q(A) where known (Eq. 20); the reply's term is the bounds' own."""
    states_known = SpanScores(states.posterior).log_prob(known.state) + SpanScores(states.prior).log_prob(known.state)
    labels = settings.state_label_weight * states_known * known.state_known
    if actions is not None:
        for scores, weight in ((actions.posterior, 1.0), (actions.prior, settings.policy_weight)):
            labels = labels + weight * scores.keywords.log_prob(known.keywords) * known.keywords_known
            chosen = chosen_log_prob(scores.category, known.category.argmax(dim=-1))
            labels = labels + weight * chosen * known.category_known
    return {"labels": labels}
