"""What the list of consultations shows: for each the last thing said, and whether somebody waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from vrbot.serving.actors import CONSULT, Actor
from vrbot.serving.records import Consultation, Turn
from vrbot.serving.safety_desk import Inspection
from vrbot.serving.schema import audit_events, consultations, messages, turns
from vrbot.serving.store import Store

MOST_CLOSED = 200
"""How many closed consultations the list shows, newest first; one that is open is never left out."""
NO_FLAGS = Inspection().to_json()


@dataclass(frozen=True)
class Listed:
    """One line of the list; `flagged` says whether a red flag stands in what was said since the last answer."""

    consultation: Consultation
    last: Turn | None
    answered: bool
    flagged: bool

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
        return self.status == "waiting" and self.flagged

    @property
    def active_at(self) -> int:
        """When something happened last."""
        return self.consultation.opened_at if self.last is None else self.last.received_at


def listed(store: Store, actor: Actor) -> tuple[Listed, ...]:
    """The actor's consultations: red flags first, then those that wait, then by time."""
    actor.must(CONSULT)
    own, is_open = consultations.c.owner == actor.id, consultations.c.closed_at.is_(None)
    ended = select(consultations.c.id).where(own, ~is_open).limit(MOST_CLOSED)
    ended = ended.order_by(consultations.c.opened_at.desc(), consultations.c.id)
    chosen = and_(own, or_(is_open, consultations.c.id.in_(ended)))
    with store.reading() as connection:
        rows = connection.execute(select(consultations).where(chosen).order_by(consultations.c.id)).mappings()
        found = [Consultation.of(dict(row)) for row in rows]
        last = {row["consultation"]: dict(row) for row in connection.execute(_last_turns(chosen)).mappings()}
        flagged = set(connection.execute(_flagged(and_(own, is_open))).scalars())
    lines = []
    for each in found:
        row = last.get(each.id)
        answered = row is not None and row.pop("message") is not None
        lines.append(Listed(each, None if row is None else Turn.of(row), answered, each.id in flagged))
    return tuple(sorted(lines, key=lambda line: (not line.urgent, line.status != "waiting", -line.active_at)))


def _last_turns(chosen: ColumnElement[bool]) -> Select[Any]:
    """The newest turn of each of the consultations, and the message that answers it, if any."""
    within = turns.c.consultation.in_(select(consultations.c.id).where(chosen))
    highest = select(turns.c.consultation, func.max(turns.c.seq).label("seq")).where(within)
    last = highest.group_by(turns.c.consultation).subquery()
    query = select(turns, messages.c.id.label("message")).outerjoin(messages, messages.c.turn == turns.c.id)
    return query.join(last, (last.c.consultation == turns.c.consultation) & (last.c.seq == turns.c.seq))


def _flagged(chosen: ColumnElement[bool]) -> Select[Any]:
    """Those of the consultations in which a turn after the last one answered has a red flag."""
    within = turns.c.consultation.in_(select(consultations.c.id).where(chosen))
    answered = select(turns.c.consultation, func.max(turns.c.seq).label("seq")).where(within)
    answered = answered.join(messages, messages.c.turn == turns.c.id).group_by(turns.c.consultation)
    until = answered.subquery()
    query = select(turns.c.consultation).distinct().outerjoin(until, until.c.consultation == turns.c.consultation)
    return query.where(within, turns.c.flags != NO_FLAGS, turns.c.seq > func.coalesce(until.c.seq, 0))


def stamp(store: Store, consultation: str) -> int:
    """The number of the last event of a consultation: it has grown if anything at all has happened in it."""
    newest = select(func.max(audit_events.c.seq)).where(audit_events.c.consultation == consultation)
    with store.reading() as connection:
        return int(connection.execute(newest).scalar() or 0)
