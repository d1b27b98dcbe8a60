"""MOSS: one encoder and chained decoders state -> action -> response, each taught by the labels a turn has.

A re-implementation from the published description only. Every decoder attends to the encoder and to the hidden states
of the decoders before it. A decoder without a label in a turn runs all the same: it names what it finds most probable,
its hidden states feed the next ones, and it learns from what they cost; no divergence joins anything.
Letters: N rows (turns), L span positions, E entities, H hidden size.
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
from vrbot.model.build import build_generator, keyword_order
from vrbot.model.build_reading import build_context_encoder, build_words
from vrbot.model.context_encoder import mentions_in
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.policy_network import Action
from vrbot.model.response_generator import Conditions, ResponseGenerator
from vrbot.model.spans import Clamp, EntityTable, Span, SpanReader, drawn_by
from vrbot.model.vrbot import Heard
from vrbot.model.world import World
from vrbot.nets.encoders import Encoded
from vrbot.objective.labels import KnownLatents, known_latents


@dataclass(frozen=True, eq=False)
class Chained:
    """What the chain made of every turn: both spans, how probable they are, and what the reply is written from."""

    state: Span
    state_log_probs: Tensor  # [N, L, E+1]
    action: ToldAction
    conditions: Conditions


class Moss(ChainedReplies):
    """Reads with one encoder, then runs three decoders in a row."""

    preference: Tensor

    def __init__(
        self,
        *,
        words: nn.Embedding,
        table: EntityTable,
        context_encoder: nn.Module,
        state_reader: SpanReader,
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
        self.words, self.table, self.context_encoder, self.state_reader = words, table, context_encoder, state_reader
        self.state_decoder, self.action, self.generator = state_decoder, action, generator
        self.state_length, self.action_length, self.label_weights = state_length, action_length, label_weights
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("preference", preference, persistent=False)

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """The sum of the negative log likelihoods of the reply and of whatever labels a turn has."""
        targets, num_categories = batch.targets, self.action.categories.num_embeddings
        known = known_latents(targets, self.state_length, self.action_length, self.preference, num_categories)
        chained = self.chain(self.hear(batch.inputs, batch.layout), batch.layout, known)
        reply = self.log_prob(chained.conditions, targets.response, targets.response_lengths)
        labels = label_terms(chained.state_log_probs, chained.action, known)
        return loss_of_turns(batch, {"reconstruction": reply, **labels}, {}, self.label_weights)

    def hear(self, inputs: TurnInputs, layout: TurnLayout) -> Heard:
        """The context of every turn, and the entities mentioned in it."""
        context = self.context_encoder(self.dropout(self.words(inputs.context)), inputs, layout)
        mentions = mentions_in(context, inputs.mention_entities, inputs.mention_positions)
        return Heard(inputs.context, context, mentions, self.table())

    def chain(self, heard: Heard, layout: TurnLayout, known: KnownLatents | None = None) -> Chained:
        """State, then action; known ones stand in the place of what the decoders would name.

        Where labels are asked for (in training), the most probable keywords are named; in use NONE is shifted.
        """
        stated = self._stated(heard, layout, None if known is None else known.state_clamp)
        if known is None:
            action = self.action.write(stated[2], self.action_length, None, self.choose_keyword)
        else:
            action = self.action.write(stated[2], self.action_length, known.action_clamp)
        return self._chained(heard, *stated, action)

    def _chained(self, heard: Heard, state: Span, told: Told, sources: Sources, action: Action) -> Chained:
        """What is told of a state and of an action after it."""
        told_action = self.action.along(sources, action)
        conditions = Conditions(heard.words, heard.context, state, told.hidden, action, told_action.keywords.hidden)
        return Chained(state, told.log_probs, told_action, conditions)

    def _stated(self, heard: Heard, layout: TurnLayout, known: Clamp | None) -> tuple[Span, Told, Sources]:
        """The states, how their decoder tells them, and what the actions are written from."""
        state = self._states(heard, layout, known)
        told = self.state_decoder.along(self._state_sources(heard, spans_before(state, layout)), state)
        return state, told, self._action_sources(heard, state, told.hidden)

    def _states(self, heard: Heard, layout: TurnLayout, known: Clamp | None) -> Span:
        """The states turn by turn, each after the one before; only where something is unknown a decoder has to run."""
        if known is not None and bool(known.rows.all()):
            return known.span
        sizes = layout.turn_sizes
        previous = empty_spans(heard.words[: sizes[0]], self.state_length, self.table.num_entities)
        clamps = [None] * len(sizes) if known is None else known.split(sizes)
        spans, start = [], 0
        for size, clamp in zip(sizes, clamps, strict=True):
            now = heard_rows(heard, slice(start, start + size))
            sources = self._state_sources(now, previous.select(slice(0, size)))
            previous = self.state_decoder.write(sources, self.state_length, clamp)
            spans.append(previous.weights)
            start += size
        return Span(torch.cat(spans))

    def _state_sources(self, heard: Heard, previous: Span) -> Sources:
        read: Encoded = self.state_reader(previous, heard.table)
        return Sources(
            (heard.context.summary, read.summary),
            (memory_of(heard.context), memory_of(read)),
            slots_of(previous, read).and_also(heard.mentions),
            heard.table,
        )

    def _action_sources(self, heard: Heard, state: Span, hidden: Encoded) -> Sources:
        return Sources(
            (heard.context.summary, hidden.summary),
            (memory_of(heard.context), memory_of(hidden)),
            slots_of(state, hidden).and_also(heard.mentions),
            heard.table,
        )

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        """Each decoder's span, one after the other."""
        return _perceived(self.chain(self.hear(inputs, layout), layout))

    @torch.no_grad()
    def imagine(
        self, inputs: TurnInputs, layout: TurnLayout, count: int, generator: torch.Generator
    ) -> Iterator[Perception]:
        """The states of `perceive`, with actions drawn."""
        heard, draw = self.hear(inputs, layout), drawn_by(generator)
        stated = self._stated(heard, layout, None)
        for _ in range(count):
            action = self.action.write(stated[2], self.action_length, None, draw, draw)
            yield _perceived(self._chained(heard, *stated, action))

    @torch.no_grad()
    def keyword_namer(self, inputs: TurnInputs, layout: TurnLayout) -> Callable[[], Tensor]:
        sources = self._stated(self.hear(inputs, layout), layout, None)[2]
        return lambda: named_entities(
            self.action.write(sources, self.action_length, None, self.choose_keyword).keywords
        )


def _perceived(chained: Chained) -> Perception:
    keywords = named_entities(chained.conditions.action.keywords)
    return Perception(named_entities(chained.state), chained.action.category, keywords, chained.conditions)


def build_moss(config: Config, world: World) -> Moss:
    """With the sizes every other system has, and VRBot's context encoder."""
    network = config.network
    words = build_words(config, world)
    return Moss(
        words=words,
        table=EntityTable(words, world.entity_words),
        context_encoder=build_context_encoder(config, world),
        state_reader=SpanReader(network.embedding_size, network.hidden_size),
        state_decoder=build_state_decoder(config, num_evidence=2, num_memories=2),
        action=build_action(config, num_evidence=2, num_memories=2),
        generator=build_generator(config, world, words, obeys=True),
        preference=keyword_order(config, world),
        state_length=config.tracker.length,
        action_length=config.policy.length,
        dropout=network.dropout,
        label_weights=weights_of(config.chains),
    )
