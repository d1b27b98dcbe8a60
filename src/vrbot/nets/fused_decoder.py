"""A decoder that says words and knows one piece of knowledge: two GRUs from one state, mixed by a gate (Lian et al.
2019, hierarchical gated fusion).

Letters: N rows, R response positions, P real positions, D embedding size, H hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.nets.attention import DotAttention, Memory
from vrbot.nets.word_head import WordHead, heard_before, real_positions, score_in_blocks


@dataclass(frozen=True, eq=False)
class Fused:
    """One step: what the word GRU and the knowledge GRU made of the last state, the gate, and their mixture, [rows, H]
    each."""

    spoken: Tensor
    known: Tensor
    gate: Tensor

    @property
    def hidden(self) -> Tensor:
        """gate * spoken + (1 - gate) * known."""
        return torch.lerp(self.known, self.spoken, self.gate)


class FusedCell(nn.Module):
    """The recurrence; what enters from words and knowledge does not depend on the state and is projected before."""

    def __init__(self, embedding_size: int, knowledge_size: int, hidden_size: int) -> None:
        super().__init__()
        self.gates_of_word = nn.Linear(embedding_size, 3 * hidden_size)
        self.gates_of_knowledge = nn.Linear(knowledge_size, 3 * hidden_size)
        self.gates_of_hidden = nn.Linear(hidden_size, 6 * hidden_size)
        self.from_spoken = nn.Linear(hidden_size, hidden_size)
        self.from_known = nn.Linear(hidden_size, hidden_size)
        self.gate = nn.Linear(2 * hidden_size, hidden_size)

    def forward(self, hidden: Tensor, word_gates: Tensor, knowledge_gates: Tensor) -> Fused:
        """States [rows, H] and the projections of word and knowledge [rows, 3H] -> the next step."""
        for_spoken, for_known = self.gates_of_hidden(hidden).chunk(2, dim=-1)
        spoken = _gru_step(hidden, word_gates, for_spoken)
        known = _gru_step(hidden, knowledge_gates, for_known)
        seen = torch.cat((torch.tanh(self.from_spoken(spoken)), torch.tanh(self.from_known(known))), dim=-1)
        return Fused(spoken, known, torch.sigmoid(self.gate(seen)))


def _gru_step(hidden: Tensor, from_input: Tensor, from_hidden: Tensor) -> Tensor:
    given, held = from_input.chunk(3, dim=-1), from_hidden.chunk(3, dim=-1)
    reset, update = torch.sigmoid(given[0] + held[0]), torch.sigmoid(given[1] + held[1])
    candidate = torch.tanh(given[2] + reset * held[2])
    return torch.lerp(candidate, hidden, update)


@dataclass(frozen=True, eq=False)
class Informed:
    """What a reply is written from: the context's vector [N, H], its words [N, T] and their vectors, and a piece of
    knowledge [N, K]."""

    summary: Tensor
    context_words: Tensor
    memory: Memory
    knowledge: Tensor

    def select(self, rows: Tensor) -> Informed:
        return Informed(self.summary[rows], self.context_words[rows], self.memory.select(rows), self.knowledge[rows])


@dataclass(frozen=True, eq=False)
class InformedState:
    """One hidden state per hypothesis [rows, H]; the projected knowledge [items, 3H] and the memory once per item."""

    hidden: Tensor
    knowledge_gates: Tensor
    memory: Memory

    def select(self, rows: Tensor, items: Tensor | None) -> InformedState:
        if items is None:
            return InformedState(self.hidden[rows], self.knowledge_gates, self.memory)
        return InformedState(self.hidden[rows], self.knowledge_gates[items], self.memory.select(items))


class FusedDecoder(nn.Module):
    """Words and knowledge fused step by step; the states then read the context, and both predict the word."""

    def __init__(self, words: nn.Embedding, knowledge_size: int, hidden_size: int, dropout: float, bos: int) -> None:
        super().__init__()
        self.words, self.bos = words, bos
        self.begin = nn.Linear(hidden_size + knowledge_size, hidden_size)
        self.cell = FusedCell(words.embedding_dim, knowledge_size, hidden_size)
        self.attention = DotAttention(hidden_size, hidden_size)
        self.combine = nn.Linear(2 * hidden_size, hidden_size)
        self.head = WordHead(words, hidden_size, dropout)
        self.dropout = nn.Dropout(dropout)

    def initial(self, given: Informed) -> InformedState:
        hidden = torch.tanh(self.begin(torch.cat((given.summary, given.knowledge), dim=-1)))
        return InformedState(hidden, self.cell.gates_of_knowledge(given.knowledge), given.memory)

    def log_prob(self, given: Informed, response: Tensor, lengths: Tensor) -> Tensor:
        """Log p(R | ...) of each row [N], in nats."""

        def score(rows: Tensor, words: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
            return self._word_log_probs(given.select(rows), words, real)

        return score_in_blocks(score, response, lengths)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: InformedState) -> tuple[Tensor, InformedState]:
        """Log probabilities of the next word [rows, V]; the rows of an item stand side by side."""
        items = len(state.knowledge_gates)
        per_item = len(tokens) // items
        knowledge = state.knowledge_gates.repeat_interleave(per_item, dim=0)
        hidden = self.cell(state.hidden, self.cell.gates_of_word(self.words(tokens)), knowledge).hidden
        outputs = self._read(hidden.unflatten(0, (items, per_item)), state.memory).flatten(0, 1)
        return self.head.log_probs(outputs), InformedState(hidden, state.knowledge_gates, state.memory)

    def _word_log_probs(self, given: Informed, response: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        start = self.initial(given)
        heard = self.words(heard_before(response, self.bos))
        gates = self.cell.gates_of_word(self.dropout(heard)).unbind(dim=1)
        counts = (lengths[None, :] > torch.arange(response.shape[1], device=lengths.device)[:, None]).sum(dim=1)
        hidden, knowledge, states = start.hidden, start.knowledge_gates, []
        for word_gates, active in zip(gates, counts.tolist(), strict=True):  # rows stand longest first
            hidden = self.cell(hidden[:active], word_gates[:active], knowledge[:active]).hidden
            states.append(nn.functional.pad(hidden, (0, 0, 0, len(response) - active)))
        outputs = self._read(torch.stack(states, dim=1), given.memory)
        row, position = real_positions(response, lengths)
        return self.head.target_log_prob(outputs[row, position], response[row, position]), row

    def _read(self, states: Tensor, memory: Memory) -> Tensor:
        return torch.tanh(self.combine(torch.cat((states, self.attention.read(states, memory)), dim=-1)))
