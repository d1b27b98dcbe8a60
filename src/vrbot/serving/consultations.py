"""Consultations and what patients say in them: stored before anyone sees it."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Connection, select

from vrbot.serving.actors import CONSULT, PATIENT, Actor
from vrbot.serving.problems import ConflictError, InvalidInputError
from vrbot.serving.queries import (
    decisions_of,
    drafts_of,
    last_seq,
    messages_of,
    open_consultation,
    own_consultation,
    row_of,
    turn_of,
    turns_of,
)
from vrbot.serving.records import Case, Consultation, PatientLine, Turn
from vrbot.serving.safety_desk import SafetyDesk, inspect_utterance
from vrbot.serving.schema import consultations, openings, turns
from vrbot.serving.store import Store
from vrbot.serving.texts import LONGEST_OF_PATIENT, checked_length, checked_name, checked_text, text_sha256

LANGUAGES = ("zh", "en")


class MayReceive(Protocol):
    """Looks a consultation up and refuses whoever may not speak in it."""

    def __call__(self, connection: Connection, actor: Actor, key: str, *, to_change: bool = False) -> Consultation: ...


class Consultations:
    """The consultations of a store; `demo` marks those it opens as demonstrations."""

    def __init__(self, store: Store, safety: SafetyDesk, *, demo: bool) -> None:
        self._store, self._safety, self._demo = store, safety, demo

    def open(
        self, actor: Actor, language: str = "zh", reference: str = "", client_consultation_id: str | None = None
    ) -> Consultation:
        """A new consultation of the actor's; under an id once: a retry gives the same, other values are a conflict."""
        actor.must(CONSULT)
        if client_consultation_id is not None:
            checked_name(client_consultation_id, "client_consultation_id")
        if language not in LANGUAGES:
            raise InvalidInputError(f"language must be one of {', '.join(LANGUAGES)}, got {str(language)[:20]!r}")
        checked_text(reference, "reference")
        key = self._store.new_id()
        with self._store.writing("consultation opened", actor, key) as writer:
            there = _opened_before(writer.connection, actor, client_consultation_id)
            if there is not None:
                if (there.language, there.reference) != (language, reference):
                    raise ConflictError("client_consultation_id is that of another consultation: use a new id")
                return there
            values = {"owner": actor.id, "language": language, "reference": reference, "demo": int(self._demo)}
            row = writer.insert(consultations, id=key, opened_at=writer.now, **values)
            if client_consultation_id is not None:
                named = {"owner": actor.id, "client_consultation_id": client_consultation_id}
                writer.insert(openings, consultation=key, **named)
            writer.detail["demo"] = self._demo
        return Consultation.of(row)

    def close(self, actor: Actor, consultation: str) -> Consultation:
        """The end of a consultation: nothing more is said or sent in it."""
        with self._store.writing("consultation closed", actor, consultation) as writer:
            found = own_consultation(writer.connection, actor, consultation)
            if found.closed_at is None:
                writer.update(consultations, consultation, closed_at=writer.now)
            return Consultation.of(row_of(writer.connection, consultations, consultation))

    def hand_over(self, actor: Actor, consultation: str, to: str) -> Consultation:
        """Gives a consultation to another physician, who alone may go on with it."""
        checked_name(to, "the physician to hand over to")
        with self._store.writing("consultation handed over", actor, consultation) as writer:
            own_consultation(writer.connection, actor, consultation, to_change=True)
            writer.update(consultations, consultation, owner=to)
            return Consultation.of(row_of(writer.connection, consultations, consultation))

    def receive(self, actor: Actor, consultation: str, client_turn_id: str, text: str) -> Turn:
        """Stores what the patient said, once: a retry gives the same turn, another text under the id is a conflict."""
        return self._receive(actor, consultation, client_turn_id, text, own_consultation)

    def receive_from_patient(self, consultation: str, client_turn_id: str, text: str) -> Turn:
        """As `receive`, from the patient in person; whoever calls has checked the patient's link.

        One patient must not keep the desk busy: a text has at most LONGEST_OF_PATIENT characters.
        """
        checked_length(checked_text(text, "text"), "text", LONGEST_OF_PATIENT)
        return self._receive(PATIENT, consultation, client_turn_id, text, open_consultation)

    def _receive(self, actor: Actor, consultation: str, client_turn_id: str, text: str, may: MayReceive) -> Turn:
        checked_name(client_turn_id, "client_turn_id")
        digest = text_sha256(checked_text(text, "text"))
        flags = inspect_utterance(self._safety, text)
        with self._store.writing("turn received", actor, consultation) as writer:
            may(writer.connection, actor, consultation)
            there = select(turns).where(turns.c.consultation == consultation, turns.c.client_turn_id == client_turn_id)
            row = writer.connection.execute(there).mappings().one_or_none()
            if row is not None:
                if row["text_sha256"] != digest:
                    raise ConflictError(f"client_turn_id {client_turn_id!r} has another text: use a new id")
                return Turn.of(dict(row))
            may(writer.connection, actor, consultation, to_change=True)
            values = {
                "consultation": consultation,
                "seq": last_seq(writer.connection, consultation) + 1,
                "client_turn_id": client_turn_id,
                "text": text,
                "text_sha256": digest,
                "flags": flags.to_json(),
                "received_by": actor.id,
            }
            inserted = writer.insert(turns, received_at=writer.now, **values)
            writer.detail |= {"seq": inserted["seq"], "red_flags": len(flags.findings), "stops": len(flags.stops)}
        return Turn.of(inserted)

    def turn(self, actor: Actor, turn: str) -> Turn:
        """One turn, for the physician of the consultation."""
        with self._store.reading() as connection:
            found = turn_of(connection, turn)
            own_consultation(connection, actor, found.consultation)
            return found

    def all_of(self, actor: Actor) -> list[Consultation]:
        """The actor's consultations, newest first."""
        actor.must(CONSULT)
        query = select(consultations).where(consultations.c.owner == actor.id)
        with self._store.reading() as connection:
            rows = connection.execute(query.order_by(consultations.c.opened_at.desc(), consultations.c.id)).mappings()
            return [Consultation.of(dict(row)) for row in rows]

    def case(self, actor: Actor, consultation: str) -> Case:
        """Everything of one consultation, as of one moment."""
        with self._store.reading() as connection:
            found = own_consultation(connection, actor, consultation)
            return Case(
                found,
                tuple(turns_of(connection, consultation)),
                tuple(drafts_of(connection, consultation)),
                tuple(decisions_of(connection, consultation)),
                tuple(messages_of(connection, consultation)),
            )

    def patient_view(self, consultation: str) -> tuple[PatientLine, ...]:
        """All a patient may ever see: their own words, and the messages a physician approved to the letter."""
        with self._store.reading() as connection:
            row_of(connection, consultations, consultation)
            answers = {message.turn: message for message in messages_of(connection, consultation)}
            lines = []
            for turn in turns_of(connection, consultation):
                lines.append(PatientLine(turn.seq, "patient", turn.text, turn.received_at))
                if answer := answers.get(turn.id):
                    line = PatientLine(turn.seq, "physician", answer.text, answer.sent_at, answer.medicine_suggestion)
                    lines.append(line)
            return tuple(lines)


def _opened_before(connection: Connection, actor: Actor, client_consultation_id: str | None) -> Consultation | None:
    """What the actor opened under an id."""
    query = select(consultations).join(openings, openings.c.consultation == consultations.c.id)
    named = openings.c.client_consultation_id == client_consultation_id
    row = connection.execute(query.where(openings.c.owner == actor.id, named)).mappings().one_or_none()
    return None if row is None else Consultation.of(dict(row))
