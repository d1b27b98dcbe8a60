"""Labels people give to stored turns, and the sessions for training that come of them, without anybody's name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from vrbot.dialogue.session import CATEGORIES, Action, Session
from vrbot.dialogue.session import Turn as DialogueTurn
from vrbot.serving.actors import ANNOTATE, CONSULT, EXPORT, Actor
from vrbot.serving.problems import InvalidInputError
from vrbot.serving.queries import messages_of, own_consultation, turn_of, turns_of
from vrbot.serving.records import Consultation
from vrbot.serving.safety_desk import SafetyDesk
from vrbot.serving.schema import LABELS, consultations, labels, turns
from vrbot.serving.store import Store
from vrbot.serving.texts import canonical_json, checked_text

MAX_ENTITIES = 200


@dataclass(frozen=True)
class Label:
    """One label of a turn; of several of a kind the highest number counts."""

    id: str
    turn: str
    number: int
    kind: str
    value: Any
    made_at: int
    made_by: str


class Annotation:
    """Labels in, sessions out."""

    def __init__(self, store: Store, safety: SafetyDesk) -> None:
        self._store, self._safety = store, safety

    def label(self, actor: Actor, turn: str, kind: str, value: Any) -> Label:
        """A label (or a correction of one): state and keywords are lists of entity names, category is one of four."""
        actor.must(ANNOTATE)
        text = canonical_json(_checked_label(kind, value))
        with self._store.writing("label given", actor) as writer:
            found = turn_of(writer.connection, turn)
            if actor.may(CONSULT):
                own_consultation(writer.connection, actor, found.consultation)
            writer.consultation = found.consultation
            newest = select(labels).where(labels.c.turn == turn, labels.c.kind == kind)
            last = writer.connection.execute(newest.order_by(labels.c.number.desc())).mappings().first()
            if last is not None and (last["value"], last["made_by"]) == (text, actor.id):
                return _label(dict(last))
            counted = select(func.coalesce(func.max(labels.c.number), 0)).where(labels.c.turn == turn)
            number = writer.connection.execute(counted).scalar_one() + 1
            values = {"turn": turn, "number": number, "kind": kind, "value": text, "made_by": actor.id}
            return _label(writer.insert(labels, made_at=writer.now, **values))

    def labels_of(self, actor: Actor, turn: str) -> dict[str, Label]:
        """The labels of a turn that count, by kind."""
        actor.must(ANNOTATE)
        with self._store.reading() as connection:
            found = turn_of(connection, turn)
            if actor.may(CONSULT):
                own_consultation(connection, actor, found.consultation)
            query = select(labels).where(labels.c.turn == turn).order_by(labels.c.number)
            given = [_label(dict(row)) for row in connection.execute(query).mappings()]
        return {label.kind: label for label in given}

    def export(self, actor: Actor, *, demo: bool = False) -> Iterator[Session]:
        """De-identified sessions in the canonical form, and an event that says so; demonstrations only if asked for."""
        actor.must(EXPORT)
        with self._store.reading() as connection:
            query = select(consultations).where(consultations.c.demo == int(demo))
            rows = connection.execute(query.order_by(consultations.c.opened_at, consultations.c.id)).mappings()
            chosen = [Consultation.of(dict(row)) for row in rows]
        with self._store.writing("sessions exported", actor) as writer:
            writer.detail |= {"consultations": len(chosen), "demo": demo}
        return (session for each in chosen if (session := self.deidentified(actor, each.id)) is not None)

    def deidentified(self, actor: Actor, consultation: str) -> Session | None:
        """One consultation without names; None if nobody has said anything in it.

        A text the rules cannot work on is an error: it is never given out as it is.
        """
        if not actor.may(EXPORT):
            actor.must(ANNOTATE)
        with self._store.reading() as connection:
            said = turns_of(connection, consultation)
            answers = {message.turn: message.text for message in messages_of(connection, consultation)}
            query = select(labels).join(turns, turns.c.id == labels.c.turn).order_by(labels.c.number)
            rows = connection.execute(query.where(turns.c.consultation == consultation)).mappings()
            given = {(row["turn"], row["kind"]): _label(dict(row)).value for row in rows}
        kept = []
        for turn in said:
            patient, physician = self._nameless(turn.text), self._nameless(answers.get(turn.id, ""))
            if patient or physician:
                state, category, keywords = (given.get((turn.id, kind)) for kind in LABELS)
                kept.append(DialogueTurn(patient, physician, _names(state), _action(category, keywords)))
        name = hashlib.sha256(f"export|{consultation}".encode()).hexdigest()[:16]
        return Session(name, tuple(kept)) if kept else None

    def _nameless(self, text: str) -> str:
        """De-identified; NUL, which the canonical form does not have, becomes a blank."""
        return self._safety.deidentify(text).replace("\0", " ") if text else ""


def _checked_label(kind: str, value: Any) -> Any:
    if kind not in LABELS:
        raise InvalidInputError(f"{str(kind)[:20]!r} is not a kind of label: use one of {', '.join(LABELS)}")
    if kind == "category":
        if value not in CATEGORIES:
            raise InvalidInputError(f"a category is one of {', '.join(CATEGORIES)}")
        return value
    if not isinstance(value, (list, tuple)) or len(value) > MAX_ENTITIES:
        raise InvalidInputError(f"{kind} must be a list of at most {MAX_ENTITIES} entity names")
    names = [checked_text(name, f"an entity of {kind}") for name in value]
    if not all(names) or any("\0" in name for name in names):
        raise InvalidInputError(f"an entity of {kind} must be a name")
    return names


def _label(row: dict[str, Any]) -> Label:
    return Label(**{**row, "value": json.loads(row["value"])})


def _names(value: Any) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)


def _action(category: str | None, keywords: Any) -> Action | None:
    return None if category is None and keywords is None else Action(category, _names(keywords))
