"""Labels people give to stored turns, and the sessions for training that come of them, without anybody's name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from vrbot.dialogue.session import CATEGORIES, Action, Session
from vrbot.dialogue.session import Turn as DialogueTurn
from vrbot.explain.given_labels import PROVENANCE
from vrbot.serving.actors import ANNOTATE, CONSULT, EXPORT, Actor
from vrbot.serving.problems import ConflictError, InvalidInputError
from vrbot.serving.proposals import PROPOSED, Proposal, proposals_of, provenance_of
from vrbot.serving.queries import messages_of, own_consultation, turn_of, turns_of
from vrbot.serving.records import Consultation, Turn
from vrbot.serving.safety_desk import SafetyDesk
from vrbot.serving.schema import LABELS, consultations, labels, messages, turns
from vrbot.serving.store import Store, Writer
from vrbot.serving.texts import canonical_json, checked_text, text_sha256

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


@dataclass(frozen=True)
class LabelledTurn:
    """A turn without names, the labels people gave it, and those a model proposes."""

    id: str
    seq: int
    patient: str
    physician: str
    labels: Mapping[str, Label]
    proposals: Mapping[str, Proposal]


@dataclass(frozen=True)
class Unlabelled:
    """How far the labelling of a consultation is; of a turn nobody answered only the state is wanted.

    `confidence` is how sure the model is of what is not given yet; None if it proposes nothing, or does not say.
    """

    consultation: Consultation
    num_turns: int
    wanted: int
    given: int
    confidence: float | None


class Annotation:
    """Labels in, sessions out; what a model proposes is kept apart and never goes out as a label."""

    def __init__(self, store: Store, safety: SafetyDesk) -> None:
        self._store, self._safety = store, safety

    def label(self, actor: Actor, turn: str, kind: str, value: Any, seen: int | None = None) -> Label:
        """A label (or a correction of one): state and keywords are lists of entity names, category is one of four.

        `seen` is the number of the label it is to replace, 0 if there was none: where somebody has given another since,
        it is a conflict. Without it whatever is there is replaced.
        """
        actor.must(ANNOTATE)
        text = canonical_json(checked_label(kind, value))
        with self._store.writing("label given", actor) as writer:
            found = self._turn_to_label(writer.connection, actor, turn)
            writer.consultation = found.consultation
            last = _newest(writer.connection, turn, kind, proposed=False)
            if last is not None and (last["value"], last["made_by"]) == (text, actor.id):
                return _label(last)
            if seen is not None and seen != (0 if last is None else last["number"]):
                raise ConflictError(f"somebody has given another label ({kind}) since: look at it first")
            return _label(_insert(writer, turn, kind, text, actor.id))

    def propose(
        self,
        actor: Actor,
        turn: str,
        kind: str,
        value: Any,
        confidence: float | None = None,
        model: str | None = None,
    ) -> Proposal:
        """What a model holds for the label; it is shown beside the turn until somebody gives a label."""
        actor.must(ANNOTATE)
        if confidence is not None and not 0 <= confidence <= 1:
            raise InvalidInputError(f"confidence is between 0 and 1, got {confidence}")
        proposal = Proposal(checked_label(kind, value), confidence, "auto-labeller", model)
        with self._store.writing("label proposed", actor) as writer:
            found = self._turn_to_label(writer.connection, actor, turn)
            writer.consultation = found.consultation
            last = _newest(writer.connection, turn, kind, proposed=True)
            if last is None or last["value"] != proposal.to_json():
                _insert(writer, turn, kind, proposal.to_json(), PROPOSED)
        return proposal

    def labels_of(self, actor: Actor, turn: str) -> dict[str, Label]:
        """The labels of a turn that count, by kind."""
        actor.must(ANNOTATE)
        with self._store.reading() as connection:
            self._turn_to_label(connection, actor, turn)
            query = _in_order(proposed=False).where(labels.c.turn == turn)
            given = [_label(dict(row)) for row in connection.execute(query).mappings()]
        return {label.kind: label for label in given}

    def to_label(self, actor: Actor, *, demo: bool = False) -> list[Unlabelled]:
        """The consultations the actor may label (a physician's own, an annotator's all) in which somebody has spoken.

        In the order of active learning: first where labels are wanting, of those where the model is least sure.
        """
        actor.must(ANNOTATE)
        chosen = consultations.c.demo == int(demo)
        if actor.may(CONSULT):
            chosen = and_(chosen, consultations.c.owner == actor.id)
        within = turns.c.consultation.in_(select(consultations.c.id).where(chosen))
        with self._store.reading() as connection:
            rows = connection.execute(
                select(consultations).where(chosen).order_by(consultations.c.opened_at)
            ).mappings()
            there = [Consultation.of(dict(row)) for row in rows]
            spoken = _turns_and_answers(connection, within)
            given, proposed = _labels_of(connection, within), proposals_of(connection, within)
        found = [_progress(each, spoken[each.id], given, proposed) for each in there if each.id in spoken]
        return sorted(found, key=lambda one: (one.given >= one.wanted, one.confidence or 0.0))

    def labelled_turns(self, actor: Actor, consultation: str) -> tuple[LabelledTurn, ...]:
        """The turns of one consultation in which somebody speaks, as `deidentified` gives them, to be labelled."""
        actor.must(ANNOTATE)
        within = turns.c.consultation == consultation
        with self._store.reading() as connection:
            if actor.may(CONSULT):
                own_consultation(connection, actor, consultation)
            said = turns_of(connection, consultation)
            answers = {message.turn: message.text for message in messages_of(connection, consultation)}
            given, proposed = _labels_of(connection, within), proposals_of(connection, within)
        found = []
        for turn in said:
            patient, physician = self._nameless(turn.text), self._nameless(answers.get(turn.id, ""))
            if patient or physician:
                known = given.get(turn.id, {}), proposed.get(turn.id, {})
                found.append(LabelledTurn(turn.id, turn.seq, patient, physician, *known))
        return tuple(found)

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

    def export_own(self, actor: Actor, *, demo: bool = False) -> list[Session]:
        """What the actor may label, in the form and the ids of `export`, and an event that says so."""
        chosen = self.to_label(actor, demo=demo)
        with self._store.writing("labels exported", actor) as writer:
            writer.detail |= {"consultations": len(chosen), "demo": demo}
        found = (self.deidentified(actor, each.consultation.id) for each in chosen)
        return [session for session in found if session is not None]

    def deidentified(self, actor: Actor, consultation: str) -> Session | None:
        """One consultation without names; None if nobody has said anything in it.

        A text the rules cannot work on is an error: it is never given out as it is.
        """
        if not actor.may(EXPORT):
            actor.must(ANNOTATE)
        with self._store.reading() as connection:
            said = turns_of(connection, consultation)
            answers = {message.turn: message.text for message in messages_of(connection, consultation)}
            within = turns.c.consultation == consultation
            given, proposed = _labels_of(connection, within), proposals_of(connection, within)
        kept, notes = [], []
        for turn in said:
            patient, physician = self._nameless(turn.text), self._nameless(answers.get(turn.id, ""))
            if patient or physician:
                own, of_turn = given.get(turn.id, {}), proposed.get(turn.id, {})
                values = {kind: label.value for kind, label in own.items()}
                state, category, keywords = (values.get(kind) for kind in LABELS)
                kept.append(DialogueTurn(patient, physician, _names(state), _action(category, keywords)))
                notes.append({kind: provenance_of(each.made_by, of_turn.get(kind)) for kind, each in own.items()})
        extra = {PROVENANCE: notes} if any(notes) else {}
        return Session(exported_name(consultation), tuple(kept), extra) if kept else None

    def _turn_to_label(self, connection: Connection, actor: Actor, turn: str) -> Turn:
        """The turn, if it is the actor's to label; that of another physician looks like none at all."""
        found = turn_of(connection, turn)
        if actor.may(CONSULT):
            own_consultation(connection, actor, found.consultation)
        return found

    def _nameless(self, text: str) -> str:
        """De-identified; NUL, which the canonical form does not have, becomes a blank."""
        return self._safety.deidentify(text).replace("\0", " ") if text else ""


def exported_name(consultation: str) -> str:
    """The id a consultation has in files for training; nobody can find the consultation by it."""
    return hashlib.sha256(f"export|{consultation}".encode()).hexdigest()[:16]


def _in_order(*, proposed: bool) -> Select[Any]:
    """Labels by number, those of people or those of a model."""
    of_model = labels.c.made_by == PROPOSED
    return select(labels).where(of_model if proposed else ~of_model).order_by(labels.c.number)


def _newest(connection: Connection, turn: str, kind: str, *, proposed: bool) -> dict[str, Any] | None:
    query = _in_order(proposed=proposed).where(labels.c.turn == turn, labels.c.kind == kind)
    rows = connection.execute(query).mappings().all()
    return dict(rows[-1]) if rows else None


def _insert(writer: Writer, turn: str, kind: str, text: str, made_by: str) -> dict[str, Any]:
    counted = select(func.coalesce(func.max(labels.c.number), 0)).where(labels.c.turn == turn)
    number = writer.connection.execute(counted).scalar_one() + 1
    values = {"turn": turn, "number": number, "kind": kind, "value": text, "made_by": made_by}
    return writer.insert(labels, made_at=writer.now, **values)


def _labels_of(connection: Connection, chosen: ColumnElement[bool]) -> dict[str, dict[str, Label]]:
    """The labels of people that count, by turn and kind."""
    query = _in_order(proposed=False).join(turns, turns.c.id == labels.c.turn)
    found: dict[str, dict[str, Label]] = {}
    for row in connection.execute(query.where(chosen)).mappings():
        found.setdefault(row["turn"], {})[row["kind"]] = _label(dict(row))
    return found


def _turns_and_answers(connection: Connection, chosen: ColumnElement[bool]) -> dict[str, dict[str, bool]]:
    """By consultation, the turns in which somebody spoke, and whether each was answered."""
    answered = messages.c.id.is_not(None)
    query = select(turns.c.consultation, turns.c.id, answered.label("answered"))
    query = query.outerjoin(messages, messages.c.turn == turns.c.id).order_by(turns.c.seq)
    query = query.where(chosen, or_(answered, turns.c.text_sha256 != text_sha256("")))
    found: dict[str, dict[str, bool]] = {}
    for row in connection.execute(query):
        found.setdefault(row.consultation, {})[row.id] = bool(row.answered)
    return found


def _progress(
    consultation: Consultation,
    spoken: Mapping[str, bool],
    given: Mapping[str, Mapping[str, Label]],
    proposed: Mapping[str, Mapping[str, Proposal]],
) -> Unlabelled:
    wanted = [(turn, kind) for turn, answered in spoken.items() for kind in (LABELS if answered else LABELS[:1])]
    missing = [(turn, kind) for turn, kind in wanted if kind not in given.get(turn, {})]
    proposals = [proposed.get(turn, {}).get(kind) for turn, kind in missing]
    sure = [each.confidence for each in proposals if each is not None and each.confidence is not None]
    num_given = len(wanted) - len(missing)
    return Unlabelled(consultation, len(spoken), len(wanted), num_given, fmean(sure) if sure else None)


def checked_label(kind: str, value: Any) -> Any:
    """A value as it can be stored as a label of this kind; InvalidInputError otherwise."""
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
