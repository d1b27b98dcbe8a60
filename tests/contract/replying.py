"""Replies to every turn of a batch, with what the model perceived, for laws that hold of every model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vrbot.agent.replies import search
from vrbot.config import DecodingSettings
from vrbot.dialogue.batching import SessionBatch
from vrbot.model.contract import DialogueModel, Perception

ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class TurnReply:
    """What a model made of one turn: word ids of the reply, and what it perceived (None where it has no such part)."""

    session_id: str
    turn: int
    words: tuple[int, ...]
    state: tuple[int, ...] | None
    category: int | None
    keywords: tuple[int, ...] | None


@torch.no_grad()
def reply_to_batch(model: DialogueModel, batch: SessionBatch, decoding: DecodingSettings) -> list[TurnReply]:
    """A reply to each turn of a batch; only the inputs are looked at."""
    perception = model.perceive(batch.inputs, batch.layout)
    replies: list[TurnReply] = []
    for rows in torch.arange(len(batch.turn)).split(ROWS_AT_ONCE):
        decoded = search(model, perception, rows, decoding)
        for row, tokens, length in zip(
            rows.tolist(), decoded.tokens[:, 0], decoded.lengths[:, 0].tolist(), strict=True
        ):
            replies.append(_turn_reply(batch, perception, row, tokens[:length]))
    return replies


def _turn_reply(batch: SessionBatch, perception: Perception, row: int, words: Tensor) -> TurnReply:
    return TurnReply(
        session_id=batch.session_ids[int(batch.session[row])],
        turn=int(batch.turn[row]),
        words=tuple(words.tolist()),
        state=_named(perception.state, row),
        category=None if perception.category is None else int(perception.category[row].argmax()),
        keywords=_named(perception.keywords, row),
    )


def _named(spans: Tensor | None, row: int) -> tuple[int, ...] | None:
    return None if spans is None else tuple(entity for entity in spans[row].tolist() if entity >= 0)
