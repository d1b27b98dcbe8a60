"""DAMD: four encoders (patient, previous response, previous state, previous action), decoders state -> action -> reply.

The decoders are taught on turns whose state and keywords are both known, fed the known spans throughout; other turns
take no part in training, so labels of both kinds are needed (`needed_labels`). In use every span is the most probable
one (NONE of an action shifted, see `ChainedReplies`), and what a turn starts from are the model's own state and action
of the turn before.
Letters: N rows (turns), T context tokens, L span positions, E entities, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.baselines.span_chain import (
    ChainDecoder,
    ChainedAction,
    ChainedReplies,
    Sources,
    Told,
    ToldAction,
    build_action,
    build_state_decoder,
    empty_spans,
    heard_rows,
    label_terms,
    loss_of_turns,
    memory_of,
    named_entities,
    slots_of,
    spans_before,
    weights_of,
)
from vrbot.config import Config
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.vocabulary import SEP
from vrbot.model.build import build_generator, keyword_order
from vrbot.model.build_reading import build_words
from vrbot.model.context_encoder import Context, mentions_in
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.policy_network import Action
from vrbot.model.response_generator import Conditions, ResponseGenerator
from vrbot.model.spans import Choose, EntityTable, Span, SpanReader, drawn_by, one_hot_choice
from vrbot.model.vrbot import Heard
from vrbot.model.world import World
from vrbot.nets.attention import AdditiveAttention
from vrbot.nets.encoders import BidirectionalEncoder, Encoded
from vrbot.objective.labels import known_latents


class UtteranceEncoders(nn.Module):
    """One encoder for what the physician said last, one for what the patient says now."""

    def __init__(self, embedding_size: int, hidden_size: int, word_dropout: float = 0.0) -> None:
        super().__init__()
        self.previous_response = BidirectionalEncoder(embedding_size, hidden_size, word_dropout)
        self.patient = BidirectionalEncoder(embedding_size, hidden_size, word_dropout)
        self.attention = AdditiveAttention(hidden_size, hidden_size, hidden_size)
        self.combine = nn.Linear(3 * hidden_size, hidden_size)

    def forward(self, embedded: Tensor, words: Tensor, lengths: Tensor) -> Context:
        """Contexts [N, T, D] -> vectors of all tokens where they stand, and of the whole.

        A context whose beginning was cut off may have lost its separator: then all of it is the patient's.
        """
        positions = torch.arange(words.shape[1], device=words.device)[None, :]
        is_separator = words == SEP
        separator = torch.where(is_separator.any(dim=1), is_separator.long().argmax(dim=1), -1).unsqueeze(1)  # [N, 1]
        said = self.previous_response(embedded, separator.squeeze(1).clamp_min(0))
        start = separator + 1
        patient = self.patient(_gathered(embedded, positions + start), lengths - start.squeeze(1))
        now = _gathered(patient.tokens, positions - start)
        mask = (positions < lengths.unsqueeze(1)) & (positions != separator)
        tokens = torch.where((positions < separator).unsqueeze(-1), said.tokens, now) * mask.unsqueeze(-1)
        attended = self.attention(patient.summary, tokens, mask)
        summary = torch.tanh(self.combine(torch.cat((said.summary, patient.summary, attended), dim=-1)))
        return Encoded(tokens, mask, summary)


def _gathered(vectors: Tensor, positions: Tensor) -> Tensor:
    """The vectors [N, T, .] at these positions [N, T]; those outside give some vector or other."""
    inside = positions.clamp(0, max(vectors.shape[1] - 1, 0))
    return vectors.gather(1, inside.unsqueeze(-1).expand(-1, -1, vectors.shape[-1]))


@dataclass(frozen=True, eq=False)
class Before:
    """State and action of the turn before each, as spans and as read."""

    state: Span
    keywords: Span
    state_read: Encoded
    keywords_read: Encoded


@dataclass(frozen=True, eq=False)
class ToldTurns:
    """How the decoders tell given states and actions, and what a reply to each is written from."""

    state: Told
    action: ToldAction
    conditions: Conditions


class Damd(ChainedReplies):
    """Domain-aware multi-decoder, here with the medical state and action."""

    needed_labels = ("state", "keywords")
    preference: Tensor

    def __init__(
        self,
        *,
        words: nn.Embedding,
        table: EntityTable,
        utterances: UtteranceEncoders,
        state_reader: SpanReader,
        keyword_reader: SpanReader,
        state_decoder: ChainDecoder,
        action: ChainedAction,
        generator: ResponseGenerator,
        preference: Tensor,
        state_length: int,
        action_length: int,
        dropout: float,
        label_weights: Mapping[str, float],
    ) -> None:
        """`preference` [E] is the order in which the keywords of a label are named."""
        super().__init__()
        self.words, self.table, self.utterances = words, table, utterances
        self.state_reader, self.keyword_reader = state_reader, keyword_reader
        self.state_decoder, self.action, self.generator = state_decoder, action, generator
        self.state_length, self.action_length, self.label_weights = state_length, action_length, label_weights
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("preference", preference, persistent=False)

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """Negative log likelihoods of state, action and reply; turns without state and keywords cost nothing.

        After a turn without labels the previous spans are empty: nothing is known, and nothing is guessed.
        """
        targets, layout = batch.targets, batch.layout
        num_categories = self.action.categories.num_embeddings
        known = known_latents(targets, self.state_length, self.action_length, self.preference, num_categories)
        used = known.state_known & known.keywords_known
        heard = self.hear(batch.inputs)
        before = self.read_before(spans_before(known.state, layout), spans_before(known.keywords, layout), heard.table)
        action = Action(known.category * known.category_known.unsqueeze(-1), known.keywords)
        told = self.tell(heard, before, known.state, action)
        lengths = targets.response_lengths.masked_fill(~used, 0)
        gains = {"reconstruction": self.log_prob(told.conditions, targets.response, lengths)}
        gains |= label_terms(told.state.log_probs, told.action, known)
        used_gains = {name: gain.masked_fill(~used, 0.0) for name, gain in gains.items()}
        return loss_of_turns(batch, used_gains, {}, self.label_weights)

    def hear(self, inputs: TurnInputs) -> Heard:
        """The last two utterances of every turn, and the entities mentioned in them."""
        context = self.utterances(self.dropout(self.words(inputs.context)), inputs.context, inputs.context_lengths)
        mentions = mentions_in(context, inputs.mention_entities, inputs.mention_positions)
        return Heard(inputs.context, context, mentions, self.table())

    def read_before(self, state: Span, keywords: Span, table: Tensor) -> Before:
        return Before(state, keywords, self.state_reader(state, table), self.keyword_reader(keywords, table))

    def tell(self, heard: Heard, before: Before, state: Span, action: Action) -> ToldTurns:
        """Both decoders along given spans, all rows at once."""
        told = self.state_decoder.along(self._state_sources(heard, before), state)
        told_action = self.action.along(self._action_sources(heard, before, state, told.hidden), action)
        given = Conditions(heard.words, heard.context, state, told.hidden, action, told_action.keywords.hidden)
        return ToldTurns(told, told_action, given)

    @torch.no_grad()
    def decide(self, heard: Heard, before: Before, choose: Choose, choose_category: Choose) -> tuple[Span, Action]:
        """The most probable state, and the action chosen after it."""
        sources = self._state_sources(heard, before)
        state = self.state_decoder.write(sources, self.state_length)
        hidden = self.state_decoder.along(sources, state).hidden
        sources = self._action_sources(heard, before, state, hidden)
        return state, self.action.write(sources, self.action_length, None, choose, choose_category)

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        heard = self.hear(inputs)
        return self._perception(heard, layout, *self.decide_turns(heard, layout, self.choose_keyword))

    @torch.no_grad()
    def imagine(
        self, inputs: TurnInputs, layout: TurnLayout, count: int, generator: torch.Generator
    ) -> Iterator[Perception]:
        """Actions drawn along each dialogue, every turn after the one drawn before it."""
        heard, draw = self.hear(inputs), drawn_by(generator)
        for _ in range(count):
            yield self._perception(heard, layout, *self.decide_turns(heard, layout, draw, draw))

    @torch.no_grad()
    def keyword_namer(self, inputs: TurnInputs, layout: TurnLayout) -> Callable[[], Tensor]:
        heard = self.hear(inputs)
        return lambda: named_entities(self.decide_turns(heard, layout, self.choose_keyword)[1].keywords)

    @torch.no_grad()
    def decide_turns(
        self, heard: Heard, layout: TurnLayout, choose: Choose, choose_category: Choose = one_hot_choice
    ) -> tuple[Span, Action]:
        """Turn by turn, each after the model's own state and action of the turn before."""
        sizes, start = layout.turn_sizes, 0
        state = empty_spans(heard.words[: sizes[0]], self.state_length, self.table.num_entities)
        keywords = empty_spans(heard.words[: sizes[0]], self.action_length, self.table.num_entities)
        states, actions = [], []
        for size in sizes:
            now, still = slice(start, start + size), slice(0, size)
            before = self.read_before(state.select(still), keywords.select(still), heard.table)
            state, action = self.decide(heard_rows(heard, now), before, choose, choose_category)
            keywords = action.keywords
            states.append(state.weights)
            actions.append(action)
            start += size
        chosen = Action(
            torch.cat([action.category for action in actions]),
            Span(torch.cat([action.keywords.weights for action in actions])),
        )
        return Span(torch.cat(states)), chosen

    def _perception(self, heard: Heard, layout: TurnLayout, state: Span, action: Action) -> Perception:
        before = self.read_before(spans_before(state, layout), spans_before(action.keywords, layout), heard.table)
        told = self.tell(heard, before, state, action)
        return Perception(named_entities(state), told.action.category, named_entities(action.keywords), told.conditions)

    def _state_sources(self, heard: Heard, before: Before) -> Sources:
        return Sources(
            (heard.context.summary, before.state_read.summary, before.keywords_read.summary),
            (memory_of(heard.context), memory_of(before.state_read), memory_of(before.keywords_read)),
            slots_of(before.state, before.state_read).and_also(heard.mentions),
            heard.table,
        )

    def _action_sources(self, heard: Heard, before: Before, state: Span, hidden: Encoded) -> Sources:
        return Sources(
            (heard.context.summary, hidden.summary, before.keywords_read.summary),
            (memory_of(heard.context), memory_of(hidden), memory_of(before.keywords_read)),
            slots_of(state, hidden).and_also(heard.mentions),
            heard.table,
        )


def build_damd(config: Config, world: World) -> Damd:
    """With the sizes every other system has."""
    size, hidden = config.network.embedding_size, config.network.hidden_size
    words = build_words(config, world)
    return Damd(
        words=words,
        table=EntityTable(words, world.entity_words),
        utterances=UtteranceEncoders(size, hidden, config.network.word_dropout),
        state_reader=SpanReader(size, hidden),
        keyword_reader=SpanReader(size, hidden),
        state_decoder=build_state_decoder(config, num_evidence=3, num_memories=3),
        action=build_action(config, num_evidence=3, num_memories=3),
        generator=build_generator(config, world, words, obeys=True),
        preference=keyword_order(config, world),
        state_length=config.tracker.length,
        action_length=config.policy.length,
        dropout=config.network.dropout,
        label_weights=weights_of(config.chains),
    )
