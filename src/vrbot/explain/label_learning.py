"""Teaches the inference networks alone from dialogues that are labelled throughout: fast enough to do after each round.

Labels are fed as they are, so that all turns of a batch are independent: -log q(S|R) - log q(A|R), without a reply to
write and without the prior networks. A model for use is trained by `vrbot train` on all dialogues.
Letters: N rows (turns).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from vrbot.config import TrainingSettings
from vrbot.dialogue.batching import Limits, SessionBatch, TurnLayout, collate
from vrbot.dialogue.splits import Split
from vrbot.model.keyword_scores import SpanScores
from vrbot.model.spans import Span
from vrbot.model.vrbot import VRBot
from vrbot.objective.labels import known_latents
from vrbot.objective.mention_reader import teach_surroundings
from vrbot.probability.category import chosen_log_prob
from vrbot.training.gradients import clear_gradient, clip_gradient
from vrbot.training.optimiser import Optimiser, rate_factors, trainable


class LabelLearner:
    """Goes on learning, round after round, from whatever is labelled by then; the same seed gives the same weights."""

    def __init__(self, model: VRBot, settings: TrainingSettings, limits: Limits, seed: int) -> None:
        self.model, self.settings, self.limits = model, settings, limits
        self.optimiser = Optimiser(trainable(model), settings, rate_factors(model))
        self._draws = np.random.default_rng(seed)
        self._seed = seed

    def learn(self, split: Split, sessions: Sequence[int], updates: int) -> float:
        """So many updates on these sessions, each as often as the others; the mean loss of a turn over all of them.

        The learning rate falls from the first to the last update.
        """
        torch.manual_seed(self._seed + len(sessions))
        if self.model.surroundings is not None:
            teach_surroundings(self.model.surroundings, self._batches(split, sessions))
        self.model.train()
        parameters = list(self.optimiser.parameters.values())
        waiting: list[int] = []
        total, turns = 0.0, 0
        for update in range(updates):
            while len(waiting) < min(self.settings.batch_size, len(sessions)):
                waiting += self._draws.permutation(np.asarray(sessions)).tolist()
            chosen = list(dict.fromkeys(waiting[: self.settings.batch_size]))
            waiting = waiting[self.settings.batch_size :]
            batch = collate(split, chosen, limits=self.limits)
            loss = label_loss(self.model, batch).sum()
            clear_gradient(parameters)
            (loss / len(batch.turn)).backward()
            clip_gradient(parameters, self.settings.gradient_clip)
            self.optimiser.step(self._rate(update / max(updates, 1)))
            total, turns = total + float(loss.detach()), turns + len(batch.turn)
        clear_gradient(parameters)
        return total / max(turns, 1)

    def _batches(self, split: Split, sessions: Sequence[int]) -> Iterator[SessionBatch]:
        size = self.settings.batch_size
        for start in range(0, len(sessions), size):
            yield collate(split, sessions[start : start + size], limits=self.limits)

    def _rate(self, done: float) -> float:
        settings = self.settings
        return settings.learning_rate + done * (settings.final_learning_rate - settings.learning_rate)


def label_loss(model: VRBot, batch: SessionBatch) -> Tensor:
    """-log q of the labels of every turn [N], each state after the labelled one of the turn before."""
    targets = batch.targets
    preference: Tensor = getattr(model.objective, "preference", torch.zeros(model.table.num_entities))
    known = known_latents(targets, model.state_length, model.action_length, preference, model.categories.num_embeddings)
    heard, response = model.hear(batch.inputs, batch.layout), model.hear_response(targets)
    previous = _before(known.state, model, batch.layout)
    read, mentions = model.recall(previous, heard.mentions, heard.table)
    evidence = (heard.context.summary, read.summary, response.encoded.summary)
    state = model.inference_tracker.score_along(evidence, known.state, mentions, heard.table)  # type: ignore[operator]
    action = model.inference_policy.score_along(  # type: ignore[operator]
        model.policy_evidence(heard, known.state, response), known.action
    )
    category = chosen_log_prob(action.category, known.category.argmax(dim=-1))
    answered = targets.response_lengths > 0
    gains = (
        (SpanScores(state).log_prob(known.state), known.state_known),
        (category, known.category_known & answered),
        (action.keywords.log_prob(known.keywords), known.keywords_known & answered),
    )
    return -torch.stack([gain.masked_fill(~counted, 0.0) for gain, counted in gains]).sum(dim=0)


def _before(states: Span, model: VRBot, layout: TurnLayout) -> Span:
    """The state of the turn before each; nothing is known before first turns."""
    sizes = layout.turn_sizes
    first = model.first_state(layout.num_sessions, states.weights.device).weights
    turns = zip(states.weights.split(sizes)[:-1], sizes[1:], strict=True)
    return Span(torch.cat((first, *(weights[:size] for weights, size in turns))))
