"""What labelled turns teach about mentions: which words around one speak for its being part of the state.

Letters: N rows, M mentions, F cues.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from vrbot.dialogue.batching import SessionBatch
from vrbot.model.surroundings import Surroundings

SOFTNESS = 3.0
"""The weight of the labels against that of small weights."""

FEWEST = 200
"""With fewer mentions to learn from nothing is concluded."""


def teach_surroundings(surroundings: Surroundings, batches: Iterable[SessionBatch]) -> None:
    """Sets what cues are worth by logistic regression on the mentions of labelled turns that bring something new."""
    cues, labels = [], []
    for batch in (batch for batch in batches if batch.targets.state_known.any()):
        found, in_state = _news(surroundings, batch)
        cues.append(_as_matrix(found, surroundings.num_cues))
        labels.append(in_state)
    known = np.concatenate(labels) if labels else np.zeros(0, dtype=np.bool_)
    surroundings.worth.zero_()
    if len(known) < FEWEST or known.all() or not known.any():
        return
    fitted = LogisticRegression(C=SOFTNESS, max_iter=1000).fit(sparse.vstack(cues), known)
    worth = torch.from_numpy(fitted.coef_[0]).float()
    speakers = slice(len(worth) - surroundings.num_entities - 2, len(worth) - surroundings.num_entities)
    worth[speakers] += float(fitted.intercept_[0])  # every mention has one speaker
    surroundings.worth.copy_(worth)


def _news(surroundings: Surroundings, batch: SessionBatch) -> tuple[Tensor, NDArray[np.bool_]]:
    """The cues of mentions [X, F] that the last turn's state did not hold, in labelled turns, and whether this one
    does [X]."""
    inputs, targets, layout = batch.inputs, batch.targets, batch.layout
    entities = inputs.mention_entities

    def is_in(states: Tensor) -> Tensor:
        return (entities.unsqueeze(2) == states.unsqueeze(1)).any(dim=2)

    held = is_in(targets.state[layout.row_before]) & (layout.turn > 0).unsqueeze(1)
    counted = (entities >= 0) & targets.state_known.unsqueeze(1) & ~held
    in_state = is_in(targets.state)
    return surroundings.cues(inputs)[counted], in_state[counted].numpy()


def _as_matrix(cues: Tensor, num_cues: int) -> sparse.csr_matrix:
    """Cues [X, F] as counts [X, cues]."""
    there = (cues >= 0).numpy()
    ends = np.concatenate(([0], there.sum(axis=1).cumsum()))
    columns = cues.numpy()[there]
    return sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(cues), num_cues))
