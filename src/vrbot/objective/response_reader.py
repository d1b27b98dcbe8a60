"""What labelled turns teach about the category of a response: a linear reading of its words and its form.

The inference network sees the response, and so may its teacher: where some turns have a label, this reader is fitted
to them before training and says the category of the others. Letters: N rows, V words, C categories.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from vrbot.dialogue.batching import TurnTargets
from vrbot.dialogue.session import CATEGORIES
from vrbot.objective.response_form import ResponseForm


class TellsCategories(Protocol):
    """Anything that says what kind of action each response is."""

    def categories(self, targets: TurnTargets) -> Tensor:
        """The category of each response [N]."""
        ...


@dataclass(frozen=True, eq=False)
class ResponseReader:
    """Logits that are linear in the words there are and in what another teller says of the response."""

    other: TellsCategories
    weights: Tensor  # [V + C, C]
    bias: Tensor  # [C]

    @classmethod
    def taught_by(
        cls, labelled: Iterable[TurnTargets], other: TellsCategories, num_words: int
    ) -> ResponseReader | None:
        """Fitted to the turns whose category is known; None where they are all of one kind, or there are none."""
        features, labels = [], []
        for targets in labelled:
            rows = (targets.category_known & (targets.response_lengths > 0)).nonzero().squeeze(1)
            if not len(rows):
                continue
            features.append(sparse.csr_matrix(_features(targets, other, num_words)[rows].numpy()))
            labels.append(targets.category[rows].numpy())
        known = np.concatenate(labels) if labels else np.zeros(0, dtype=np.int64)
        kinds = np.unique(known)
        if len(kinds) < 2:
            return None
        fitted = LogisticRegression(max_iter=500).fit(sparse.vstack(features), known)
        coefficients, bias = fitted.coef_, fitted.intercept_
        if len(kinds) == 2:  # then there is one row, for the second kind against the first
            coefficients, bias = np.vstack((-coefficients, coefficients)), np.concatenate((-bias, bias))
        weights = torch.zeros(num_words + len(CATEGORIES), len(CATEGORIES))
        weights[:, kinds] = torch.from_numpy(coefficients.T).float()
        offsets = torch.full((len(CATEGORIES),), -torch.inf)
        offsets[kinds] = torch.from_numpy(bias).float()
        return cls(other, weights, offsets)

    def categories(self, targets: TurnTargets) -> Tensor:
        """The likeliest category of each response [N]; one that no label named is never it."""
        weights, bias = self.weights.to(targets.response.device), self.bias.to(targets.response.device)
        num_words = len(weights) - len(CATEGORIES)
        return (_features(targets, self.other, num_words) @ weights + bias).argmax(dim=1)


def best_teller(form: ResponseForm, targets: Iterable[TurnTargets]) -> TellsCategories:
    """Who tells the categories of responses: a reader taught by the labelled ones, or the form alone without any."""
    return ResponseReader.taught_by(targets, form, len(form.asking_words)) or form


def _features(targets: TurnTargets, other: TellsCategories, num_words: int) -> Tensor:
    """Which words there are, and what the other says, as numbers [N, V + C]."""
    response, lengths = targets.response, targets.response_lengths
    within = torch.arange(response.shape[1], device=response.device) < lengths.unsqueeze(1)
    words = torch.zeros(len(response), num_words, device=response.device).scatter_reduce(
        1, response, within.float(), "amax"
    )
    said = torch.nn.functional.one_hot(other.categories(targets), len(CATEGORIES))
    return torch.cat((words, said.to(words.dtype)), dim=1)
