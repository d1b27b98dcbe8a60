"""How a reply's decoder moves from word to word, and when it reads what it is conditioned on.

Letters: N rows, R response positions, Q hypotheses per item, D embedding size, H hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from vrbot.nets.attention import DotAttention, FoldedMemory, LongMemory, Memory, read_folded, read_scored
from vrbot.nets.prepared import Prepared, Projection
from vrbot.nets.reading_gru import read_along
from vrbot.nets.recurrence import GateParts, gru_along, gru_step, pack, spread

NUM_READINGS = 3
"""Context, state and action."""


@dataclass(frozen=True, eq=False)
class Advanced:
    """The next hidden state and the vector that predicts the next word, [rows, H] each."""

    hidden: Tensor
    output: Tensor


class ReadingsFed(nn.Module):
    """The paper's: what the last state reads enters the GRU cell together with the last word."""

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(DotAttention(hidden_size, hidden_size) for _ in range(NUM_READINGS))
        self.gates_of_word = nn.Linear(embedding_size, 3 * hidden_size, bias=False)
        self.gates_of_readings = nn.Linear(NUM_READINGS * hidden_size, 3 * hidden_size)
        self.gates_of_hidden = nn.Linear(hidden_size, 3 * hidden_size)
        self._from_hidden, self._from_input = Prepared(_state_products), Prepared(_input_products)
        self._from_hidden_few, self._from_input_few = Prepared(_state_products_folded), Prepared(_input_products_folded)

    @torch.no_grad()
    def prepared(self, readings: Sequence[Memory]) -> tuple[Memory, ...]:
        """Memories as they are best read step by step: the spans' products with the weights are taken beforehand."""
        context, *spans = readings
        size, folded = self.gates_of_hidden.in_features, []
        for i, memory in enumerate(spans, start=1):
            attention = cast("DotAttention", self.attentions[i])
            keys = memory.values @ (attention.project_query.weight / math.sqrt(size))
            told = memory.values @ self.gates_of_readings.weight[:, i * size : (i + 1) * size].T
            folded.append(FoldedMemory(memory.values, memory.mask, keys, told))
        return LongMemory(context.values, context.mask), *folded

    @torch.no_grad()
    def advance(self, hidden: Tensor, word: Tensor, readings: Sequence[Memory]) -> Advanced:
        """One step, without gradient, for rows that stand side by side per item; words [rows, D]."""
        if any(isinstance(memory, FoldedMemory) for memory in readings):
            return self._advance_prepared(hidden, word, readings)
        size, count, of_hidden, of_read = hidden.shape[1], NUM_READINGS, self.gates_of_hidden, self.gates_of_readings
        attended = [weight for each in self.attentions for weight in each.parameters()]
        told = self._from_hidden.of(of_hidden.weight, of_hidden.bias, *attended)(hidden)  # [rows, 3H + MH + M]
        by_item = told.unflatten(0, (len(readings[0].mask), -1))  # [items, Q, .]
        read = []
        for i, memory in enumerate(readings):
            query = by_item[..., (3 + i) * size : (4 + i) * size]
            read.append(read_scored(query, by_item[..., i - count, None], memory).flatten(0, 1))
        gates = self._from_input.of(self.gates_of_word.weight, of_read.weight, of_read.bias)(
            torch.cat((word, *read), dim=1)
        )
        return _passed(gates, told, hidden)

    def _advance_prepared(self, hidden: Tensor, word: Tensor, readings: Sequence[Memory]) -> Advanced:
        """The same with memories that are `prepared`."""
        size, of_hidden, of_read = hidden.shape[1], self.gates_of_hidden, self.gates_of_readings
        attended = [weight for each in self.attentions for weight in each.parameters()]
        told = self._from_hidden_few.of(of_hidden.weight, of_hidden.bias, *attended)(hidden)  # [rows, 3H + H + M]
        items = len(readings[0].mask)
        by_item, states = told.unflatten(0, (items, -1)), hidden.unflatten(0, (items, -1))
        nulls = by_item[..., 4 * size :]
        read = read_scored(by_item[..., 3 * size : 4 * size], nulls[..., :1], readings[0]).flatten(0, 1)
        gates = self._from_input_few.of(self.gates_of_word.weight, of_read.weight, of_read.bias)(
            torch.cat((word, read), dim=1)
        )
        for i, memory in enumerate(readings[1:], start=1):
            assert isinstance(memory, FoldedMemory), "memories are prepared all together"
            gates += read_folded(states, nulls[..., i, None], memory).flatten(0, 1)
        return _passed(gates, told, hidden)

    def along(self, hidden: Tensor, words: Tensor, lengths: Tensor, readings: Sequence[Memory]) -> Tensor:
        """Output vectors [N, R, H] along given words [N, R, D]; rows stand longest first."""
        packing = pack(lengths, words.shape[1])
        layers = (self.gates_of_word, self.gates_of_readings, self.gates_of_hidden)
        attentions = cast("list[DotAttention]", list(self.attentions))
        states = read_along(attentions, layers, words.flatten(0, 1)[packing.flat], hidden, packing.sizes, readings)
        return spread(states, packing, words.shape[:2])


def _state_products(weight: Tensor, bias: Tensor, *attended: Tensor) -> Projection:
    """All products with the last state at once: its part of the gates, the queries, and the null slots' scores."""
    scale = 1 / math.sqrt(weight.shape[1])
    nulls, queries = attended[::2], [query * scale for query in attended[1::2]]
    of_nulls = torch.stack([null @ query for null, query in zip(nulls, queries, strict=True)])
    joined = torch.cat((weight, *queries, of_nulls))
    return Projection(joined, nn.functional.pad(bias, (0, len(joined) - len(bias))))


def _passed(gates: Tensor, told: Tensor, hidden: Tensor) -> Advanced:
    """Through the cell: gates [rows, 3H] hold the inputs' part, `told` [rows, 3H and more] begins with the state's."""
    size = hidden.shape[1]
    now = GateParts.of(gates, size, [len(gates)])[0]
    now.step(told[:, : 2 * size], told[:, 2 * size : 3 * size])
    hidden = torch.lerp(now.candidate, hidden, now.update)
    return Advanced(hidden, hidden)


def _state_products_folded(weight: Tensor, bias: Tensor, *attended: Tensor) -> Projection:
    """As `_state_products`, with the query of the first memory only."""
    scale = 1 / math.sqrt(weight.shape[1])
    of_nulls = [null @ query * scale for null, query in zip(attended[::2], attended[1::2], strict=True)]
    joined = torch.cat((weight, attended[1] * scale, torch.stack(of_nulls)))
    return Projection(joined, nn.functional.pad(bias, (0, len(joined) - len(bias))))


def _input_products_folded(of_word: Tensor, of_readings: Tensor, bias: Tensor) -> Projection:
    """As `_input_products`, of the first memory only."""
    return _input_products(of_word, of_readings[:, : of_readings.shape[1] // NUM_READINGS], bias)


def _input_products(of_word: Tensor, of_readings: Tensor, bias: Tensor) -> Projection:
    """The word's and the readings' parts of the gates together."""
    return Projection(torch.cat((of_word, of_readings), dim=1), bias)


class ReadingsLate(nn.Module):
    """The GRU runs over the words alone, all at once; its states then read, and both predict the word. Much cheaper."""

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(DotAttention(hidden_size, hidden_size) for _ in range(NUM_READINGS))
        self.gru = nn.GRU(embedding_size, hidden_size, batch_first=True)
        self.combine = nn.Linear((NUM_READINGS + 1) * hidden_size, hidden_size)

    @torch.no_grad()
    def prepared(self, readings: Sequence[Memory]) -> tuple[Memory, ...]:
        """Memories as they are best read step by step."""
        context, *spans = readings
        return LongMemory(context.values, context.mask), *spans

    def advance(self, hidden: Tensor, word: Tensor, readings: Sequence[Memory]) -> Advanced:
        hidden = gru_step(self.gru, word, hidden)
        return Advanced(hidden, self._combined(hidden, read_all(self.attentions, hidden, readings)))

    def along(self, hidden: Tensor, words: Tensor, lengths: Tensor, readings: Sequence[Memory]) -> Tensor:
        packing = pack(lengths, words.shape[1])
        states = gru_along(self.gru, words.flatten(0, 1)[packing.flat], packing.sizes, hidden)
        states = spread(states, packing, words.shape[:2])
        read = [attention.read(states, memory) for attention, memory in zip(self.attentions, readings, strict=True)]  # type: ignore[operator]
        return self._combined(states, torch.cat(read, dim=-1))

    def _combined(self, states: Tensor, read: Tensor) -> Tensor:
        return torch.tanh(self.combine(torch.cat((states, read), dim=-1)))


def read_all(attentions: nn.ModuleList, hidden: Tensor, readings: Sequence[Memory]) -> Tensor:
    """What each hidden state reads from every memory [rows, 3H]; several rows per item share its memory."""
    query = hidden.unflatten(0, (len(readings[0].mask), -1))
    read = [attention.read(query, memory) for attention, memory in zip(attentions, readings, strict=True)]  # type: ignore[operator]
    return torch.cat(read, dim=-1).flatten(0, 1)
