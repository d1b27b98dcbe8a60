"""Recurrent encoders of padded sequences. Letters: N rows, T positions, D input size, H hidden size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vrbot.nets.recurrence import Packing, gru_along, gru_over, pack, spread


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

    def in_blocks(self, blocks: Sequence[Tensor]) -> list[Encoded]:
        """Blocks of rows, each cut to its longest; a row may stand in several. One gradient for all of them."""
        masks = [_cut(self.mask[rows]) for rows in blocks]
        apply: Callable[..., tuple[Tensor, ...]] = _Blocks.apply
        tokens = apply(self.tokens, tuple(blocks), tuple(mask.shape[1] for mask in masks))
        summaries = self.summary[torch.cat(tuple(blocks))].split([len(rows) for rows in blocks]) if blocks else ()
        return [Encoded(*parts) for parts in zip(tokens, masks, summaries, strict=True)]


def _cut(mask: Tensor) -> Tensor:
    """A mask [N, T] without the last slots that no row has."""
    used = mask.any(dim=0).nonzero()
    return mask[:, : int(used[-1]) + 1 if len(used) else 0]


class _Blocks(torch.autograd.Function):
    """Rows of one tensor [N, T, H] in blocks; indexing would make a gradient of the full size for each of them."""

    @staticmethod
    def forward(ctx: Any, tokens: Tensor, blocks: tuple[Tensor, ...], widths: tuple[int, ...]) -> tuple[Tensor, ...]:
        ctx.blocks, ctx.shape = blocks, tokens.shape
        return tuple(tokens[:, :width].index_select(0, rows) for rows, width in zip(blocks, widths, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        total = gradients[0].new_zeros(ctx.shape)
        for rows, gradient in zip(ctx.blocks, gradients, strict=True):
            total[:, : gradient.shape[1]].index_add_(0, rows, gradient)
        return total, None, None


def padded(encoded: Encoded, width: int) -> tuple[Tensor, Tensor]:
    """Vectors and mask of the positions, with absent ones added up to the width."""
    missing = width - encoded.mask.shape[1]
    return nn.functional.pad(encoded.tokens, (0, 0, 0, missing)), nn.functional.pad(encoded.mask, (0, missing))


class BidirectionalEncoder(nn.Module):
    """A GRU in each direction, their states added, so that a token's vector has the hidden size.

    Padding is never run over: see `nets.recurrence`. In training a share of the inputs (`word_dropout`) is not read.
    """

    def __init__(self, input_size: int, hidden_size: int, word_dropout: float = 0.0) -> None:
        super().__init__()
        self.onward = nn.GRU(input_size, hidden_size, batch_first=True)
        self.backward_looking = nn.GRU(input_size, hidden_size, batch_first=True)
        self.word_dropout = nn.Dropout1d(word_dropout)
        self.hidden_size = hidden_size

    def forward(self, inputs: Tensor, lengths: Tensor, start: Tensor | None = None) -> Encoded:
        """Inputs [N, T, D] of the given lengths [N]; both directions begin at `start` [N, H] (zeros if none).

        The summary adds the last state of each direction; rows of length 0 give zeros.
        """
        mask = torch.arange(inputs.shape[1], device=inputs.device)[None, :] < lengths[:, None]
        packing = pack(lengths, inputs.shape[1])
        onward, backward = self._run(self.word_dropout(inputs), packing, start)
        nothing = inputs.new_zeros(len(inputs), self.hidden_size)
        last = packing.last
        summary = nothing.index_copy(0, packing.order, onward[last] + backward[last])
        return Encoded(spread(onward + backward[packing.turned], packing, mask.shape), mask, summary)

    def _run(self, inputs: Tensor, packing: Packing, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """Packed states of both directions [P, H], each in its own order of reading."""
        read = inputs.flatten(0, 1)[packing.flat]  # [P, D]
        begin = None if start is None else start[packing.order]
        onward = gru_along(self.onward, read, packing.sizes, begin)
        return onward, gru_along(self.backward_looking, read[packing.turned], packing.sizes, begin)


class SpanEncoder(nn.Module):
    """A GRU over the few symbols of a span; absent positions are zeros and leave the summary as it was."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size, batch_first=True)

    def forward(self, inputs: Tensor, mask: Tensor) -> Encoded:
        """Inputs [N, L, D]; the positions that exist [N, L] come first."""
        states = gru_over(self.gru, inputs)
        last = (mask.sum(dim=1) - 1).clamp_min(0)
        summary = states.gather(1, last[:, None, None].expand(-1, 1, states.shape[-1])).squeeze(1)
        summary = summary * mask.any(dim=1, keepdim=True)
        return Encoded(states * mask.unsqueeze(-1), mask, summary)
