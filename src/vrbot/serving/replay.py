"""Replaying: every stored draft of a model, asked for again, must come out the same to the last bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from vrbot.serving.queries import messages_of, turn_of, turns_of
from vrbot.serving.responder import Responder
from vrbot.serving.schema import drafts
from vrbot.serving.store import Store
from vrbot.serving.texts import canonical_json


@dataclass(frozen=True)
class ReplayReport:
    """How many drafts came out the same, the ids of those that did not, and how many another model had made."""

    same: int
    different: tuple[str, ...]
    other_model: int

    @property
    def good(self) -> bool:
        return not self.different


def replay(
    store: Store, responder: Responder, limit: int | None = None, told: Callable[[int], None] = lambda count: None
) -> ReplayReport:
    """Computes stored drafts again, the newest `limit` of them; `told` hears of each."""
    query = select(drafts.c.id).where(drafts.c.reply.is_not(None)).order_by(drafts.c.made_at.desc(), drafts.c.id)
    with store.reading() as connection:
        chosen = list(connection.execute(query.limit(limit)).scalars())
    same, other, different = 0, 0, []
    for key in chosen:
        with store.reading() as connection:
            row = dict(connection.execute(select(drafts).where(drafts.c.id == key)).mappings().one())
            conversation = conversation_then(connection, row)
        if row["model"] != responder.fingerprint:
            other += 1
        elif says_the_same(responder, conversation, row):
            same += 1
        else:
            different.append(key)
        told(1)
    return ReplayReport(same, tuple(different), other)


def conversation_then(connection: Any, row: dict[str, Any]) -> list[tuple[str, str]]:
    """What the model had read: only the answers that had been sent when the draft was made."""
    turn = turn_of(connection, row["turn"])
    answers = {message.id: message.text for message in messages_of(connection, turn.consultation, turn.seq)}
    said = turns_of(connection, turn.consultation, turn.seq)
    context = json.loads(row["context"])
    return [
        (each.text, answers.get(message, "") if message else "") for each, message in zip(said, context, strict=True)
    ]


def says_the_same(responder: Responder, conversation: list[tuple[str, str]], row: dict[str, Any]) -> bool:
    """Whether the model's reply is the stored one to the last bit, and its text the one that could be sent."""
    try:
        if row["change"] is None:
            reply = dict(responder.respond(conversation))
        else:
            reply = dict(responder.what_if(conversation, json.loads(row["change"])))
        return bool(canonical_json(reply) == row["reply"] and reply["text"] == row["text"])
    except Exception:  # a model that fails now and did not then has not said the same
        return False
