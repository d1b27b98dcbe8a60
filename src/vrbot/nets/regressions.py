"""Many logistic regressions at once, over sparse features, fitted to all examples together; counts as such features.

Letters: T examples, F features, K outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

Counts = Any
"""A scipy CSR matrix; its own type has a parameter that differs between versions."""

Floats = NDArray[np.float32]

RIDGE = 0.5
RATE, FIRST_SQUARE = 0.6, 0.01
EPOCHS, EXAMPLES_AT_ONCE = 8, 512
"""Stopping early is part of the setting, as the ridge is."""


@dataclass(frozen=True, eq=False)
class LogisticRegressions:
    """K independent outputs: probabilities sigmoid(X W + b)."""

    weights: Tensor  # [F, K]
    bias: Tensor  # [K]

    def logits(self, features: Counts) -> Tensor:
        """[T, K]."""
        return torch.from_numpy(features @ self.weights.numpy()) + self.bias

    def scores(self, features: Counts) -> Floats:
        """Probabilities [T, K]."""
        found: Floats = self.logits(features).sigmoid().numpy()
        return found


@torch.no_grad()
def fit_regressions(
    features: Counts, wanted: Floats, *, ridge: float = RIDGE, epochs: int | None = None
) -> LogisticRegressions:
    """Towards maximum likelihood with a penalty of ridge / 2 times the squared weights (the biases go free), by AdaGrad
    with a falling rate: after few epochs it is where a method that looks at all examples at once takes many steps to.

    `wanted` [T, K] is 1 where the output applies.
    """
    named = torch.from_numpy(np.ascontiguousarray(wanted, dtype=np.float32))
    weights = torch.zeros(features.shape[1], named.shape[1])
    bias = ((named.sum(dim=0) + 0.5) / (len(named) + 1)).logit()
    squares, bias_squares = torch.full_like(weights, FIRST_SQUARE), torch.ones_like(bias)
    generator, epochs = np.random.default_rng(0), EPOCHS if epochs is None else epochs
    steps = epochs * -(-len(named) // EXAMPLES_AT_ONCE)
    batches = (
        order[start : start + EXAMPLES_AT_ONCE]
        for order in (generator.permutation(len(named)) for _ in range(epochs))
        for start in range(0, len(named), EXAMPLES_AT_ONCE)
    )
    for step, rows in enumerate(batches):
        seen, rate = features[rows], RATE * (1.0 - step / steps)
        error = (torch.from_numpy(seen @ weights.numpy()) + bias).sigmoid() - named[rows]
        slope = torch.from_numpy(sparse.csr_array(seen.T) @ error.numpy())
        slope.add_(weights, alpha=ridge * len(rows) / len(named))
        squares.addcmul_(slope, slope)
        weights.addcdiv_(slope, squares.sqrt(), value=-rate)
        slope = error.sum(dim=0)
        bias_squares.addcmul_(slope, slope)
        bias.addcdiv_(slope, bias_squares.sqrt(), value=-rate)
    return LogisticRegressions(weights, bias)


def rarity_of(counts: Counts) -> Floats:
    """The inverse document frequency of each feature [F]."""
    having = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity: Floats = (np.log((1 + counts.shape[0]) / (1 + having)) + 1).astype(np.float32)
    return rarity


def tf_idf(counts: Counts, rarity: Floats) -> Counts:
    """Logarithms of counts weighted by rarity, rows of length 1 [T, F]."""
    weighted = counts.copy()
    weighted.data = (1 + np.log(counts.data)).astype(np.float32) * rarity[counts.indices]
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).reshape(-1))
    weighted.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(weighted.indptr)).astype(np.float32)
    return weighted
