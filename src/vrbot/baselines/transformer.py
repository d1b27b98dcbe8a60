"""A plain Transformer encoder-decoder of about the parameters of `seq2seq`: no recurrence, no copying, no latents.

It reads what `seq2seq` reads, or with `transformer.history_length` the latest words of the whole dialogue.
Letters: N rows (turns), T words read, R response positions, V words, H width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.baselines.turn_losses import batch_loss
from vrbot.config import Config
from vrbot.decoding.step import StepFunction
from vrbot.dialogue.batching import SessionBatch, TurnInputs, TurnLayout
from vrbot.dialogue.vocabulary import BOS, PAD
from vrbot.errors import ConfigError
from vrbot.model.build_reading import build_words
from vrbot.model.contract import BatchLoss, Moment, Perception
from vrbot.model.world import World
from vrbot.nets.transformer import Decoder, DecoderMemory, Encoder, KeysValues, position_vectors
from vrbot.nets.word_head import WordHead, heard_before, real_positions, score_in_blocks


@dataclass(frozen=True, eq=False)
class Read:
    """What a reply is written from: words [N, T], their vectors [N, T, H], which of them exist [N, T]."""

    context_words: Tensor
    vectors: Tensor
    mask: Tensor

    def select(self, rows: Tensor) -> Read:
        return Read(self.context_words[rows], self.vectors[rows], self.mask[rows])


@dataclass(frozen=True, eq=False)
class WritingState:
    """The past of every hypothesis, layer by layer; the memory is kept once per item."""

    past: tuple[KeysValues, ...]
    memory: DecoderMemory

    def select(self, rows: Tensor, items: Tensor | None) -> WritingState:
        past = tuple(layer.select(rows) for layer in self.past)
        return WritingState(past, self.memory if items is None else self.memory.select(items))


class Transformer(nn.Module):
    """Reads the last two utterances (or more), writes the reply."""

    def __init__(
        self,
        words: nn.Embedding,
        encoder: Encoder,
        decoder: Decoder,
        dropout: float,
        history_length: int,
        word_dropout: float = 0.0,
    ) -> None:
        """In training a share of the words read (`word_dropout`) is nothing but a position."""
        super().__init__()
        self.words, self.encoder, self.decoder = words, encoder, decoder
        self.input = nn.Linear(words.embedding_dim, decoder.size)
        self.head = WordHead(words, decoder.size, dropout)
        self.dropout, self.word_dropout = nn.Dropout(dropout), nn.Dropout1d(word_dropout)
        self.history_length = history_length

    def loss(self, batch: SessionBatch, moment: Moment) -> BatchLoss:
        """The negative log likelihood of the responses."""
        targets = batch.targets
        read = self._read(batch.inputs, batch.layout)
        log_probs = self._log_prob(read, targets.response, targets.response_lengths)
        return batch_loss(batch, -log_probs, {"reconstruction": log_probs})

    @torch.no_grad()
    def perceive(self, inputs: TurnInputs, layout: TurnLayout) -> Perception:
        return Perception(state=None, category=None, keywords=None, conditions=self._read(inputs, layout))

    @torch.no_grad()
    def begin_reply(self, perception: Perception, rows: Tensor) -> tuple[StepFunction[WritingState], WritingState]:
        read: Read = perception.conditions.select(rows)
        return self.step, WritingState(self.decoder.no_past(len(rows)), self.decoder.prepare(read.vectors, read.mask))

    @torch.no_grad()
    def reply_log_prob(self, perception: Perception, response: Tensor, lengths: Tensor) -> Tensor:
        return self._log_prob(perception.conditions, response, lengths)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: WritingState) -> tuple[Tensor, WritingState]:
        """Log probabilities of the next word [rows, V]; nothing written before is computed again."""
        position = state.past[0].keys.shape[2]
        embedded = self._embedded(tokens.unsqueeze(1), position).squeeze(1)
        outputs, past = self.decoder.advance(embedded, state.past, state.memory)
        return self.head.log_probs(outputs), WritingState(past, state.memory)

    def _log_prob(self, read: Read, response: Tensor, lengths: Tensor) -> Tensor:
        def score(rows: Tensor, words: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
            chosen = read.select(rows)
            memory = self.decoder.prepare(chosen.vectors, chosen.mask)
            outputs = self.decoder.along(self._embedded(heard_before(words, BOS)), memory)
            row, position = real_positions(words, real)
            return self.head.target_log_prob(outputs[row, position], words[row, position]), row

        return score_in_blocks(score, response, lengths)

    def _read(self, inputs: TurnInputs, layout: TurnLayout) -> Read:
        words, lengths = inputs.context, inputs.context_lengths
        if self.history_length:
            words, lengths = whole_history(words, lengths, layout, self.history_length)
        mask = torch.arange(words.shape[1], device=words.device) < lengths.unsqueeze(1)
        return Read(words, self.encoder(self._placed(self.word_dropout(self._vectors(words))), mask), mask)

    def _embedded(self, words: Tensor, start: int = 0) -> Tensor:
        """Word ids [N, T] that stand at the positions from `start` on -> [N, T, H]."""
        return self._placed(self._vectors(words), start)

    def _vectors(self, words: Tensor) -> Tensor:
        vectors: Tensor = self.input(self.words(words) * math.sqrt(self.words.embedding_dim))
        return vectors

    def _placed(self, vectors: Tensor, start: int = 0) -> Tensor:
        """Vectors [N, T, H] with those of their positions."""
        positions = position_vectors(start, vectors.shape[1], vectors.shape[-1], vectors.device)
        placed: Tensor = self.dropout(vectors + positions)
        return placed


def whole_history(words: Tensor, lengths: Tensor, layout: TurnLayout, limit: int) -> tuple[Tensor, Tensor]:
    """The latest `limit` words of each dialogue up to each turn [N, T], and how many there are [N].

    A turn's words are what the physician said last and what the patient says now, so turns in a row are the dialogue.
    """
    so_far: list[list[int]] = [[] for _ in range(layout.num_sessions)]
    rows: list[list[int]] = []
    for session, line, length in zip(layout.session.tolist(), words.tolist(), lengths.tolist(), strict=True):
        so_far[session] = (so_far[session] + line[:length])[-limit:]
        rows.append(so_far[session])
    width = max(map(len, rows), default=0)
    padded = [row + [PAD] * (width - len(row)) for row in rows]
    counts = torch.tensor([len(row) for row in rows], dtype=torch.long, device=words.device)
    return torch.tensor(padded, dtype=torch.long, device=words.device).view(len(rows), width), counts


def build_transformer(config: Config, world: World) -> Transformer:
    """As wide as every other system's hidden states."""
    network, settings = config.network, config.transformer
    size, heads, factor, dropout = network.hidden_size, settings.heads, settings.feedforward_factor, network.dropout
    if size % heads:
        raise ConfigError(f"transformer.heads = {heads} does not divide network.hidden_size = {size}: use a divisor")
    return Transformer(
        build_words(config, world),
        Encoder(size, settings.layers, heads, factor, dropout),
        Decoder(size, settings.layers, heads, factor, dropout),
        dropout,
        settings.history_length,
        network.word_dropout,
    )
