"""What earlier turns of a session leave behind. Letters: N rows (turns), U turns of the longest session, H hidden size.

Rows stand turn by turn; see `dialogue.batching`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vrbot.dialogue.batching import TurnLayout
from vrbot.nets.attention import Memory


class TurnMemory(nn.Module):
    """A GRU over the turns of each session, one vector per turn."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(input_size, hidden_size)

    def forward(self, turns: Tensor, layout: TurnLayout) -> Tensor:
        """Vectors of the turns [N, F] -> states after each of them [N, H]."""
        memory = turns.new_zeros(layout.num_sessions, self.cell.hidden_size)
        states = []
        for now in turns.split(layout.turn_sizes):
            memory = self.cell(now, memory[: len(now)])
            states.append(memory)
        return torch.cat(states)


def turns_so_far(vectors: Tensor, layout: TurnLayout) -> Memory:
    """For each row the vectors [N, H] of its session's turns up to its own, as a memory [N, U, H]."""
    turns = torch.arange(len(layout.turn_sizes), device=vectors.device)
    mask = turns <= layout.turn.unsqueeze(1)  # [N, U]
    first = torch.tensor(layout.offsets[:-1], dtype=torch.long, device=vectors.device)
    rows = torch.where(mask, first + layout.session.unsqueeze(1), 0)
    return Memory(vectors[rows] * mask.unsqueeze(-1), mask)
