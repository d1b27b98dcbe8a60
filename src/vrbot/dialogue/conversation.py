"""A live conversation as a batch: the texts go the same way as those of a prepared corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vrbot.dialogue.batching import Limits, SessionBatch, collate
from vrbot.dialogue.encoding import TextEncoder
from vrbot.dialogue.ragged import offsets_of
from vrbot.dialogue.splits import Split, no_labels
from vrbot.errors import UsageError


def encode_conversation(
    encoder: TextEncoder,
    turns: Sequence[tuple[str, str]],
    name: str = "conversation",
    states: Sequence[Sequence[int] | None] | None = None,
) -> Split:
    """A split of one session from what patient and physician said; the last answer may be empty.

    `states` are those that are known: entities for each turn, or None.
    """
    if not turns:
        raise UsageError("a conversation needs at least one turn: give what the patient said")
    labels = no_labels(len(turns))
    if states is not None:
        known = [() if state is None else state for state in states]
        labels = replace(
            labels,
            state_entities=np.array([entity for state in known for entity in state], dtype=np.int32),
            state_offsets=offsets_of(np.array([len(state) for state in known])),
            state_known=np.array([state is not None for state in states], dtype=np.bool_),
        )
    return Split(
        session_ids=(name,),
        session_offsets=np.array([0, len(turns)], dtype=np.int64),
        texts=encoder.encode([text for turn in turns for text in turn]),
        labels=labels,
    )


def batch_from_conversation(
    encoder: TextEncoder, turns: Sequence[tuple[str, str]], limits: Limits | None = None
) -> SessionBatch:
    """The batch a model reads to answer the last turn; turns are (patient, physician)."""
    return collate(encode_conversation(encoder, turns), [0], limits=limits)
