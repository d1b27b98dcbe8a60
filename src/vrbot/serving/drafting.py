"""Drafts: by the model, by the model under a change, or by a physician's own hand; a failure is stored as one."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, or_, select

from vrbot.serving.actors import Actor
from vrbot.serving.problems import InvalidInputError, RefusedError
from vrbot.serving.queries import (
    conversation_of,
    last_version,
    own_consultation,
    row_of,
    turn_of,
)
from vrbot.serving.records import Draft, Turn
from vrbot.serving.responder import Responder, RespondsTogether
from vrbot.serving.safety_desk import (
    Conversation,
    Inspection,
    SafetyDesk,
    inspect_reply,
    suggests_medicine,
    why_drafts_are_stopped,
)
from vrbot.serving.schema import decisions, drafts
from vrbot.serving.store import Store, Writer
from vrbot.serving.texts import MAX_TEXT_BYTES, canonical_json, checked_name, checked_text, text_sha256

log = logging.getLogger(__name__)

NOTHING_FOUND = Inspection()


@dataclass(frozen=True)
class DraftProposal:
    """A draft before it has a number: a text with what was found in it, or a failure."""

    origin: str
    text: str | None = None
    failure: str | None = None
    model: str | None = None
    reply: Mapping[str, Any] | None = None
    change: Mapping[str, Any] | None = None
    checks: Inspection = NOTHING_FOUND
    parent: str | None = None
    suggests_medicine: bool = False


@dataclass(frozen=True)
class Question:
    """What a model is asked: a turn that is there, what was said up to it, and a change, if any."""

    actor: Actor
    turn: Turn
    conversation: Conversation
    context: list[str | None]
    change: Mapping[str, Any] | None = None


class Drafting:
    """Makes drafts and stores them; nothing here can send one.

    `draft` is `prepare`, `propose` and `keep` in one; whoever has many to make may do each step for itself.
    """

    def __init__(self, store: Store, safety: SafetyDesk, responder: Responder | None) -> None:
        self._store, self._safety, self._responder = store, safety, responder

    def draft(self, actor: Actor, turn: str, change: Mapping[str, Any] | None = None) -> Draft:
        """The model's draft for a turn (under a change of state or action, if given), stored before it is returned.

        Asking again after the same conversation gives the same draft; after a failure the model tries again.
        """
        question = self.prepare(actor, turn, change)
        return question if isinstance(question, Draft) else self.keep(question, next(self.propose([question])))

    def prepare(self, actor: Actor, turn: str, change: Mapping[str, Any] | None = None) -> Question | Draft:
        """What the model is to be asked; or the draft it made before, where there is nothing new to ask."""
        if change is not None:
            _checked_change(change)
        with self._store.reading() as connection:
            found = turn_of(connection, turn)
            own_consultation(connection, actor, found.consultation, to_change=True)
            conversation, context = conversation_of(connection, found)
            there = None if self._why_not() else self._made_before(connection, found, context, change)
        return Question(actor, found, conversation, context, change) if there is None else there

    def propose(self, questions: Sequence[Question]) -> Iterator[DraftProposal]:
        """What the model says to each, or why it says nothing, each as soon as it is there.

        Never an exception, and nothing is stored.
        """
        asked = _Asked(self._responder, questions)
        for place, question in enumerate(questions):
            yield self._propose(question, partial(asked.reply_to, place))

    def keep(self, question: Question, proposal: DraftProposal) -> Draft:
        """Stores what was proposed."""
        return self._keep(question.actor, question.turn, proposal, question.context)

    def one(self, actor: Actor, draft: str) -> Draft:
        """A draft of one's own consultation."""
        with self._store.reading() as connection:
            found = Draft.of(row_of(connection, drafts, draft))
            own_consultation(connection, actor, turn_of(connection, found.turn).consultation)
            return found

    def reply_to(self, conversation: Conversation) -> Mapping[str, Any]:
        """What the model says to a conversation that is not the desk's; nothing is stored, nothing can be sent."""
        if (reason := self._why_not()) or self._responder is None:
            raise RefusedError(reason or "no model is loaded")
        reply: Mapping[str, Any] = json.loads(canonical_json(dict(self._responder.respond(conversation))))
        checked_text(reply.get("text"), "text")
        return reply

    def write(self, actor: Actor, turn: str, text: str) -> Draft:
        """A draft in the physician's own words, checked like any other."""
        checked_text(text, "text")
        with self._store.reading() as connection:
            found = turn_of(connection, turn)
            own_consultation(connection, actor, found.consultation, to_change=True)
            conversation, context = conversation_of(connection, found)
        checks = inspect_reply(self._safety, text, conversation)
        medicine = suggests_medicine(self._safety, text, checks)
        proposal = DraftProposal("physician", text, checks=checks, suggests_medicine=medicine)
        return self._keep(actor, found, proposal, context)

    def _keep(self, actor: Actor, turn: Turn, proposal: DraftProposal, context: list[str | None]) -> Draft:
        with self._store.writing("draft made", actor, turn.consultation) as writer:
            own_consultation(writer.connection, actor, turn.consultation, to_change=True)
            return store_draft(writer, actor, turn, proposal, context)

    def _why_not(self) -> str | None:
        if reason := why_drafts_are_stopped(self._safety):
            return f"drafts are switched off: {reason}"
        return None if self._responder is not None else "no model is loaded"

    def _made_before(
        self, connection: Connection, turn: Turn, context: list[str | None], change: Mapping[str, Any] | None
    ) -> Draft | None:
        """The draft this model made after this conversation, unless a physician has set it aside."""
        model = self._fingerprint()
        if model is None:
            return None
        proposal = DraftProposal("model" if change is None else "what_if", model=model, change=change)
        return same_draft(connection, turn, proposal, context)

    def _fingerprint(self) -> str | None:
        try:
            return None if self._responder is None else self._responder.fingerprint
        except Exception:  # a model that cannot say who it is fails where its draft is asked for
            return None

    def _propose(self, question: Question, said: Callable[[], Mapping[str, Any]]) -> DraftProposal:
        """What the model says, or why it says nothing; never an exception."""
        change = question.change
        origin = "model" if change is None else "what_if"
        reason = self._why_not()
        if self._responder is None or reason is not None:
            return DraftProposal(origin, failure=reason, change=change)
        try:
            model = checked_name(self._responder.fingerprint, "fingerprint")
            reply = json.loads(canonical_json(dict(said())))
            text = checked_text(reply.get("text"), "text")
        except Exception as error:  # the turn must outlive whatever the model does
            log.warning("a draft failed (%s)", type(error).__name__)
            return DraftProposal(origin, failure=f"{type(error).__name__}: {_storable(error)}", change=change)
        checks = inspect_reply(self._safety, text, question.conversation, reply)
        medicine = names_medicine(reply) or suggests_medicine(self._safety, text, checks)
        return DraftProposal(origin, text, None, model, reply, change, checks, suggests_medicine=medicine)


class _Asked:
    """Questions put to a model: those without a change together, if it can, each of them alone once that has failed."""

    def __init__(self, responder: Responder | None, questions: Sequence[Question]) -> None:
        self._responder, self._questions = responder, questions
        self._plain = iter([place for place, question in enumerate(questions) if question.change is None])
        self._replies: Iterator[Mapping[str, Any]] | None = None
        self._found: dict[int, Mapping[str, Any]] = {}
        self._together = isinstance(responder, RespondsTogether) and len(questions) > 1

    def reply_to(self, place: int) -> Mapping[str, Any]:
        """The reply to one of the questions."""
        responder, question = self._responder, self._questions[place]
        if responder is None:
            raise RefusedError("no model is loaded")
        if question.change is not None:
            return responder.what_if(question.conversation, question.change)
        found = self._from_together(place)
        return responder.respond(question.conversation) if found is None else found

    def _from_together(self, place: int) -> Mapping[str, Any] | None:
        """The reply among those that are made together; None where they are not, or not any more."""
        responder = self._responder
        while self._together and place not in self._found:
            try:
                if self._replies is None and isinstance(responder, RespondsTogether):
                    plain = [question.conversation for question in self._questions if question.change is None]
                    self._replies = iter(responder.respond_many(plain))
                reply = next(self._replies or iter(()))
                self._found[next(self._plain)] = reply
            except Exception as error:  # one of them is at fault: each is asked by itself
                log.warning("a batch of %d drafts failed (%s)", len(self._questions), type(error).__name__)
                self._together = False
        return self._found.pop(place, None)


def names_medicine(reply: Mapping[str, Any]) -> bool:
    """Whether a reply is about a medicine, by its category or one of its keywords."""
    keywords = reply.get("keywords")
    named = [each for each in keywords if isinstance(each, Mapping)] if isinstance(keywords, list) else []
    return reply.get("category") == "prescribe_medicine" or any(each.get("type") == "medicine" for each in named)


def store_draft(writer: Writer, actor: Actor, turn: Turn, proposal: DraftProposal, context: list[str | None]) -> Draft:
    """The proposal as the next version; the one that is there already if the same was proposed for the same reason."""
    there = same_draft(writer.connection, turn, proposal, context)
    if there is not None and proposal.failure is None:
        return there
    row = writer.insert(
        drafts,
        turn=turn.id,
        version=last_version(writer.connection, turn.id) + 1,
        origin=proposal.origin,
        parent=proposal.parent,
        request_sha256=_request_sha256(proposal, context),
        context=canonical_json(context),
        change=None if proposal.change is None else canonical_json(proposal.change),
        model=proposal.model,
        reply=None if proposal.reply is None else canonical_json(proposal.reply),
        text=proposal.text,
        text_sha256=None if proposal.text is None else text_sha256(proposal.text),
        checks=proposal.checks.to_json(),
        failure=proposal.failure,
        suggests_medicine=int(proposal.suggests_medicine),
        made_at=writer.now,
        made_by=actor.id,
    )
    writer.detail |= {"origin": row["origin"], "version": row["version"], "failed": row["failure"] is not None}
    return Draft.of(row)


def same_draft(connection: Connection, turn: Turn, proposal: DraftProposal, context: list[str | None]) -> Draft | None:
    """A draft that was made for the same reason and is still of use: not yet decided, or accepted."""
    query = (
        select(drafts)
        .outerjoin(decisions, decisions.c.draft == drafts.c.id)
        .where(drafts.c.turn == turn.id, drafts.c.request_sha256 == _request_sha256(proposal, context))
        .where(drafts.c.failure.is_(None), or_(decisions.c.kind.is_(None), decisions.c.kind == "accept"))
        .order_by(drafts.c.version)
    )
    there = connection.execute(query).mappings().first()
    return None if there is None else Draft.of(dict(there))


def _request_sha256(proposal: DraftProposal, context: list[str | None]) -> str:
    written = proposal.text if proposal.origin == "physician" else None
    return text_sha256(
        canonical_json([proposal.origin, proposal.model, context, proposal.change, proposal.parent, written])
    )


def _checked_change(change: Mapping[str, Any]) -> None:
    try:
        size = len(canonical_json(dict(change)).encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the change cannot be written as JSON ({type(error).__name__})") from None
    if size > MAX_TEXT_BYTES:
        raise InvalidInputError(f"the change has {size:,} bytes, more than {MAX_TEXT_BYTES:,}")


def _storable(error: Exception) -> str:
    """The message of an error, of bounded length and without half surrogate pairs."""
    try:
        return str(error)[:500].encode("utf-8", "replace").decode("utf-8")
    except Exception:
        return "(its message cannot be shown)"
