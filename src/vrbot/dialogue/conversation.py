"""A live conversation as a batch: the texts go the same way as those of a prepared corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vrbot.dialogue.batching import Limits, SessionBatch, collate
from vrbot.dialogue.encoding import TextEncoder
from vrbot.dialogue.splits import Split, no_labels
from vrbot.errors import UsageError


def encode_conversation(encoder: TextEncoder, turns: Sequence[tuple[str, str]], name: str = "conversation") -> Split:
    """A split of one session from what patient and physician said; the last answer may be empty."""
    if not turns:
        raise UsageError("a conversation needs at least one turn: give what the patient said")
    return Split(
        session_ids=(name,),
        session_offsets=np.array([0, len(turns)], dtype=np.int64),
        texts=encoder.encode([text for turn in turns for text in turn]),
        labels=no_labels(len(turns)),
    )


def batch_from_conversation(
    encoder: TextEncoder, turns: Sequence[tuple[str, str]], limits: Limits | None = None
) -> SessionBatch:
    """The batch a model reads to answer the last turn; turns are (patient, physician)."""
    return collate(encode_conversation(encoder, turns), [0], limits=limits)
