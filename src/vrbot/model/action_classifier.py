"""The action classifier: the category of the physician's action (paper, Eqs. 9 and 13)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ActionClassifier(nn.Module):
    """A softmax over the four categories from whatever evidence there is."""

    def __init__(self, evidence_sizes: tuple[int, ...], num_categories: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.classify = nn.Linear(sum(evidence_sizes), num_categories)

    def forward(self, *evidence: Tensor) -> Tensor:
        """Evidence vectors [N, .] -> log probabilities [N, C]."""
        logits: Tensor = self.classify(self.dropout(torch.cat(evidence, dim=-1)))
        return logits.log_softmax(dim=-1)
