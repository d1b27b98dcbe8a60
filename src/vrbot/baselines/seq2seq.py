"""Sequence to sequence with attention and copying: BiGRU over (R_{t-1}, U_t), GRU decoder; no latent variables.

It is VRBot's own context encoder without carried memory and VRBot's own generator with nothing to read but the
context, so a comparison with it measures the state and the action and nothing else.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrbot.config import Config
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.session import CATEGORIES
from vrbot.model.build import CATEGORY_SIZE, build_generator
from vrbot.model.build_reading import build_words
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.policy_network import Action
from vrbot.model.response_generator import Conditions, DecoderState, ResponseGenerator
from vrbot.model.spans import Span, span_of
from vrbot.model.world import World
from vrbot.nets.attention import AdditiveAttention
from vrbot.nets.encoders import BidirectionalEncoder, Encoded


class Seq2Seq(nn.Module):
    """Reads the last two utterances, writes the reply."""

    def __init__(
        self,
        words: nn.Embedding,
        encoder: BidirectionalEncoder,
        attention: AdditiveAttention,
        generator: ResponseGenerator,
        num_entities: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.words, self.encoder, self.attention, self.generator = words, encoder, attention, generator
        self.num_entities = num_entities
        self.dropout = nn.Dropout(dropout)

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """The negative log likelihood of the responses."""
        targets = batch.targets
        given = self._read(batch.inputs)
        log_probs = self.generator.log_prob(given, self._no_category(given), targets.response, targets.response_lengths)
        per_session = torch.zeros(len(batch.session_ids), device=log_probs.device)
        return BatchLoss(
            total=-log_probs.sum(),
            num_turns=int((targets.response_lengths > 0).sum()),
            terms={"reconstruction": log_probs.detach().sum()},
            per_session=per_session.index_add(0, batch.session, -log_probs.detach()),
        )

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        return Perception(state=None, category=None, keywords=None, conditions=self._read(inputs))

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[DecoderState], DecoderState]:
        given: Conditions = perception.conditions.select(rows)
        return self.generator.search_step, self.generator.initial(given, self._no_category(given))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        given: Conditions = perception.conditions
        return self.generator.log_prob(given, self._no_category(given), response, lengths)

    def _read(self, inputs: TurnInputs) -> Conditions:
        read = self.encoder(self.dropout(self.words(inputs.context)), inputs.context_lengths)
        context = Encoded(read.tokens, read.mask, self.attention(read.summary, read.tokens, read.mask))
        nothing, span = _nothing_read(context), _empty_span(context, self.num_entities)
        action = Action(context.summary.new_zeros(len(context.summary), len(CATEGORIES)), span)
        return Conditions(inputs.context, context, span, nothing, action, nothing)

    def _no_category(self, given: Conditions) -> Tensor:
        return given.context.summary.new_zeros(len(given.context.summary), CATEGORY_SIZE)


def _nothing_read(context: Encoded) -> Encoded:
    return Encoded(context.tokens[:, :0], context.mask[:, :0], torch.zeros_like(context.summary))


def _empty_span(context: Encoded, num_entities: int) -> Span:
    nothing = torch.zeros(len(context.summary), 0, dtype=torch.long, device=context.summary.device)
    return span_of(nothing, 0, num_entities)


def build_seq2seq(config: Config, world: World) -> Seq2Seq:
    """With the sizes every other system has."""
    size, hidden = config.network.embedding_size, config.network.hidden_size
    words = build_words(config, world)
    return Seq2Seq(
        words,
        BidirectionalEncoder(size, hidden, config.network.word_dropout),
        AdditiveAttention(hidden, hidden, hidden),
        build_generator(config, world, words, obeys=False),
        world.num_entities,
        config.network.dropout,
    )
