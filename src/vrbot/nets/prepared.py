"""Weights laid out for use without gradient: made once, and again when the parameters they are made of change."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor

Precision = Literal["float32", "int8"]

FEW_ROWS = 16
"""Up to so many rows a product spends its time on reading the weights, and reads them faster in another order."""

WORTH_PACKING = 1 << 22
"""From so many weights on, blocks are read faster than turned weights: these leave the processor's cache."""

COLUMNS = 16
"""How many columns make a line of memory."""

EXACT = 16
"""How many of the largest results of a row are computed again."""

BLOCK = 64

INSTRUCTIONS = "ONEDNN_MAX_CPU_ISA"
"""Where the environment says which instructions oneDNN may use; the command line does, see `cli.main`."""

MadeT = TypeVar("MadeT")


class Prepared(Generic[MadeT]):
    """What `make` makes of some parameters; copies of a model and saved models are without it."""

    def __init__(self, make: Callable[..., MadeT]) -> None:
        self._make = make
        self._of: tuple[tuple[int, int], ...] | None = None
        self._made: MadeT | None = None

    def of(self, *parameters: Tensor) -> MadeT:
        key = tuple((each.data_ptr(), each._version) for each in parameters)
        if self._made is None or key != self._of:
            self._made = self._make(*(each.detach() for each in parameters))
            self._of = key
        return self._made

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make, "_of": None, "_made": None}


class Projection:
    """x W' + b for weights [V, H] and a bias [V], over and over.

    The bias is one more column of the weights, which spares a pass over the results; columns of zeros make up whole
    lines of memory. Few rows have weights of their own, in the order in which they are read fastest.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._size, self._missing = weight.shape[1], -(weight.shape[1] + 1) % COLUMNS
        self._weight = torch.cat((weight, bias.unsqueeze(1), weight.new_zeros(len(weight), self._missing)), dim=1)
        self._few: Callable[[Tensor], Tensor] | None = None

    def __call__(self, vectors: Tensor) -> Tensor:
        """[n, H] -> [n, V]."""
        if len(vectors) > FEW_ROWS:
            return self._extended(vectors) @ self._weight.T
        if self._few is None:
            large = self._weight.numel() >= WORTH_PACKING and packing_is_possible()
            self._few = self._packed() if large else self._turned()
        return self._few(vectors)

    def _extended(self, vectors: Tensor) -> Tensor:
        rest = vectors.new_zeros(len(vectors), 1 + self._missing)
        rest[:, 0] = 1.0
        return torch.cat((vectors, rest), dim=1)

    def _turned(self) -> Callable[[Tensor], Tensor]:
        turned = self._weight.T.contiguous()
        return lambda vectors: self._extended(vectors) @ turned

    def _packed(self) -> Callable[[Tensor], Tensor]:
        weight, bias = self._weight[:, : self._size].contiguous(), self._weight[:, self._size].contiguous()
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, FEW_ROWS)
        product = torch.ops.mkldnn._linear_pointwise
        return lambda vectors: product(vectors, packed, bias, "none", [], "")


def packing_is_possible() -> bool:
    """Whether this build of torch has oneDNN's products with weights in blocks."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class RoundedProjection:
    """The same in int8, for results of which only the largest matter: these are computed again in float32.

    The weights are rounded per row of W, and x to 128 levels per call (with 256, processors without VNNI lose the sums
    that do not fit into 16 bits); four times fewer bytes are read. The largest are exact, the others off by some
    hundredths, which a normaliser hardly notices.
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._weight, self._bias, self._packed = weight, bias, _rounded(weight, bias)

    def __call__(self, vectors: Tensor) -> Tensor:
        """[n, H] -> [n, V]."""
        results = _int8_product(vectors, self._packed)
        ids = _large(results)  # [n, m]
        exact = torch.bmm(self._weight[ids], vectors.unsqueeze(2)).squeeze(2) + self._bias[ids]
        return results.scatter_(1, ids, exact)


def _large(results: Tensor) -> Tensor:
    """Places of the `EXACT` largest results of each row [n, V] -> [n, m]; they lie in the blocks with the largest
    maxima, so that the row is passed over once only. Where V is no multiple of the block's size, the rest is among
    them in any case."""
    num_rows, num_results = results.shape
    num_blocks = num_results // BLOCK
    rest = torch.arange(num_blocks * BLOCK, num_results, device=results.device).expand(num_rows, -1)
    if num_blocks <= EXACT:
        return torch.arange(num_results, device=results.device).expand(num_rows, -1)
    by_block = results[:, : num_blocks * BLOCK].view(num_rows, num_blocks, BLOCK)
    blocks = by_block.amax(dim=2).topk(EXACT, dim=1, sorted=False).indices.unsqueeze(2)  # [n, m, 1]
    candidates = by_block.gather(1, blocks.expand(-1, -1, BLOCK)).flatten(1)
    best = candidates.topk(EXACT, dim=1, sorted=False).indices
    return torch.cat((blocks.squeeze(2).gather(1, best // BLOCK) * BLOCK + best % BLOCK, rest), dim=1)


def int8_is_possible() -> bool:
    """Whether this build of torch has the products, and they keep off the processor's tiles (AMX).

    Some virtual machines promise tiles and end the process that uses them. Which instructions oneDNN uses is settled
    before its first product.
    """
    told = INSTRUCTIONS in os.environ
    return "onednn" in torch.backends.quantized.supported_engines and (told or not torch.cpu._is_amx_tile_supported())


def _rounded(weight: Tensor, bias: Tensor) -> Any:
    scales = (weight.abs().amax(dim=1) / 127).clamp_min(1e-12).double()
    zeros = torch.zeros(len(weight), dtype=torch.long)
    with _Engine(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rounded tensors are deprecated, with nothing in their place yet
        rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        return torch.ops.quantized.linear_prepack(rounded, bias)


def _int8_product(vectors: Tensor, packed: Any) -> Tensor:
    with _Engine():
        product: Tensor = torch.ops.quantized.linear_dynamic(vectors, packed, reduce_range=True)
    return product


class _Engine:
    """oneDNN's products inside the block: they use what int8 instructions the processor has."""

    def __enter__(self) -> None:
        self._before = torch.backends.quantized.engine
        torch.backends.quantized.engine = "onednn"

    def __exit__(self, *_: object) -> None:
        torch.backends.quantized.engine = self._before
