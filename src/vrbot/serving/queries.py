"""What the desk looks up; every function reads inside a transaction of the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table, func, select

from vrbot.errors import IntegrityError
from vrbot.serving.actors import CONSULT, Actor
from vrbot.serving.problems import NotFoundError, RefusedError
from vrbot.serving.records import Consultation, Decision, Draft, Message, Turn
from vrbot.serving.schema import consultations, decisions, drafts, messages, turns
from vrbot.serving.texts import text_sha256


def row_of(connection: Connection, table: Table, key: str) -> dict[str, Any]:
    """The row with an id; NotFoundError if there is none."""
    row = connection.execute(select(table).where(table.c.id == key)).mappings().one_or_none()
    if row is None:
        raise NotFoundError(f"there is no such {table.name.removesuffix('s')}: check the id")
    return dict(row)


def own_consultation(connection: Connection, actor: Actor, key: str, *, to_change: bool = False) -> Consultation:
    """A consultation of the actor's own; that of somebody else looks like none at all."""
    actor.must(CONSULT)
    found = Consultation.of(row_of(connection, consultations, key))
    if found.owner != actor.id:
        raise NotFoundError("there is no such consultation: check the id")
    if to_change:
        open_consultation(connection, actor, key, to_change=True)
    return found


def open_consultation(connection: Connection, actor: Actor, key: str, *, to_change: bool = False) -> Consultation:
    """A consultation whoever's it is, which must not have ended if something is to change in it."""
    found = Consultation.of(row_of(connection, consultations, key))
    if to_change and found.closed_at is not None:
        raise RefusedError("the consultation is closed: open a new one")
    return found


def turn_of(connection: Connection, key: str) -> Turn:
    """A turn by its id."""
    return Turn.of(row_of(connection, turns, key))


def turns_of(connection: Connection, consultation: str, up_to: int | None = None) -> list[Turn]:
    """The turns of a consultation in order."""
    query = select(turns).where(turns.c.consultation == consultation).order_by(turns.c.seq)
    if up_to is not None:
        query = query.where(turns.c.seq <= up_to)
    return [Turn.of(dict(row)) for row in connection.execute(query).mappings()]


def last_seq(connection: Connection, consultation: str) -> int:
    """The number of the newest turn; 0 if there is none."""
    query = select(func.coalesce(func.max(turns.c.seq), 0)).where(turns.c.consultation == consultation)
    return int(connection.execute(query).scalar_one())


def drafts_of(connection: Connection, consultation: str) -> list[Draft]:
    """The drafts of a consultation, by turn and version."""
    query = select(drafts).join(turns, turns.c.id == drafts.c.turn).where(turns.c.consultation == consultation)
    rows = connection.execute(query.order_by(turns.c.seq, drafts.c.version)).mappings()
    return [Draft.of(dict(row)) for row in rows]


def decisions_of(connection: Connection, consultation: str) -> list[Decision]:
    """The decisions of a consultation, by turn and version of the draft."""
    query = select(decisions).join(drafts, drafts.c.id == decisions.c.draft).join(turns, turns.c.id == drafts.c.turn)
    query = query.where(turns.c.consultation == consultation).order_by(turns.c.seq, drafts.c.version)
    return [Decision.of(dict(row)) for row in connection.execute(query).mappings()]


def last_version(connection: Connection, turn: str) -> int:
    """The version of the newest draft of a turn; 0 if there is none."""
    query = select(func.coalesce(func.max(drafts.c.version), 0)).where(drafts.c.turn == turn)
    return int(connection.execute(query).scalar_one())


def reply_behind(connection: Connection, draft: Draft) -> Mapping[str, Any] | None:
    """What the model said about a draft, or about the one it was made from; None if no model had a part in it."""
    while draft.reply is None and draft.parent is not None:
        draft = Draft.of(row_of(connection, drafts, draft.parent))
    return draft.reply


def decision_on(connection: Connection, draft: str) -> Decision | None:
    """What was decided about a draft, if anything."""
    row = connection.execute(select(decisions).where(decisions.c.draft == draft)).mappings().one_or_none()
    return None if row is None else Decision.of(dict(row))


def messages_of(connection: Connection, consultation: str, up_to: int | None = None) -> list[Message]:
    """The messages of a consultation, in the order of the turns they answer.

    A text is handed out only if it is the very text that was accepted: IntegrityError where somebody has changed it.
    """
    query = (
        select(messages, drafts.c.text, decisions.c.kind, decisions.c.simulated)
        .add_columns(decisions.c.text_sha256.label("approved"), decisions.c.draft.label("decided"))
        .join(turns, turns.c.id == messages.c.turn)
        .join(drafts, drafts.c.id == messages.c.draft)
        .join(decisions, decisions.c.id == messages.c.decision)
        .where(turns.c.consultation == consultation, drafts.c.turn == messages.c.turn)
        .order_by(turns.c.seq)
    )
    if up_to is not None:
        query = query.where(turns.c.seq <= up_to)
    found = []
    for row in connection.execute(query).mappings():
        values = dict(row)
        kind, approved, decided = values.pop("kind"), values.pop("approved"), values.pop("decided")
        text = values["text"]
        approves = kind == "accept" and decided == values["draft"]
        if not approves or text is None or not text_sha256(text) == approved == values["text_sha256"]:
            raise IntegrityError(
                f"message {values['id']} is not the text that was approved: it is not shown; run `vrbot audit verify`"
            )
        values |= {name: bool(values[name]) for name in ("medicine_suggestion", "simulated")}
        found.append(Message(**values))
    return found


def conversation_of(connection: Connection, turn: Turn) -> tuple[list[tuple[str, str]], list[str | None]]:
    """What was said up to a turn, and for each turn before it the message that answered it, if any."""
    said = turns_of(connection, turn.consultation, turn.seq)
    answers = {message.turn: message for message in messages_of(connection, turn.consultation, turn.seq - 1)}
    pairs = [(each.text, answers[each.id].text if each.id in answers else "") for each in said]
    return pairs, [answers[each.id].id if each.id in answers else None for each in said]
