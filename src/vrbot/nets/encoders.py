"""Recurrent encoders of padded sequences. Letters: N rows, T positions, D input size, H hidden size."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


@dataclass(frozen=True, eq=False)
class Encoded:
    """Vectors of the positions [N, T, H], which of them exist [N, T], and of the whole [N, H]."""

    tokens: Tensor
    mask: Tensor
    summary: Tensor

    def select(self, rows: Tensor | slice) -> Encoded:
        """These rows only."""
        return Encoded(self.tokens[rows], self.mask[rows], self.summary[rows])


class BidirectionalEncoder(nn.Module):
    """A GRU in both directions whose states are added, so that a token's vector has the hidden size."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.gru = nn.GRU(input_size, hidden_size, batch_first=True, bidirectional=True)

    def forward(self, inputs: Tensor, lengths: Tensor, start: Tensor | None = None) -> Encoded:
        """Inputs [N, T, D] of the given lengths [N]; both directions begin at `start` [N, H] (zeros if none).

        The summary adds the last state of each direction; rows of length 0 give zeros.
        """
        positions = inputs.shape[1]
        mask = torch.arange(positions, device=inputs.device)[None, :] < lengths[:, None]
        if positions == 0:
            return Encoded(inputs.new_zeros(len(inputs), 0, self.hidden_size), mask, self._nothing(inputs))
        packed = pack_padded_sequence(inputs, lengths.clamp_min(1).cpu(), batch_first=True, enforce_sorted=False)
        begin = None if start is None else start.unsqueeze(0).expand(2, -1, -1).contiguous()
        outputs, last = self.gru(packed, begin)
        states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=positions)
        tokens = states[..., : self.hidden_size] + states[..., self.hidden_size :]
        present = (lengths > 0).unsqueeze(-1)
        return Encoded(tokens * mask.unsqueeze(-1), mask, last.sum(dim=0) * present)

    def _nothing(self, inputs: Tensor) -> Tensor:
        return inputs.new_zeros(len(inputs), self.hidden_size)


class SpanEncoder(nn.Module):
    """A GRU over the few symbols of a span; absent positions are zeros and leave the summary as it was."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size, batch_first=True)

    def forward(self, inputs: Tensor, mask: Tensor) -> Encoded:
        """Inputs [N, L, D]; the positions that exist [N, L] come first."""
        states, _ = self.gru(inputs)
        last = (mask.sum(dim=1) - 1).clamp_min(0)
        summary = states.gather(1, last[:, None, None].expand(-1, 1, states.shape[-1])).squeeze(1)
        summary = summary * mask.any(dim=1, keepdim=True)
        return Encoded(states * mask.unsqueeze(-1), mask, summary)
