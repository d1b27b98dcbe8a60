"""A GRU that reads memories at every step: what its last state reads enters the gates together with the next word.

Letters: N rows, P real positions of all rows, R positions of the longest, M memories, T slots of one, D input size,
H hidden size. Rows are packed as in `nets.recurrence`. The gradients of the memories are one product over all
positions each, instead of a sum of as many as there are steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vrbot.nets.attention import DotAttention, Memory
from vrbot.nets.recurrence import GateGradients, GateParts, gates_again, gradient_here, states_before


def read_along(
    attentions: Sequence[DotAttention],
    layers: tuple[nn.Linear, nn.Linear, nn.Linear],
    words: Tensor,
    start: Tensor,
    sizes: Sequence[int],
    memories: Sequence[Memory],
) -> Tensor:
    """States [P, H] along packed words [P, D] from a start [N, H]; `layers` make gates of word, readings and state."""
    of_word, of_readings, of_hidden = layers
    scale = 1 / math.sqrt(start.shape[1])
    queries = [attention.project_query.weight * scale for attention in attentions]
    nulls = torch.stack([attention.null_key @ query for attention, query in zip(attentions, queries, strict=True)])
    from_hidden = torch.cat((of_hidden.weight, *queries, nulls))  # [3H + MH + M, H]
    penalties = [_penalty(memory.mask, len(sizes), words.dtype) for memory in memories]
    weights = (of_word.weight, of_readings.weight, of_readings.bias, from_hidden, of_hidden.bias)
    values = [memory.values for memory in memories]
    apply: Callable[..., Tensor] = _ReadAlong.apply
    return apply(words, start, *weights, tuple(sizes), tuple(penalties), *values)


def _penalty(mask: Tensor, num_positions: int, dtype: torch.dtype) -> Tensor:
    """What is added to the scores at each position [R, N, T]: -inf where a slot cannot be read."""
    penalty = torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, -math.inf)
    return penalty.transpose(0, 1) if mask.dim() == 3 else penalty.expand(num_positions, *penalty.shape)


@dataclass(frozen=True, eq=False)
class _Reading:
    """One memory, how it was read at every position [R, N, T + 1] (the last slot is the null slot)."""

    values: Tensor  # [N, T, H]
    weights: Tensor

    def products(self, vectors: Tensor) -> Tensor:
        """Of each row's vector [n, H] with its slots [n, T]."""
        return torch.bmm(vectors.unsqueeze(1), self.values[: len(vectors)].transpose(1, 2)).squeeze(1)

    def read(self, position: int, scores: Tensor) -> Tensor:
        """Takes the scores [n, T + 1] of this position -> what is read [n, H]."""
        weights = self.weights[position, : len(scores)].copy_(scores.softmax(dim=1))
        return torch.bmm(weights[:, None, :-1], self.values[: len(scores)]).squeeze(1)

    def score_gradients(self, position: int, of_read: Tensor) -> Tensor:
        """The gradient of what was read [n, H] -> of the scores [n, T + 1]."""
        weights = self.weights[position, : len(of_read)]
        gradient = nn.functional.pad(self.products(of_read), (0, 1)).mul_(weights)
        return gradient.sub_(weights * gradient.sum(dim=1, keepdim=True))


class _ReadAlong(torch.autograd.Function):
    """Keeps the states and how the memories were read; gates and readings are computed again, all positions at once."""

    @staticmethod
    def forward(
        ctx: Any,
        words: Tensor,
        start: Tensor,
        word_weight: Tensor,
        read_weight: Tensor,
        read_bias: Tensor,
        hidden_weight: Tensor,
        hidden_bias: Tensor,
        sizes: tuple[int, ...],
        penalties: tuple[Tensor, ...],
        *values: Tensor,
    ) -> Tensor:
        size, count = start.shape[1], len(values)
        gates = torch.addmm(read_bias, words, word_weight.T)  # [P, 3H], becomes r, z, n
        states = gates.new_empty(len(words), size)
        proposed, reads = torch.empty_like(states), gates.new_empty(len(words), count * size)
        weights = [gates.new_zeros(len(sizes), len(value), value.shape[1] + 1) for value in values]
        readings = [_Reading(*pair) for pair in zip(values, weights, strict=True)]
        views = (GateParts.of(gates, size, sizes), *(part.split(sizes) for part in (gates, proposed, states, reads)))
        bias = nn.functional.pad(hidden_bias, (0, len(hidden_weight) - 3 * size))
        hidden, turned = start, hidden_weight.T.contiguous()
        for position, (now, gate, proposal, state, read) in enumerate(zip(*views, strict=True)):
            hidden = hidden[: len(state)]
            told = torch.addmm(bias, hidden, turned)  # [n, 3H + MH + M]
            queries = told[:, 3 * size : -count].unflatten(1, (count, size))
            for i, (reading, penalty) in enumerate(zip(readings, penalties, strict=True)):
                scores = reading.products(queries[:, i])
                scores = torch.cat((scores.add_(penalty[position, : len(state)]), told[:, i - count, None]), dim=1)
                read[:, i * size : (i + 1) * size] = reading.read(position, scores)
            gate.addmm_(read, read_weight.T)
            now.step(told[:, : 2 * size], proposal.copy_(told[:, 2 * size : 3 * size]))
            hidden = torch.lerp(now.candidate, hidden, now.update, out=state)
        kept = (words, start, word_weight, read_weight, read_bias, hidden_weight, hidden_bias, states)
        ctx.save_for_backward(*kept, *values, *weights)
        ctx.sizes, ctx.count = sizes, count
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        sizes, count, saved = ctx.sizes, ctx.count, ctx.saved_tensors
        words, start, word_weight, read_weight, read_bias, hidden_weight, hidden_bias, states = saved[:8]
        readings = [_Reading(*pair) for pair in zip(saved[8 : 8 + count], saved[8 + count :], strict=True)]
        before, reads = states_before(states, start, sizes), _read_again(readings, sizes)
        inputs = torch.addmm(read_bias, words, word_weight.T).addmm_(reads, read_weight.T)
        gates, proposed = gates_again(inputs, torch.addmm(hidden_bias, before, hidden_weight[: inputs.shape[1]].T))
        of_told = gates.new_empty(len(words), len(hidden_weight))
        found = GateGradients(gates, before, proposed, of_told[:, : 3 * start.shape[1]])
        of_reads = torch.empty_like(reads)
        of_scores = [torch.zeros_like(reading.weights) for reading in readings]
        of_start = _walk_back(
            gradients[0], found, readings, (read_weight, hidden_weight), sizes, of_told, of_reads, of_scores
        )
        queries = before @ hidden_weight[3 * start.shape[1] : -count].T  # [P, MH]
        needed = ctx.needs_input_grad
        of_values = _memory_gradients(readings, of_scores, of_reads, queries, sizes, needed[9:])
        return (
            found.times(word_weight) if needed[0] else None,
            nn.functional.pad(of_start, (0, 0, 0, len(start) - len(of_start))),
            found.of_input_weight(words),
            found.of_input_weight(reads),
            found.of_input_bias(),
            of_told.T @ before,
            found.of_hidden.sum(dim=0),
            None,
            None,
            *of_values,
        )


def _read_again(readings: Sequence[_Reading], sizes: tuple[int, ...]) -> Tensor:
    """What was read from all memories at every packed position [P, MH]."""
    num_rows, index, parts = sizes[0] if sizes else 0, _places(sizes), []
    for reading in readings:
        by_row = torch.bmm(reading.weights[:, :num_rows, :-1].transpose(0, 1), reading.values[:num_rows])  # [N, R, H]
        parts.append(by_row.transpose(0, 1).flatten(0, 1)[index])
    return torch.cat(parts, dim=1)


def _places(sizes: tuple[int, ...]) -> Tensor:
    """Where each packed position stands among the positions of all rows, padded, position by position [P]."""
    place = [torch.arange(rows) + position * sizes[0] for position, rows in enumerate(sizes)]
    return torch.cat(place) if place else torch.zeros(0, dtype=torch.long)


def _walk_back(
    of_states: Tensor,
    found: GateGradients,
    readings: Sequence[_Reading],
    weights: tuple[Tensor, Tensor],
    sizes: tuple[int, ...],
    of_told: Tensor,
    of_reads: Tensor,
    of_scores: Sequence[Tensor],
) -> Tensor:
    """Fills the gradients of all positions, last first -> the gradient of the start [n, H]."""
    read_weight, hidden_weight = weights
    size, count = found.size, len(readings)
    both_weight, candidate_weight = read_weight[: 2 * size], read_weight[2 * size :]
    carried: Tensor | None = None
    views = [reversed(part.split(sizes)) for part in (of_states, of_told, of_reads)]
    for i, (gradient, told, read, here) in enumerate(zip(*views, found.positions(sizes), strict=True)):
        position = len(sizes) - 1 - i
        gradient = gradient_here(gradient, carried)
        here.put_down(gradient)
        torch.mm(here.of_hidden[:, : 2 * size], both_weight, out=read).addmm_(here.of_candidate, candidate_weight)
        for j, reading in enumerate(readings):
            scores = reading.score_gradients(position, read[:, j * size : (j + 1) * size])
            of_scores[j][position, : len(scores)] = scores
            told[:, j - count] = scores[:, -1]
            query = torch.bmm(scores[:, None, :-1], reading.values[: len(scores)]).squeeze(1)
            told[:, (3 + j) * size : (4 + j) * size] = query
        carried = torch.addmm(gradient * here.update, told, hidden_weight)
    return of_states[:0] if carried is None else carried


def _memory_gradients(
    readings: Sequence[_Reading],
    of_scores: Sequence[Tensor],
    of_reads: Tensor,
    queries: Tensor,
    sizes: tuple[int, ...],
    needed: Sequence[bool],
) -> list[Tensor | None]:
    """Gradients of the memories [N, T, H], of reading them and of scoring them."""
    num_rows, size, index = sizes[0] if sizes else 0, queries.shape[1] // len(readings), _places(sizes)
    found: list[Tensor | None] = []
    for i, (reading, scores, need) in enumerate(zip(readings, of_scores, needed, strict=True)):
        if not need:
            found.append(None)
            continue
        total = torch.zeros_like(reading.values)
        for slots, vectors in ((reading.weights, of_reads), (scores, queries)):
            padded = vectors.new_zeros(len(sizes) * num_rows, size)
            padded.index_copy_(0, index, vectors[:, i * size : (i + 1) * size])
            by_row = padded.view(len(sizes), num_rows, size).transpose(0, 1)  # [N, R, H]
            total[:num_rows].baddbmm_(slots[:, :num_rows, :-1].permute(1, 2, 0), by_row)
        found.append(total)
    return found
