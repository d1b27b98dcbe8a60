"""The response generator: attends to context, state and action; generates or copies each word (section 3.5, Eq. 15).

Letters: N rows, R response positions, P real positions of all rows, J slots to copy from, V words, H hidden size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.model.context_encoder import Context
from vrbot.model.policy_network import Action
from vrbot.model.spans import Span
from vrbot.nets.attention import DotAttention, Memory
from vrbot.nets.copying import merge_copies, target_log_prob
from vrbot.nets.encoders import Encoded


@dataclass(frozen=True, eq=False)
class Conditions:
    """What a reply is written from: W = (R_{t-1}, U_t, S_t, A^k_t) and their vectors."""

    context_words: Tensor  # [N, T]
    context: Context
    state: Span
    state_read: Encoded
    action: Action
    keywords_read: Encoded

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
        self, words: nn.Embedding, entity_words: Tensor, category_size: int, hidden_size: int, dropout: float, bos: int
    ) -> None:
        super().__init__()
        size = words.embedding_dim
        self.words, self.bos = words, bos
        self.begin = nn.Linear(3 * hidden_size + category_size, hidden_size)
        self.attentions = nn.ModuleList(DotAttention(hidden_size, hidden_size, hidden_size) for _ in range(3))
        self.gates_of_word = nn.Linear(size, 3 * hidden_size, bias=False)
        self.gates_of_readings = nn.Linear(3 * hidden_size, 3 * hidden_size)
        self.gates_of_hidden = nn.Linear(hidden_size, 3 * hidden_size)
        self.output = nn.Linear(hidden_size, size)
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
        """Log p(R | ...) of each row [N], in nats; rows without a response give 0."""
        order = lengths.argsort(descending=True, stable=True)
        order = order[: int((lengths > 0).sum())]
        if len(order) == 0:
            return self.output_bias.sum() * lengths.new_zeros(len(lengths)).float()
        given, categories, response = given.select(order), categories[order], response[order]
        active = (lengths[order][None, :] > torch.arange(response.shape[1], device=response.device)[:, None]).sum(1).tolist()
        start = self.initial(given, categories)
        states = self._states(start, response, active)
        row = torch.cat([torch.arange(n, device=response.device) for n in active])
        step = torch.repeat_interleave(torch.arange(len(active), device=response.device), torch.tensor(active))
        per_word = self._target_log_probs(states, row, step, response, given, start.memory)
        total = torch.zeros(len(lengths), dtype=per_word.dtype, device=per_word.device)
        return total.index_add(0, order[row], per_word)

    def step(self, tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Log probabilities of the next word [R, V] after the tokens [R]; several rows per item are side by side."""
        items = len(state.memory.copy_mask)
        gates = self.gates_of_word(self.words(tokens))
        hidden = self._advance(state.hidden, gates, state.memory, items)
        vectors = self.output(hidden)
        generation = (vectors @ self.words.weight.T + self.output_bias).unflatten(0, (items, -1))
        scores = self._copy_scores(hidden.unflatten(0, (items, -1)), state.memory)
        log_probs = merge_copies(generation, scores, state.memory.copy_words)
        return log_probs.flatten(0, 1), DecoderState(hidden, state.memory)

    def _states(self, start: DecoderState, response: Tensor, active: list[int]) -> Tensor:
        """Decoder states of the real positions, step by step [P, H]; rows stand longest first."""
        first = torch.full_like(response[:, :1], self.bos)
        fed = torch.cat((first, response[:, :-1]), dim=1)
        gates = self.gates_of_word(self.dropout(self.words(fed)))  # [N, R, 3H]
        hidden, states = start.hidden, []
        for position, rows in enumerate(active):
            if rows == 0:
                break
            memory = _first_rows(start.memory, rows)
            hidden = self._advance(hidden[:rows], gates[:rows, position], memory, rows)
            states.append(hidden)
        return torch.cat(states)

    def _advance(self, hidden: Tensor, word_gates: Tensor, memory: ReplyMemory, items: int) -> Tensor:
        """One GRU step on [b^h; b^s; b^a; e]: what the last state reads, and the last word."""
        query = hidden.unflatten(0, (items, -1))
        readings = [
            attention.read(query, part)  # type: ignore[operator]
            for attention, part in zip(self.attentions, memory.readings, strict=True)
        ]
        read = self.gates_of_readings(torch.cat(readings, dim=-1).flatten(0, 1))
        from_input = (word_gates + read).chunk(3, dim=-1)
        from_hidden = self.gates_of_hidden(hidden).chunk(3, dim=-1)
        reset = torch.sigmoid(from_input[0] + from_hidden[0])
        update = torch.sigmoid(from_input[1] + from_hidden[1])
        candidate = torch.tanh(from_input[2] + reset * from_hidden[2])
        return torch.lerp(candidate, hidden, update)

    def _target_log_probs(
        self, states: Tensor, row: Tensor, step: Tensor, response: Tensor, given: Conditions, memory: ReplyMemory
    ) -> Tensor:
        target = response[row, step]  # [P]
        logits = self.output(self.dropout(states)) @ self.words.weight.T + self.output_bias  # [P, V]
        target_logit = logits.gather(1, target.unsqueeze(1)).squeeze(1)
        padded = states.new_zeros(*response.shape, states.shape[-1]).index_put((row, step), states)
        scores = self._copy_scores(padded, memory)[row, step]  # [P, J]
        match = self._copy_match(target, row, given)
        return target_log_prob(target_logit, logits.logsumexp(dim=-1), scores, match)

    def _copy_match(self, target: Tensor, row: Tensor, given: Conditions) -> Tensor:
        """How far each slot holds the target word [P, J]; spans hold a word as far as their weights say."""
        entity = self.word_entity[target]
        is_entity = (entity < len(self.entity_words)).unsqueeze(-1)
        parts = [(given.context_words[row] == target.unsqueeze(-1)).float()]
        for span in (given.state, given.action.keywords):
            parts.append(span.weights[row, :, entity] * is_entity)
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
            tuple(
                attention.memory(part.tokens, part.mask)  # type: ignore[operator]
                for attention, part in zip(self.attentions, parts, strict=True)
            ),
            torch.cat([part.tokens for part in parts], dim=1),
            torch.cat([part.mask for part in parts], dim=1),
            torch.cat((given.context_words, *words), dim=1),
        )


def _first_rows(memory: ReplyMemory, rows: int) -> ReplyMemory:
    """Views of the first rows; nothing is copied."""
    readings = tuple(Memory(m.keys[:rows], m.values[:rows], m.mask[:rows]) for m in memory.readings)
    return ReplyMemory(readings, memory.copy_vectors[:rows], memory.copy_mask[:rows], memory.copy_words[:rows])
