"""How a reply's decoder moves from word to word, and when it reads what it is conditioned on.

Letters: N rows, R response positions, Q hypotheses per item, D embedding size, H hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vrbot.nets.attention import DotAttention, Memory

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

    def advance(self, hidden: Tensor, word: Tensor, readings: Sequence[Memory]) -> Advanced:
        """One step for rows that stand side by side per item; words [rows, D]."""
        hidden = self._step(hidden, self.gates_of_word(word), readings)
        return Advanced(hidden, hidden)

    def along(self, hidden: Tensor, words: Tensor, lengths: Tensor, readings: Sequence[Memory]) -> Tensor:
        """Output vectors [N, R, H] along given words [N, R, D]; rows stand longest first."""
        gates = self.gates_of_word(words).unbind(dim=1)
        ends = (lengths[None, :] > torch.arange(words.shape[1], device=lengths.device)[:, None]).sum(dim=1).tolist()
        states: list[Tensor] = []
        rows = len(words)
        for position, active in enumerate(ends):
            if active <= 0.8 * rows:  # the memories are cut a few times only: each cut costs a copy in the gradient
                rows = active
                readings = [memory.select(slice(0, rows)) for memory in readings]
                hidden = hidden[:rows]
            hidden = self._step(hidden, gates[position][:rows], readings)
            states.append(nn.functional.pad(hidden, (0, 0, 0, len(words) - rows)))
        return torch.stack(states, dim=1)

    def _step(self, hidden: Tensor, word_gates: Tensor, readings: Sequence[Memory]) -> Tensor:
        read = self.gates_of_readings(read_all(self.attentions, hidden, readings))
        from_input = (word_gates + read).chunk(3, dim=-1)
        from_hidden = self.gates_of_hidden(hidden).chunk(3, dim=-1)
        reset = torch.sigmoid(from_input[0] + from_hidden[0])
        update = torch.sigmoid(from_input[1] + from_hidden[1])
        candidate = torch.tanh(from_input[2] + reset * from_hidden[2])
        return torch.lerp(candidate, hidden, update)


class ReadingsLate(nn.Module):
    """The GRU runs over the words alone, all at once; its states then read, and both predict the word. Much cheaper."""

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(DotAttention(hidden_size, hidden_size) for _ in range(NUM_READINGS))
        self.gru = nn.GRU(embedding_size, hidden_size, batch_first=True)
        self.combine = nn.Linear((NUM_READINGS + 1) * hidden_size, hidden_size)

    def advance(self, hidden: Tensor, word: Tensor, readings: Sequence[Memory]) -> Advanced:
        states, _ = self.gru(word.unsqueeze(1), hidden.unsqueeze(0))
        hidden = states.squeeze(1)
        return Advanced(hidden, self._combined(hidden, read_all(self.attentions, hidden, readings)))

    def along(self, hidden: Tensor, words: Tensor, lengths: Tensor, readings: Sequence[Memory]) -> Tensor:
        states, _ = self.gru(words, hidden.unsqueeze(0))
        read = [attention.read(states, memory) for attention, memory in zip(self.attentions, readings, strict=True)]  # type: ignore[operator]
        return self._combined(states, torch.cat(read, dim=-1))

    def _combined(self, states: Tensor, read: Tensor) -> Tensor:
        return torch.tanh(self.combine(torch.cat((states, read), dim=-1)))


def read_all(attentions: nn.ModuleList, hidden: Tensor, readings: Sequence[Memory]) -> Tensor:
    """What each hidden state reads from every memory [rows, 3H]; several rows per item share its memory."""
    query = hidden.unflatten(0, (len(readings[0].mask), -1))
    read = [attention.read(query, memory) for attention, memory in zip(attentions, readings, strict=True)]  # type: ignore[operator]
    return torch.cat(read, dim=-1).flatten(0, 1)
