"""What the list of consultations shows: for each the last thing said, and whether somebody waits."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from vrbot.serving.actors import CONSULT, Actor
from vrbot.serving.records import Consultation, Turn
from vrbot.serving.schema import audit_events, consultations, messages, turns
from vrbot.serving.store import Store

MOST = 200
"""How many consultations the list shows, newest first."""


@dataclass(frozen=True)
class Listed:
    """One line of the list."""

    consultation: Consultation
    last: Turn | None
    answered: bool

    @property
    def status(self) -> str:
        """closed, empty, waiting or answered."""
        if self.consultation.closed_at is not None:
            return "closed"
        if self.last is None:
            return "empty"
        return "answered" if self.answered else "waiting"

    @property
    def urgent(self) -> bool:
        """Whether a red flag waits for an answer."""
        return self.status == "waiting" and self.last is not None and self.last.urgent

    @property
    def active_at(self) -> int:
        """When something happened last."""
        return self.consultation.opened_at if self.last is None else self.last.received_at


def listed(store: Store, actor: Actor) -> tuple[Listed, ...]:
    """The actor's consultations: red flags first, then those that wait, then by time."""
    actor.must(CONSULT)
    with store.reading() as connection:
        own = select(consultations).where(consultations.c.owner == actor.id)
        newest = own.order_by(consultations.c.opened_at.desc(), consultations.c.id).limit(MOST)
        found = [Consultation.of(dict(row)) for row in connection.execute(newest).mappings()]
        keys = [each.id for each in found]
        highest = select(turns.c.consultation, func.max(turns.c.seq).label("seq"))
        last = highest.where(turns.c.consultation.in_(keys)).group_by(turns.c.consultation).subquery()
        query = select(turns, messages.c.id.label("message")).outerjoin(messages, messages.c.turn == turns.c.id)
        query = query.join(last, (last.c.consultation == turns.c.consultation) & (last.c.seq == turns.c.seq))
        rows = {row["consultation"]: dict(row) for row in connection.execute(query).mappings()}
    lines = []
    for each in found:
        row = rows.get(each.id)
        answered = row is not None and row.pop("message") is not None
        lines.append(Listed(each, None if row is None else Turn.of(row), answered))
    return tuple(sorted(lines, key=lambda line: (not line.urgent, line.status != "waiting", -line.active_at)))


def stamp(store: Store, consultation: str) -> int:
    """The number of the last event of a consultation: it has grown if anything at all has happened in it."""
    newest = select(func.max(audit_events.c.seq)).where(audit_events.c.consultation == consultation)
    with store.reading() as connection:
        return int(connection.execute(newest).scalar() or 0)
