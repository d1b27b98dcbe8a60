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
from torch.nn import functional as F

Counts = Any
"""A scipy CSR matrix; its own type has a parameter that differs between versions."""

Floats = NDArray[np.float32]

RIDGE = 0.5
STEPS, REMEMBERED_STEPS, TRIES_PER_STEP = 50, 5, 2
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
    features: Counts, wanted: Floats, *, ridge: float = RIDGE, steps: int = STEPS
) -> LogisticRegressions:
    """Maximum likelihood with a penalty of ridge / 2 times the squared weights (the biases go free), by L-BFGS.

    `wanted` [T, K] is 1 where the output applies.
    """
    turned = sparse.csr_array(features.T)
    named = torch.from_numpy(np.ascontiguousarray(wanted, dtype=np.float32))
    share = (named.sum(dim=0) + 0.5) / (len(named) + 1)
    weights, bias = torch.zeros(features.shape[1], named.shape[1]), share.logit()
    optimiser = torch.optim.LBFGS(
        [weights.requires_grad_(), bias.requires_grad_()],
        max_iter=steps,
        max_eval=TRIES_PER_STEP * steps,
        history_size=REMEMBERED_STEPS,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    @torch.no_grad()
    def loss() -> float:
        logits = torch.from_numpy(features @ weights.detach().numpy()) + bias
        error = logits.sigmoid() - named
        weights.grad, bias.grad = torch.from_numpy(turned @ error.numpy()) + ridge * weights, error.sum(dim=0)
        likelihood = F.softplus(logits).sum(dtype=torch.float64) - (named * logits).sum(dtype=torch.float64)
        return float(likelihood + 0.5 * ridge * weights.square().sum(dtype=torch.float64))

    optimiser.step(loss)
    return LogisticRegressions(weights.detach(), bias.detach())


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
