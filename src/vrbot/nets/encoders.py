"""Recurrent encoders of padded sequences. Letters: N rows, T positions, D input size, H hidden size."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Encoded:
    """Vectors of the positions [N, T, H], which of them exist [N, T], and of the whole [N, H]."""

    tokens: Tensor
    mask: Tensor
    summary: Tensor

    def followed_by(self, other: Encoded) -> Encoded:
        """The rows of both, which have the same number of positions."""
        pairs = zip((self.tokens, self.mask, self.summary), (other.tokens, other.mask, other.summary), strict=True)
        return Encoded(*(torch.cat(pair) for pair in pairs))

    def select(self, rows: Tensor | slice) -> Encoded:
        """These rows only."""
        return Encoded(self.tokens[rows], self.mask[rows], self.summary[rows])


class BidirectionalEncoder(nn.Module):
    """A GRU in each direction, their states added, so that a token's vector has the hidden size.

    The rows are turned round by hand and padding is run over: on a CPU that is several times faster to train than
    packed sequences, whose every step costs a gradient of the full size.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.onward = nn.GRU(input_size, hidden_size, batch_first=True)
        self.backward_looking = nn.GRU(input_size, hidden_size, batch_first=True)
        self.hidden_size = hidden_size

    def forward(self, inputs: Tensor, lengths: Tensor, start: Tensor | None = None) -> Encoded:
        """Inputs [N, T, D] of the given lengths [N]; both directions begin at `start` [N, H] (zeros if none).

        The summary adds the last state of each direction; rows of length 0 give zeros.
        """
        positions = torch.arange(inputs.shape[1], device=inputs.device)[None, :]
        mask = positions < lengths[:, None]
        if inputs.shape[1] == 0:
            nothing = inputs.new_zeros(len(inputs), self.hidden_size)
            return Encoded(nothing.unsqueeze(1)[:, :0], mask, nothing)
        turned = torch.where(mask, lengths[:, None] - 1 - positions, positions)  # [N, T]
        begin = None if start is None else start.unsqueeze(0)
        onward, _ = self.onward(inputs, begin)
        backward, _ = self.backward_looking(_rearranged(inputs, turned), begin)
        last = (lengths - 1).clamp_min(0)[:, None]
        summary = (_rearranged(onward, last) + _rearranged(backward, last)).squeeze(1)
        tokens = (onward + _rearranged(backward, turned)) * mask.unsqueeze(-1)
        return Encoded(tokens, mask, summary * (lengths > 0).unsqueeze(-1))


def _rearranged(vectors: Tensor, positions: Tensor) -> Tensor:
    """The vectors [N, T, H] at these positions [N, Q]."""
    return vectors.gather(1, positions.unsqueeze(-1).expand(-1, -1, vectors.shape[-1]))


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
