"""The response generator: attends to context, state and action; generates or copies each word (section 3.5, Eq. 16).

Letters: N rows, R response positions, P real positions of all rows, J slots to copy from, V words, H hidden size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.model.context_encoder import Context
from vrbot.model.policy_network import Action
from vrbot.model.reply_cells import ReadingsFed, ReadingsLate
from vrbot.model.spans import Span
from vrbot.nets.attention import Memory
from vrbot.nets.copying import merge_copies_in_place, target_log_prob
from vrbot.nets.encoders import Encoded
from vrbot.nets.vocabulary_scores import target_and_total

ROWS_AT_ONCE = 96


@dataclass(frozen=True, eq=False)
class Conditions:
    """What a reply is written from: W = (R_{t-1}, U_t, S_t, A^k_t) and their vectors."""

    context_words: Tensor  # [N, T]
    context: Context
    state: Span
    state_read: Encoded
    action: Action
    keywords_read: Encoded

    def followed_by(self, other: Conditions) -> Conditions:
        """The rows of both."""
        return Conditions(
            torch.cat((self.context_words, other.context_words)),
            self.context.followed_by(other.context),
            self.state.followed_by(other.state),
            self.state_read.followed_by(other.state_read),
            self.action.followed_by(other.action),
            self.keywords_read.followed_by(other.keywords_read),
        )

    def select(self, rows: Tensor) -> Conditions:
        return Conditions(
            self.context_words[rows],
            self.context.select(rows),
            self.state.select(rows),
            self.state_read.select(rows),
            self.action.select(rows),
            self.keywords_read.select(rows),
        )


@dataclass(frozen=True, eq=False)
class ReplyMemory:
    """Everything a decoder reads again at each step, with keys projected once."""

    readings: tuple[Memory, ...]
    copy_vectors: Tensor  # [N, J, H]
    copy_mask: Tensor  # [N, J]
    copy_words: Tensor  # [N, J]

    def select(self, rows: Tensor) -> ReplyMemory:
        return ReplyMemory(
            tuple(memory.select(rows) for memory in self.readings),
            self.copy_vectors[rows],
            self.copy_mask[rows],
            self.copy_words[rows],
        )


@dataclass(frozen=True, eq=False)
class DecoderState:
    """One row per hypothesis: the hidden state [R, H]; the memory is kept once per item."""

    hidden: Tensor
    memory: ReplyMemory

    def select(self, rows: Tensor, items: Tensor | None) -> DecoderState:
        return DecoderState(self.hidden[rows], self.memory if items is None else self.memory.select(items))


class ResponseGenerator(nn.Module):
    """A GRU decoder whose output words share their vectors with the input words."""

    entity_words: Tensor
    word_entity: Tensor

    def __init__(
        self,
        words: nn.Embedding,
        entity_words: Tensor,
        category_size: int,
        hidden_size: int,
        dropout: float,
        bos: int,
        cell: ReadingsFed | ReadingsLate,
    ) -> None:
        super().__init__()
        self.words, self.bos, self.cell = words, bos, cell
        self.begin = nn.Linear(3 * hidden_size + category_size, hidden_size)
        self.output = nn.Linear(hidden_size, words.embedding_dim)
        self.output_bias = nn.Parameter(torch.zeros(words.num_embeddings))
        self.copy_query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("entity_words", entity_words.long(), persistent=False)
        word_entity = torch.full((words.num_embeddings,), len(entity_words))
        word_entity[entity_words.long()] = torch.arange(len(entity_words))
        self.register_buffer("word_entity", word_entity, persistent=False)

    def initial(self, given: Conditions, categories: Tensor) -> DecoderState:
        """b^R_0 = W_d [h^c; h^S; e^{A^c}; h^{A^k}], and the memories; categories are vectors [N, D]."""
        parts = (given.context.summary, given.state_read.summary, categories, given.keywords_read.summary)
        return DecoderState(torch.tanh(self.begin(torch.cat(parts, dim=-1))), self._memory(given))

    def log_prob(self, given: Conditions, categories: Tensor, response: Tensor, lengths: Tensor) -> Tensor:
        """Log p(R | ...) of each row [N], in nats; rows without a response give 0.

        Rows are taken longest first, a block at a time, so that little padding is computed.
        """
        order = lengths.argsort(descending=True, stable=True)[: int((lengths > 0).sum())]
        total = torch.zeros(len(lengths), device=response.device)
        for rows in order.split(ROWS_AT_ONCE) if len(order) else ():
            words = response[rows, : int(lengths[rows[0]])]
            per_word, row = self._word_log_probs(given.select(rows), categories[rows], words, lengths[rows])
            total = total.index_add(0, rows[row], per_word)
        return total

    def _word_log_probs(
        self, given: Conditions, categories: Tensor, response: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log probability of every real word [P], and the row it stands in [P]."""
        start = self.initial(given, categories)
        first = torch.full_like(response[:, :1], self.bos)
        fed = self.dropout(self.words(torch.cat((first, response[:, :-1]), dim=1)))
        outputs = self.cell.along(start.hidden, fed, lengths, start.memory.readings)  # [N, R, H]
        there = torch.arange(response.shape[1], device=response.device) < lengths.unsqueeze(1)
        row, step = there.nonzero(as_tuple=True)
        return self._target_log_probs(outputs, row, step, response, given, start.memory), row

    @torch.no_grad()
    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Log probabilities of the next word [R, V] after the tokens [R]; several rows per item are side by side."""
        items = len(state.memory.copy_mask)
        advanced = self.cell.advance(state.hidden, self.words(tokens), state.memory.readings)
        generation = nn.functional.linear(self.output(advanced.output), self.words.weight, self.output_bias)
        scores = self._copy_scores(advanced.output.unflatten(0, (items, -1)), state.memory)
        log_probs = merge_copies_in_place(generation.unflatten(0, (items, -1)), scores, state.memory.copy_words)
        return log_probs.flatten(0, 1), DecoderState(advanced.hidden, state.memory)

    def _target_log_probs(
        self, outputs: Tensor, row: Tensor, step: Tensor, response: Tensor, given: Conditions, memory: ReplyMemory
    ) -> Tensor:
        """Log probability of every real word [P]; only those positions are projected to the vocabulary."""
        target = response[row, step]  # [P]
        vectors = self.output(self.dropout(outputs[row, step]))
        target_logit, total = target_and_total(vectors, self.words.weight, self.output_bias, target)
        scores = self._copy_scores(outputs, memory)[row, step]  # [P, J]
        match = self._copy_match(response, given)[row, step]
        return target_log_prob(target_logit, total, scores, match)

    def _copy_match(self, response: Tensor, given: Conditions) -> Tensor:
        """How far each slot holds each target word [N, R, J]; spans hold a word as far as their weights say."""
        entity = self.word_entity[response]  # [N, R]; E where the word is no entity, and no span holds that
        is_entity = (entity < len(self.entity_words)).unsqueeze(-1)
        parts = [(given.context_words.unsqueeze(1) == response.unsqueeze(-1)).float()]
        for span in (given.state, given.action.keywords):
            index = entity.unsqueeze(1).expand(-1, span.weights.shape[1], -1)
            parts.append(span.weights.gather(2, index).transpose(1, 2) * is_entity)
        return torch.cat(parts, dim=-1)

    def _copy_scores(self, states: Tensor, memory: ReplyMemory) -> Tensor:
        """h^W_j . b, [N, Q, H] -> [N, Q, J]."""
        scores = torch.bmm(self.copy_query(states), memory.copy_vectors.transpose(1, 2))
        return scores.masked_fill(~memory.copy_mask.unsqueeze(1), -math.inf)

    def _memory(self, given: Conditions) -> ReplyMemory:
        parts = (given.context, given.state_read, given.keywords_read)
        spans = (given.state, given.action.keywords)
        words = [self.entity_words[span.ids.clamp_max(len(self.entity_words) - 1)] for span in spans]
        return ReplyMemory(
            tuple(Memory(part.tokens, part.mask) for part in parts),
            torch.cat([part.tokens for part in parts], dim=1),
            torch.cat([part.mask for part in parts], dim=1),
            torch.cat((given.context_words, *words), dim=1),
        )
