"""HRED (Sordoni et al. 2015; Serban et al. 2016): words to utterances, utterances to a dialogue, dialogue to a reply.

A re-implementation from the papers' descriptions on the parts all systems share. The decoder begins from the
dialogue's vector and is fed it with every word; it neither attends nor copies unless `hred.attention` and
`hred.copying` say so, and then it does over the last two utterances, as `seq2seq`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrbot.baselines.turn_losses import batch_loss
from vrbot.config import Config
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.vocabulary import BOS, SEP
from vrbot.model.build_reading import build_words
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.world import World
from vrbot.nets.attention import Memory
from vrbot.nets.conditioned_decoder import ConditionedDecoder, Told, ToldState
from vrbot.nets.encoders import Encoded
from vrbot.nets.hierarchical import HierarchicalEncoder


class Hred(nn.Module):
    """Reads all utterances so far, writes the reply."""

    def __init__(
        self, words: nn.Embedding, encoder: HierarchicalEncoder, decoder: ConditionedDecoder, dropout: float
    ) -> None:
        super().__init__()
        self.words, self.encoder, self.decoder = words, encoder, decoder
        self.dropout = nn.Dropout(dropout)

    def loss(self, batch: SessionBatch, moment: Moment, always: Tensor | None = None) -> BatchLoss:
        """The negative log likelihood of the responses; words that are `always` [N, T] read are never dropped."""
        targets = batch.targets
        told = self._read(batch.inputs, batch.layout, always)
        log_probs = self.decoder.log_prob(told, targets.response, targets.response_lengths)
        return batch_loss(batch, -log_probs, {"reconstruction": log_probs})

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        return Perception(state=None, category=None, keywords=None, conditions=self._read(inputs, layout))

    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[ToldState], ToldState]:
        return self.decoder.step, self.decoder.initial(perception.conditions.select(rows))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        return self.decoder.log_prob(perception.conditions, response, lengths)

    def _read(self, inputs: TurnInputs, layout: TurnLayout, always: Tensor | None = None) -> Told:
        embedded = self.dropout(self.words(inputs.context))
        read: Encoded = self.encoder(embedded, inputs.context, inputs.context_lengths, layout, always)
        return Told(read.summary, inputs.context, Memory(read.tokens, read.mask))


def build_hred(config: Config, world: World, *, reads: bool = False) -> Hred:
    """With the sizes every other system has; one that `reads` attends to the last words and copies them in any case."""
    words, hidden = build_words(config, world), config.network.hidden_size
    decoder = build_decoder(config, words, hidden, reads=reads)
    return Hred(words, build_encoder(config), decoder, config.network.dropout)


def build_encoder(config: Config) -> HierarchicalEncoder:
    network = config.network
    return HierarchicalEncoder(network.embedding_size, network.hidden_size, network.dropout, SEP, network.word_dropout)


def build_decoder(
    config: Config, words: nn.Embedding, condition_size: int, *, reads: bool = False
) -> ConditionedDecoder:
    network, settings = config.network, config.hred
    return ConditionedDecoder(
        words,
        condition_size,
        network.hidden_size,
        network.dropout,
        BOS,
        attention=reads or settings.attention,
        copying=reads or settings.copying,
    )
