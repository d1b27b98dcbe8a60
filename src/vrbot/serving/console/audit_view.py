"""The audit log as a page shows it: events newest first, filtered; one draft replayed; the switch thrown and noted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import select

from vrbot.safety.switch import KillSwitch, SwitchState
from vrbot.serving.actors import ADMINISTER, AUDIT, Actor
from vrbot.serving.problems import NotFoundError, RefusedError

# One draft is replayed as `replay` does it with many.
from vrbot.serving.replay import conversation_then, says_the_same
from vrbot.serving.responder import Responder
from vrbot.serving.schema import audit_events, drafts, users
from vrbot.serving.store import Store

AT_ONCE = 40
MOST_LOOKED_AT = 20_000
"""How many events are looked through for those of one person before the page asks to go on."""
Replayed = Literal["same", "different", "other model", "no model"]


@dataclass(frozen=True)
class Event:
    """One event of the chain; `before` is the hash it follows."""

    seq: int
    at: int
    kind: str
    actor: str
    role: str
    consultation: str | None
    rows: tuple[tuple[str, str, str | None], ...]
    detail: Mapping[str, Any]
    hash: str
    body: str

    @property
    def draft(self) -> str | None:
        """The draft it made, if it made one."""
        return next((key for table, key, _ in self.rows if table == "drafts"), None)


@dataclass(frozen=True)
class Wanted:
    """Which events to show; an empty string means any."""

    kind: str = ""
    actor: str = ""
    consultation: str = ""


def events(store: Store, actor: Actor, wanted: Wanted, before: int | None = None) -> tuple[list[Event], int | None]:
    """The newest events older than `before`, and where to go on if there are more."""
    actor.must(AUDIT)
    query = select(audit_events).order_by(audit_events.c.seq.desc()).limit(MOST_LOOKED_AT)
    if wanted.kind:
        query = query.where(audit_events.c.kind == wanted.kind)
    if wanted.consultation:
        query = query.where(audit_events.c.consultation == wanted.consultation)
    if before is not None:
        query = query.where(audit_events.c.seq < before)
    found: list[Event] = []
    last, looked_at = None, 0
    with store.reading() as connection:
        for row in connection.execute(query, execution_options={"yield_per": 200}):
            if len(found) == AT_ONCE:
                return found, last
            event, last, looked_at = _event(row), row.seq, looked_at + 1
            if not wanted.actor or event.actor == wanted.actor:
                found.append(event)
    return found, last if looked_at == MOST_LOOKED_AT else None


def kinds(store: Store, actor: Actor) -> list[str]:
    """The kinds of event there are."""
    actor.must(AUDIT)
    with store.reading() as connection:
        return sorted(connection.execute(select(audit_events.c.kind).distinct()).scalars())


def names(store: Store, actor: Actor) -> dict[str, str]:
    """User names by id."""
    actor.must(AUDIT)
    with store.reading() as connection:
        return {row.id: row.name for row in connection.execute(select(users.c.id, users.c.name))}


def replay_draft(store: Store, actor: Actor, responder: Responder | None, draft: str) -> Replayed:
    """Asks the model again for one draft: it must come out the same to the last bit."""
    actor.must(AUDIT)
    if responder is None:
        return "no model"
    with store.reading() as connection:
        row = connection.execute(select(drafts).where(drafts.c.id == draft)).mappings().one_or_none()
        if row is None or row["reply"] is None:
            raise NotFoundError("there is no such draft of a model: it may be a physician's own")
        kept = dict(row)
        conversation = conversation_then(connection, kept)
    if kept["model"] != responder.fingerprint:
        return "other model"
    return "same" if says_the_same(responder, conversation, kept) else "different"


def throw_switch(store: Store, switch: KillSwitch | None, actor: Actor, on: bool, reason: str) -> SwitchState:
    """Stops drafts, or allows them again, and notes it in the log; the reason stays in the switch's own file."""
    actor.must(ADMINISTER)
    if switch is None:
        raise RefusedError("this desk was started without a kill switch")
    who, change = names_or_id(store, actor), switch.switch_on if on else switch.switch_off
    with store.writing("drafts switched off" if on else "drafts switched on", actor) as writer:
        writer.detail["on"] = on
        return change(reason, who, datetime.fromtimestamp(writer.now / 1e6, UTC))


def names_or_id(store: Store, actor: Actor) -> str:
    """The name of a user; whoever has no account keeps the id."""
    with store.reading() as connection:
        name = connection.execute(select(users.c.name).where(users.c.id == actor.id)).scalar_one_or_none()
    return str(name or actor.id)


def pretty(event: Event) -> str:
    """The body as it was hashed, laid out to be read."""
    return json.dumps(json.loads(event.body), ensure_ascii=False, indent=2)


def _event(row: Any) -> Event:
    body = json.loads(row.body)
    rows = tuple((table, key, digest) for table, key, digest in body["rows"])
    who = body["actor"], body["role"]
    return Event(row.seq, body["at"], row.kind, *who, row.consultation, rows, body["detail"], row.hash, row.body)
