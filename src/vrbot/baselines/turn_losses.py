"""The loss of each turn as the loss of a batch. Letters: N rows (turns)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from vrbot.dialogue.batching import SessionBatch
from vrbot.model.contract import BatchLoss


def batch_loss(batch: SessionBatch, loss: Tensor, terms: Mapping[str, Tensor]) -> BatchLoss:
    """From the loss and the terms of every turn, [N] each; a turn without a recorded reply does not count."""
    answered = batch.targets.response_lengths > 0
    counted = torch.where(answered, loss, 0.0)
    per_session = torch.zeros(len(batch.session_ids), device=loss.device)
    return BatchLoss(
        total=counted.sum(),
        num_turns=int(answered.sum()),
        terms={name: (term.detach() * answered).sum() for name, term in terms.items()},
        per_session=per_session.index_add(0, batch.session, counted.detach()),
    )
