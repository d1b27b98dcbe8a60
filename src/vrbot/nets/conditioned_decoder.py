"""A GRU decoder that begins from one vector and is fed it with every word; reading and copying words are optional.

Letters: N rows, R response positions, P real positions, J words that can be read or copied, C size of the condition,
H hidden size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.nets.attention import DotAttention, Memory
from vrbot.nets.copying import merge_copies_in_place, target_log_prob
from vrbot.nets.word_head import WordHead, heard_before, real_positions, score_in_blocks


@dataclass(frozen=True, eq=False)
class Told:
    """What a reply is written from: a vector [N, C], and the words of the context [N, J] with their vectors."""

    condition: Tensor
    context_words: Tensor
    memory: Memory

    def select(self, rows: Tensor) -> Told:
        return Told(self.condition[rows], self.context_words[rows], self.memory.select(rows))


@dataclass(frozen=True, eq=False)
class ToldState:
    """One hidden state per hypothesis [rows, H]; what the decoder was told is kept once per item."""

    hidden: Tensor
    told: Told

    def select(self, rows: Tensor, items: Tensor | None) -> ToldState:
        return ToldState(self.hidden[rows], self.told if items is None else self.told.select(items))


class ConditionedDecoder(nn.Module):
    """Runs over the words and the condition alone, all at once; with `attention` its states then read the context,
    with `copying` they also copy from it."""

    def __init__(
        self,
        words: nn.Embedding,
        condition_size: int,
        hidden_size: int,
        dropout: float,
        bos: int,
        *,
        attention: bool = False,
        copying: bool = False,
    ) -> None:
        super().__init__()
        self.words, self.bos = words, bos
        self.begin = nn.Linear(condition_size, hidden_size)
        self.gru = nn.GRU(words.embedding_dim + condition_size, hidden_size, batch_first=True)
        self.attention = DotAttention(hidden_size, hidden_size) if attention else None
        self.combine = nn.Linear(2 * hidden_size, hidden_size) if attention else None
        self.copy_query = nn.Linear(hidden_size, hidden_size, bias=False) if copying else None
        self.head = WordHead(words, hidden_size, dropout)
        self.dropout = nn.Dropout(dropout)

    def initial(self, told: Told) -> ToldState:
        return ToldState(torch.tanh(self.begin(told.condition)), told)

    def log_prob(self, told: Told, response: Tensor, lengths: Tensor, heard: Tensor | None = None) -> Tensor:
        """Log p(R | ...) of each row [N], in nats; `heard` [N, R] are the words before each, if not the true ones."""
        before = heard_before(response, self.bos) if heard is None else heard

        def score(rows: Tensor, words: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
            return self._word_log_probs(told.select(rows), before[rows, : words.shape[1]], words, real)

        return score_in_blocks(score, response, lengths)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: ToldState) -> tuple[Tensor, ToldState]:
        """Log probabilities of the next word [rows, V]; the rows of an item stand side by side."""
        told, items = state.told, len(state.told.condition)
        fed = self._fed(self.words(tokens).unflatten(0, (items, -1)), told)  # [items, Q, D + C]
        states, _ = self.gru(fed.flatten(0, 1).unsqueeze(1), state.hidden.unsqueeze(0))
        outputs = self._read(states.view(items, -1, states.shape[-1]), told)
        scores = self._copy_scores(outputs, told)
        log_probs = merge_copies_in_place(self.head.logits(outputs), scores, told.context_words)
        return log_probs.flatten(0, 1), ToldState(states.squeeze(1), told)

    def _word_log_probs(self, told: Told, heard: Tensor, response: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        fed = self._fed(self.dropout(self.words(heard)), told)
        states, _ = self.gru(fed, self.initial(told).hidden.unsqueeze(0))
        outputs = self._read(states, told)  # [N, R, H]
        row, position = real_positions(response, lengths)
        logit, total = self.head.target_and_total(outputs[row, position], response[row, position])
        if self.copy_query is None:
            return logit - total, row
        match = (told.context_words.unsqueeze(1) == response.unsqueeze(-1)).float()[row, position]
        return target_log_prob(logit, total, self._copy_scores(outputs, told)[row, position], match), row

    def _fed(self, words: Tensor, told: Told) -> Tensor:
        """Words [N, Q, D] with the condition beside each."""
        return torch.cat((words, told.condition.unsqueeze(1).expand(-1, words.shape[1], -1)), dim=-1)

    def _read(self, states: Tensor, told: Told) -> Tensor:
        if self.attention is None or self.combine is None:
            return states
        return torch.tanh(self.combine(torch.cat((states, self.attention.read(states, told.memory)), dim=-1)))

    def _copy_scores(self, outputs: Tensor, told: Told) -> Tensor:
        """[N, Q, H] -> [N, Q, J]; no slots where nothing is copied."""
        if self.copy_query is None:
            return outputs[..., :0]
        scores = torch.bmm(self.copy_query(outputs), told.memory.values.transpose(1, 2))
        return scores.masked_fill(~told.memory.mask.unsqueeze(1), -math.inf)
