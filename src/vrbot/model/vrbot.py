"""VRBot: the parts of section 3 put together, and how they are used live, with the prior networks only.

Letters: N rows (turns), L span positions, E entities, C categories, H hidden size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout, TurnTargets
from vrbot.model.context_encoder import Context, Mentions, PolicyReading, mentions_in
from vrbot.model.contract import BatchLoss, Moment, Objective, Perception
from vrbot.model.detectors import PolicyEvidence
from vrbot.model.habits import Habits
from vrbot.model.policy_network import Action, WrittenAction
from vrbot.model.response_generator import Conditions, DecoderState, ResponseGenerator
from vrbot.model.set_policy import with_the_expected
from vrbot.model.spans import EntityTable, Span, SpanReader, drawn_by, one_hot_choice, span_of
from vrbot.model.standing import named_so_far, standings
from vrbot.model.surroundings import Surroundings
from vrbot.nets.encoders import BidirectionalEncoder, Encoded


@dataclass(frozen=True, eq=False)
class Heard:
    """What the model heard in each turn: the context's vectors and the entities mentioned in it."""

    words: Tensor  # [N, T]
    context: Context
    mentions: Mentions
    table: Tensor  # [E+1, D]
    by_policy: PolicyReading | None = None


@dataclass(frozen=True, eq=False)
class HeardResponse:
    """The response as the inference networks see it."""

    encoded: Encoded
    mentions: Mentions


class VRBot(nn.Module):
    """Patient state, physician action, reply; see `model.build` for its assemblies.

    `words` gives the vectors of the words heard, [N, T] -> [N, T, D]. With a `policy_encoder` the policy networks read
    the context for themselves, and the reply, which costs many times what its keywords cost, does not decide how. With
    `minds_standing` they are told how every entity stands in the conversation, with `habits` what is usually next.
    `none_offset` is added to log p(NONE) when the prior policy decides; it is calibrated on validation data.
    """

    none_offset: Tensor

    def __init__(
        self,
        *,
        words: nn.Module,
        table: EntityTable,
        categories: nn.Embedding,
        context_encoder: nn.Module,
        policy_encoder: nn.Module | None,
        response_encoder: BidirectionalEncoder,
        surroundings: Surroundings | None,
        habits: Habits | None,
        state_reader: SpanReader,
        keyword_reader: SpanReader,
        prior_tracker: nn.Module,
        inference_tracker: nn.Module,
        subgraph_encoder: nn.Module | None,
        prior_policy: nn.Module,
        inference_policy: nn.Module,
        show_state: nn.Module,
        generator: ResponseGenerator,
        state_length: int,
        action_length: int,
        dropout: float,
        minds_standing: bool,
        at_least_one: bool,
        objective: Objective,
    ) -> None:
        super().__init__()
        self.words, self.table, self.categories = words, table, categories
        self.context_encoder, self.policy_encoder = context_encoder, policy_encoder
        self.response_encoder, self.surroundings, self.habits = response_encoder, surroundings, habits
        self.state_reader, self.keyword_reader = state_reader, keyword_reader
        self.prior_tracker, self.inference_tracker = prior_tracker, inference_tracker
        self.subgraph_encoder = subgraph_encoder
        self.prior_policy, self.inference_policy = prior_policy, inference_policy
        self.show_state, self.generator = show_state, generator
        self.state_length, self.action_length = state_length, action_length
        self.dropout = nn.Dropout(dropout)
        self.minds_standing, self.at_least_one = minds_standing, at_least_one
        self.objective = objective
        self.needed_labels: tuple[str, ...] = getattr(objective, "needed_labels", ())
        self.register_buffer("none_offset", torch.zeros(()))

    # The parts, one call each

    def hear(self, inputs: TurnInputs, layout: TurnLayout) -> Heard:
        """H_t, h^c_t and the entity mentions of every turn."""
        embedded = self.dropout(self.words(inputs.context))
        context = self.context_encoder(embedded, inputs, layout)
        mentions = mentions_in(context, inputs.mention_entities, inputs.mention_positions)
        if self.surroundings is not None:
            mentions = replace(mentions, mask=self.surroundings(inputs)[:, : mentions.mask.shape[1]])
        read = context if self.policy_encoder is None else self.policy_encoder(embedded, inputs, layout)
        named = named_so_far(inputs, layout, self.table.num_entities) if self.minds_standing else None
        foretold = None if self.habits is None else self.habits(inputs, layout)
        return Heard(inputs.context, context, mentions, self.table(), PolicyReading(read, named, foretold))

    def hear_response(self, targets: TurnTargets) -> HeardResponse:
        """h^R_t and the entities mentioned in the response: for the inference networks only."""
        encoded = self.response_encoder(self.dropout(self.words(targets.response)), targets.response_lengths)
        mentions = mentions_in(encoded, targets.response_mentions, targets.response_mention_positions)
        return HeardResponse(encoded, mentions)

    def first_state(self, num_rows: int, device: torch.device) -> Span:
        """S_0: nothing is known."""
        return span_of(
            torch.zeros(num_rows, 0, dtype=torch.long, device=device), self.state_length, self.table.num_entities
        )

    def recall(self, previous: Span, mentions: Mentions, table: Tensor) -> tuple[Encoded, Mentions]:
        """The previous state read, and all that the next one can copy: it first, then the context's mentions."""
        read: Encoded = self.state_reader(previous, table)
        held = Mentions(previous.ids.clamp_max(self.table.num_entities - 1), read.tokens, previous.mask)
        return read, held.and_also(mentions)

    def policy_evidence(self, heard: Heard, state: Span, response: HeardResponse | None = None) -> PolicyEvidence:
        """What the policy networks reason from: with a response for the inference policy, with the graph otherwise."""
        assert heard.by_policy is not None, "what a VRBot hears its policy has read"
        if response is None:
            return self.prior_evidence(heard.by_policy, state, heard.table)
        read: Encoded = self.state_reader(state, heard.table)
        return PolicyEvidence(heard.by_policy.context, read, heard.table, None, response.encoded, response.mentions)

    def prior_evidence(self, reading: PolicyReading, state: Span, table: Tensor) -> PolicyEvidence:
        """What the prior policy reasons from."""
        read: Encoded = self.state_reader(state, table)
        standing = None if reading.named is None else standings(reading.named, state)
        graphs = None if self.subgraph_encoder is None else self.subgraph_encoder(state, standing)
        return PolicyEvidence(reading.context, read, table, graphs, standing=standing, foretold=reading.foretold)

    def conditions(self, heard: Heard, state: Span, action: Action, *, guessed: bool = False) -> Conditions:
        """What the reply is written from; `guessed` where the prior policy chose the action."""
        shown = self.show_state(state)
        state_read, keywords_read = (
            self.state_reader(shown, heard.table),
            self.keyword_reader(action.keywords, heard.table),
        )
        guesses = torch.ones(len(heard.words), dtype=torch.bool, device=heard.words.device) if guessed else None
        return Conditions(
            heard.words, heard.context, shown, state_read, action, keywords_read, heard.by_policy, guesses
        )

    # The contract

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        return self.objective(self, batch, moment)

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        """States and actions of all turns, the most probable ones, by the prior networks."""
        heard = self.hear(inputs, layout)
        state = self.track(heard, layout)
        evidence = self.policy_evidence(heard, state)
        written = self.prior_policy.decide(evidence, self.action_length, self.decide)  # type: ignore[operator]
        return self._perceived(heard, state, written)

    @torch.no_grad()
    def imagine(
        self, inputs: TurnInputs, layout: TurnLayout, count: int, generator: torch.Generator
    ) -> Iterator[Perception]:
        """The states of `perceive`, with actions drawn from the prior policy."""
        draw = drawn_by(generator)
        heard = self.hear(inputs, layout)
        state = self.track(heard, layout)
        evidence = self.policy_evidence(heard, state)
        for _ in range(count):
            written = self.prior_policy.write(evidence, self.action_length, draw, draw)  # type: ignore[operator]
            yield self._perceived(heard, state, written)

    def track(self, heard: Heard, layout: TurnLayout) -> Span:
        """The prior tracker's states along each session; every turn builds on the tracker's own last state."""
        previous = self.first_state(layout.num_sessions, heard.words.device)
        sizes, spans = layout.turn_sizes, []
        for summary, mentioned in zip(heard.context.summary.split(sizes), heard.mentions.split(sizes), strict=True):
            read, mentions = self.recall(previous.select(slice(0, len(summary))), mentioned, heard.table)
            previous = self.prior_tracker.write(  # type: ignore[operator]
                (summary, read.summary), self.state_length, mentions, heard.table, one_hot_choice
            ).span
            spans.append(previous.weights)
        return Span(torch.cat(spans))

    def decide(self, log_probs: Tensor) -> Tensor:
        """The most probable keyword, NONE shifted by the calibrated offset."""
        shift = torch.zeros(log_probs.shape[-1], device=log_probs.device)
        shift[-1] = self.none_offset
        chosen = one_hot_choice(log_probs + shift)
        return with_the_expected(chosen, log_probs) if self.at_least_one else chosen

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[DecoderState], DecoderState]:
        given: Conditions = perception.conditions.select(rows)
        return self.generator.search_step, self.generator.initial(given, self.category_vectors(given.action))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        given: Conditions = perception.conditions
        return self.generator.log_prob(given, self.category_vectors(given.action), response, lengths)

    def _perceived(self, heard: Heard, state: Span, written: WrittenAction) -> Perception:
        return Perception(
            state=_entities(state),
            category=written.scores.category,
            keywords=_entities(written.action.keywords),
            conditions=self.conditions(heard, state, written.action, guessed=True),
        )

    def category_vectors(self, action: Action) -> Tensor:
        """e^{A^c}: soft in training, one category's vector in use."""
        vectors: Tensor = action.category @ self.categories.weight
        return vectors

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("VRBot has no forward(); use loss(), perceive() and begin_reply()")


def _entities(span: Span) -> Tensor:
    return torch.where(span.mask, span.ids, -1)
