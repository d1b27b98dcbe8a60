"""A reply's decoder with a selector gate: each word is a word of the vocabulary, or an entity that it points at.

p(w) = (1 - gate) p_vocabulary(w) + gate * sum over slots j that hold w of p_pointer(j). Where nothing can be pointed
at, the gate is closed. Letters: N rows, R response positions, Q positions or hypotheses per item, J slots, V words,
H hidden size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vrbot.nets.copying import add_copies
from vrbot.nets.word_head import ROWS_AT_ONCE, WordHead, heard_before, real_positions
from vrbot.probability.category import masked_log_softmax

CLOSED_AT_FIRST = -4.0
"""Log odds of the gate before anything is learned; few words are entities that can be pointed at."""


@dataclass(frozen=True, eq=False)
class Sources:
    """What a reply is written from. `readings` (for the cell) and `pointed` (for the pointer) can `select` rows."""

    context_words: Tensor  # [N, T]
    evidence: Tensor  # [N, F], what the decoder begins from
    readings: tuple[Any, ...]
    pointed: Any
    slot_words: Tensor  # [N, J]
    slot_mask: Tensor  # [N, J]

    def select(self, rows: Tensor | slice) -> Sources:
        return Sources(
            self.context_words[rows],
            self.evidence[rows],
            tuple(memory.select(rows) for memory in self.readings),
            self.pointed.select(rows),
            self.slot_words[rows],
            self.slot_mask[rows],
        )


@dataclass(frozen=True, eq=False)
class WriterState:
    """One row per hypothesis: hidden state [R, H], slots already written [R, J]; the sources are kept once per item."""

    hidden: Tensor
    used: Tensor
    sources: Sources

    def select(self, rows: Tensor, items: Tensor | None) -> WriterState:
        return WriterState(
            self.hidden[rows], self.used[rows], self.sources if items is None else self.sources.select(items)
        )


@dataclass(frozen=True, eq=False)
class WrittenTerms:
    """Per row [N], in nats: log p(R | ...), and the log probability of the gate's right decisions."""

    log_prob: Tensor
    gate: Tensor


class WordOrEntity(nn.Module):
    """A decoder whose output words share their vectors with the input words.

    `cell` moves from word to word (see `model.reply_cells`); `pointer` gives log probabilities [N, Q, J] of the free
    slots from outputs [N, Q, H], the memory it points at, and which slots are free [N, Q, J]. With `once` a tracker
    keeps what the reply has named: a slot whose word was written is free no more. The layers whose result goes through
    a tanh, the cell's with them, learn at `squashed_rate_factor` of the rate: at all of a high one their units run to
    their ends within ten updates, and what is learnt is how frequent words are (decision 0033).
    """

    def __init__(
        self,
        words: nn.Embedding,
        cell: nn.Module,
        pointer: nn.Module,
        evidence_size: int,
        hidden_size: int,
        dropout: float,
        bos: int,
        *,
        once: bool,
        squashed_rate_factor: float,
    ) -> None:
        super().__init__()
        self.words, self.cell, self.pointer, self.bos, self.once = words, cell, pointer, bos, once
        self.begin = nn.Linear(evidence_size, hidden_size)
        self.gate = nn.Linear(hidden_size, 1)
        nn.init.zeros_(self.gate.weight)
        nn.init.constant_(self.gate.bias, CLOSED_AT_FIRST)
        self.head = WordHead(words, hidden_size, dropout)
        self.dropout = nn.Dropout(dropout)
        for layer in (self.begin, getattr(cell, "combine", None)):
            if layer is not None:
                layer.learning_rate_factor = squashed_rate_factor

    def initial(self, sources: Sources) -> WriterState:
        return WriterState(torch.tanh(self.begin(sources.evidence)), torch.zeros_like(sources.slot_mask), sources)

    def terms(self, sources: Sources, response: Tensor, lengths: Tensor) -> WrittenTerms:
        """What responses [N, R] cost; rows without one cost nothing. Longest first, a block at a time."""
        order = lengths.argsort(descending=True, stable=True)[: int((lengths > 0).sum())]
        log_prob = torch.zeros(len(lengths), device=response.device)
        gate = torch.zeros_like(log_prob)
        for rows in order.split(ROWS_AT_ONCE) if len(order) else ():
            words = response[rows, : int(lengths[rows[0]])]
            there = real_positions(words, lengths[rows])
            of_words, of_gates = self._word_terms(sources.select(rows), words, lengths[rows], there)
            row = rows[there[0]]
            log_prob, gate = log_prob.index_add(0, row, of_words), gate.index_add(0, row, of_gates)
        return WrittenTerms(log_prob, gate)

    @torch.no_grad()
    def step(self, tokens: Tensor, state: WriterState) -> tuple[Tensor, WriterState]:
        """Log probabilities of the next word [R, V] after the tokens [R]; several rows per item are side by side."""
        sources, items = state.sources, len(state.sources.slot_mask)
        used = state.used
        if self.once:
            written = sources.slot_words.unsqueeze(1) == tokens.view(items, -1, 1)
            used = used | written.flatten(0, 1)
        advanced = self.cell.advance(state.hidden, self.words(tokens), sources.readings)  # type: ignore[operator]
        outputs = advanced.output.unflatten(0, (items, -1))  # [M, Q, H]
        free = sources.slot_mask.unsqueeze(1) & ~used.unflatten(0, (items, -1))
        of_words, of_entities = self.shares(outputs, free)
        vocabulary = self.head.log_probs(outputs) + of_words.unsqueeze(-1)
        pointed = self.pointer(outputs, sources.pointed, free) + of_entities.unsqueeze(-1)
        log_probs = add_copies(vocabulary, pointed, sources.slot_words)
        return log_probs.flatten(0, 1), WriterState(advanced.hidden, used, sources)

    def shares(self, outputs: Tensor, free: Tensor) -> tuple[Tensor, Tensor]:
        """Log shares of the vocabulary and of the pointer [N, Q]; the vocabulary has it all where no slot is free."""
        gate = self.gate(outputs).squeeze(-1)
        possible = free.any(dim=-1)
        of_words = torch.where(possible, nn.functional.logsigmoid(-gate), 0.0)
        return of_words, torch.where(possible, nn.functional.logsigmoid(gate), -math.inf)

    def _word_terms(
        self, sources: Sources, response: Tensor, lengths: Tensor, there: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Log probabilities of every real word and of its gate; `there` are the words' rows and positions."""
        start = self.initial(sources)
        fed = self.dropout(self.words(heard_before(response, self.bos)))
        outputs = self.cell.along(start.hidden, fed, lengths, sources.readings)  # type: ignore[operator]  # [N, R, H]
        holds = sources.slot_words.unsqueeze(1) == response.unsqueeze(2)  # [N, R, J]
        free = sources.slot_mask.unsqueeze(1) & ~self._used_before(holds)
        of_words, of_entities = self.shares(outputs, free)
        generated = self.head.target_log_prob(outputs[there], response[there]) + of_words[there]
        mass = (self.pointer(outputs, sources.pointed, free).exp() * (holds & free)).sum(dim=-1)[there]
        is_held = mass >= torch.finfo(mass.dtype).tiny  # the gradient of less would be infinite
        pointed = torch.where(is_held, mass, 1.0).log() + of_entities[there]
        log_probs = torch.logaddexp(generated, torch.where(is_held, pointed, -math.inf))
        right = torch.where((holds & free).any(dim=-1), of_entities, of_words)[there]
        return log_probs, right

    def _used_before(self, holds: Tensor) -> Tensor:
        """Which slots were written before each position [N, R, J]."""
        before = torch.zeros_like(holds)
        if self.once:
            before[:, 1:] = holds[:, :-1].long().cumsum(dim=1) > 0
        return before


@dataclass(frozen=True, eq=False)
class PointedSlots:
    """Vectors of the slots [N, J, H], and their log scores beforehand [N, J]."""

    vectors: Tensor
    prior: Tensor

    def select(self, rows: Tensor | slice) -> PointedSlots:
        return PointedSlots(self.vectors[rows], self.prior[rows])


class SlotPointer(nn.Module):
    """Points at slots by scaled dot products with their vectors, on top of how likely each is beforehand."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, outputs: Tensor, slots: PointedSlots, free: Tensor) -> Tensor:
        scores = torch.bmm(self.query(outputs), slots.vectors.transpose(1, 2)) / math.sqrt(outputs.shape[-1])
        return masked_log_softmax(scores + slots.prior.unsqueeze(1), free)
