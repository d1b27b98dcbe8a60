"""A GRU over rows of different lengths, without padding, and with a backward pass of few large products.

Letters: N rows, T positions, P real positions of all rows, D input size, H hidden size. Rows are packed position by
position, longest row first, so that the rows still under way at a position stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

GATES_KEPT = 1 << 16
"""How many gates are kept for the backward pass (256 kB); if there are more, they are computed again, all at once."""

WORTH_TURNING = 8
"""From so many positions on, a copy of the hidden weight in the order of the product pays."""


@dataclass(frozen=True, eq=False)
class Packing:
    """Where the real positions of padded rows [N, T] stand when they are packed."""

    order: Tensor  # [n] the rows that have any position, longest first
    sizes: tuple[int, ...]  # rows under way at each position
    flat: Tensor  # [P] each packed position as an index of the flattened rows [N * T]
    turned: Tensor  # [P] where the mirror image of each packed position is packed: a row's first against its last
    last: Tensor  # [n] where each row's last position is packed, in the order of `order`


def pack(lengths: Tensor, width: int) -> Packing:
    """The packing of rows of these lengths [N], padded to `width`."""
    longest_first, order = lengths.sort(descending=True, stable=True)
    under_way = longest_first.unsqueeze(0) > torch.arange(width, device=lengths.device).unsqueeze(1)  # [T, N]
    position, rank = under_way.nonzero(as_tuple=True)
    per_position = under_way.sum(dim=1)
    starts = per_position.cumsum(0) - per_position  # [T]
    sizes = tuple(size for size in per_position.tolist() if size)
    num_rows = sizes[0] if sizes else 0
    return Packing(
        order[:num_rows],
        sizes,
        order[rank] * width + position,
        starts[longest_first[rank] - 1 - position] + rank,
        starts[longest_first[:num_rows] - 1] + torch.arange(num_rows, device=lengths.device),
    )


def spread(packed: Tensor, packing: Packing, shape: Sequence[int]) -> Tensor:
    """Packed vectors [P, H] as padded rows [N, T, H], zeros where a row has ended."""
    size = packed.shape[1]
    return packed.new_zeros(shape[0] * shape[1], size).index_copy(0, packing.flat, packed).view(*shape, size)


def gru_along(gru: nn.GRU, inputs: Tensor, sizes: Sequence[int], start: Tensor | None = None) -> Tensor:
    """States [P, H] of a one-layer GRU over packed inputs [P, D]; `start` [N, H] stands longest row first."""
    apply: Callable[..., Tensor] = _GruAlong.apply
    begin = inputs.new_zeros(sizes[0] if sizes else 0, gru.hidden_size) if start is None else start
    return apply(inputs, begin, gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0, tuple(sizes))


def gru_over(gru: nn.GRU, inputs: Tensor, start: Tensor | None = None) -> Tensor:
    """States [N, T, H] over inputs [N, T, D] whose positions are all real; `start` is [N, H]."""
    num_rows, length = inputs.shape[:2]
    packed = inputs.transpose(0, 1).flatten(0, 1)
    states = gru_along(gru, packed, (num_rows,) * length, start)
    return states.view(length, num_rows, gru.hidden_size).transpose(0, 1)


def gru_step(gru: nn.GRU, inputs: Tensor, hidden: Tensor) -> Tensor:
    """The next states [N, H] after inputs [N, D]."""
    return gru_along(gru, inputs, (len(inputs),), hidden)


class _GruAlong(torch.autograd.Function):
    """r, z = sigmoid(x + h), n = tanh(x_n + r h_n), h' = (1 - z) n + z h, where x = W x + b and h = U h + c.

    The gates are kept packed, and the gradients of the weights are one product each, over all positions.
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        start: Tensor,
        input_weight: Tensor,
        hidden_weight: Tensor,
        input_bias: Tensor,
        hidden_bias: Tensor,
        sizes: tuple[int, ...],
    ) -> Tensor:
        gates = torch.addmm(input_bias, inputs, input_weight.T)  # [P, 3H], becomes r, z, n
        states = gates.new_empty(len(inputs), start.shape[1])
        proposed = torch.empty_like(states)  # h_n
        turned = hidden_weight.T.contiguous() if len(sizes) >= WORTH_TURNING else hidden_weight.T
        run_gru(gates, states, proposed, start, turned, hidden_bias, list(sizes))
        kept = (gates, proposed) if gates.numel() <= GATES_KEPT else (input_bias, hidden_bias)
        ctx.save_for_backward(inputs, start, input_weight, hidden_weight, states, *kept)
        ctx.sizes, ctx.are_gates_kept = sizes, kept[0] is gates
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, start, input_weight, hidden_weight, states, *kept = ctx.saved_tensors
        before = states_before(states, start, ctx.sizes)
        if ctx.are_gates_kept:
            gates, proposed = kept
        else:
            from_hidden = torch.addmm(kept[1], before, hidden_weight.T)
            gates, proposed = gates_again(torch.addmm(kept[0], inputs, input_weight.T), from_hidden)
        found = GateGradients(gates, before, proposed)
        of_start = found.run_back(gradients[0], hidden_weight, ctx.sizes)
        needed = ctx.needs_input_grad
        return (
            found.times(input_weight) if needed[0] else None,
            nn.functional.pad(of_start, (0, 0, 0, len(start) - len(of_start))) if needed[1] else None,
            found.of_input_weight(inputs),
            found.of_hidden.T @ before,
            found.of_input_bias(),
            found.of_hidden.sum(dim=0),
            None,
        )


def run_gru(
    gates: Tensor,
    states: Tensor,
    proposed: Tensor,
    start: Tensor,
    hidden_weight: Tensor,
    hidden_bias: Tensor,
    sizes: Sequence[int],
) -> None:
    """Fills gates (which hold the inputs' part) [P, 3H], states and proposals [P, H]; hidden_weight is [H, 3H]."""
    hidden, size = start, start.shape[1]
    parts = GateParts.of(gates, size, sizes)
    for now, proposal, state in zip(parts, proposed.split(sizes), states.split(sizes), strict=True):
        if len(hidden) > len(state):
            hidden = hidden[: len(state)]
        from_hidden = torch.addmm(hidden_bias, hidden, hidden_weight)
        now.step(from_hidden[:, : 2 * size], proposal.copy_(from_hidden[:, 2 * size :]))
        hidden = torch.lerp(now.candidate, hidden, now.update, out=state)


def gates_again(gates: Tensor, from_hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Gates [P, 3H] and proposals [P, H] of all positions at once, when the states are known."""
    size = gates.shape[1] // 3
    proposed = from_hidden[:, 2 * size :]
    GateParts.of(gates, size, [len(gates)])[0].step(from_hidden[:, : 2 * size], proposed)
    return gates, proposed


@dataclass(frozen=True, eq=False)
class GateParts:
    """Views of the gates of one position: r and z together [n, 2H], and r, z and n apart [n, H]."""

    both: Tensor
    reset: Tensor
    update: Tensor
    candidate: Tensor

    @classmethod
    def of(cls, gates: Tensor, size: int, sizes: Sequence[int]) -> list[GateParts]:
        """Of every position of packed gates [P, 3H]."""
        views = (gates[:, : 2 * size], gates[:, :size], gates[:, size : 2 * size], gates[:, 2 * size :])
        return [cls(*parts) for parts in zip(*(view.split(list(sizes)) for view in views), strict=True)]

    def step(self, from_hidden: Tensor, proposal: Tensor) -> None:
        """The inputs' part becomes r, z and n, from the hidden state's part of r and z [n, 2H] and of n [n, H]."""
        self.both.add_(from_hidden).sigmoid_()
        self.candidate.addcmul_(self.reset, proposal).tanh_()


def states_before(states: Tensor, start: Tensor, sizes: Sequence[int]) -> Tensor:
    """The state that each packed position began from [P, H]."""
    previous = (start, *states.split(list(sizes))[:-1]) if sizes else ()
    kept = [state[:size] for state, size in zip(previous, sizes, strict=True)]
    return torch.cat(kept) if kept else states


class GateGradients:
    """Gradients of the gates of all positions; what does not depend on later positions is computed at once.

    The inputs' and the hidden state's parts of r and z have the same gradient; of n they differ by the factor r.
    """

    def __init__(self, gates: Tensor, before: Tensor, proposed: Tensor, of_hidden: Tensor | None = None) -> None:
        """`of_hidden` [P, 3H] is where the hidden state's part is put down, if not in memory of its own."""
        self.size = before.shape[1]
        reset, update, candidate = gates.chunk(3, dim=1)
        self._reset, self._update = reset, update
        self._of_candidate = (1 - candidate.square()).mul_(1 - update)
        self._of_update = (before - candidate).mul_(update).mul_(1 - update)
        self._of_reset = (1 - reset).mul_(reset).mul_(proposed)
        self.of_hidden = torch.empty_like(gates) if of_hidden is None else of_hidden  # [P, 3H]
        self.of_candidate = torch.empty_like(before)  # [P, H], the inputs' part

    def run_back(self, of_states: Tensor, hidden_weight: Tensor, sizes: Sequence[int]) -> Tensor:
        """Fills the gradients, last position first, from those of the states [P, H] -> the gradient of the start."""
        carried: Tensor | None = None
        for gradient, here in zip(reversed(of_states.split(list(sizes))), self.positions(sizes), strict=True):
            carried = here.through(gradient_here(gradient, carried), hidden_weight)
        return of_states[:0] if carried is None else carried

    def positions(self, sizes: Sequence[int]) -> list[_PositionGradients]:
        """Views of every position, the last one first."""
        size, hidden = self.size, self.of_hidden
        slopes = (self._reset, self._update, self._of_candidate, self._of_update, self._of_reset)
        views = (hidden, hidden[:, :size], hidden[:, size : 2 * size], hidden[:, 2 * size :], self.of_candidate)
        parts = zip(*(view.split(list(sizes)) for view in (*slopes, *views)), strict=True)
        return [_PositionGradients(*part) for part in parts][::-1]

    def times(self, weight: Tensor) -> Tensor:
        """The inputs' part through a weight [3H, D] -> [P, D]."""
        both, candidate = weight[: 2 * self.size], weight[2 * self.size :]
        return (self.of_hidden[:, : 2 * self.size] @ both).addmm_(self.of_candidate, candidate)

    def of_input_weight(self, inputs: Tensor) -> Tensor:
        """[P, D] -> [3H, D]."""
        return torch.cat((self.of_hidden[:, : 2 * self.size].T @ inputs, self.of_candidate.T @ inputs))

    def of_input_bias(self) -> Tensor:
        return torch.cat((self.of_hidden[:, : 2 * self.size].sum(dim=0), self.of_candidate.sum(dim=0)))


@dataclass(frozen=True, eq=False)
class _PositionGradients:
    """The slopes of one position, and where its gradients are put down."""

    reset: Tensor
    update: Tensor
    candidate_slope: Tensor
    update_slope: Tensor
    reset_slope: Tensor
    of_hidden: Tensor
    of_reset: Tensor
    of_update: Tensor
    of_proposed: Tensor
    of_candidate: Tensor

    def put_down(self, gradient: Tensor) -> None:
        """From the gradient of the states [n, H]."""
        torch.mul(gradient, self.candidate_slope, out=self.of_candidate)
        torch.mul(gradient, self.update_slope, out=self.of_update)
        torch.mul(self.of_candidate, self.reset_slope, out=self.of_reset)
        torch.mul(self.of_candidate, self.reset, out=self.of_proposed)

    def through(self, gradient: Tensor, hidden_weight: Tensor) -> Tensor:
        """The gradient of the states before [n, H]."""
        self.put_down(gradient)
        return torch.addmm(gradient * self.update, self.of_hidden, hidden_weight)


def gradient_here(of_states: Tensor, carried: Tensor | None) -> Tensor:
    """The rows' own gradients, and what later positions of those that go on carried back."""
    if carried is None:
        return of_states
    if len(carried) == len(of_states):
        return of_states + carried
    gradient = of_states.clone()
    gradient[: len(carried)] += carried
    return gradient
