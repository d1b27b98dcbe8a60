"""Sign-off: the one way for a text to reach a patient is a physician's approval of exactly that text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from vrbot.serving.actors import SIMULATED_PHYSICIAN, Actor
from vrbot.serving.drafting import DraftProposal, store_draft
from vrbot.serving.problems import ConflictError, NotFoundError, ReasonNeededError, RefusedError
from vrbot.serving.queries import (
    conversation_of,
    decision_on,
    last_seq,
    messages_of,
    own_consultation,
    reply_behind,
    row_of,
    turn_of,
    turns_of,
)
from vrbot.serving.records import Consultation, Decision, Draft, Message, Turn
from vrbot.serving.safety_desk import (
    Conversation,
    Inspection,
    SafetyDesk,
    findings_sha256,
    inspect_reply,
    suggests_medicine,
    why_drafts_are_stopped,
)
from vrbot.serving.schema import consultations, decisions, drafts, messages
from vrbot.serving.store import Store, Writer
from vrbot.serving.texts import checked_text, text_sha256


@dataclass(frozen=True)
class Approval:
    """What whoever accepts a draft says: which text was seen, why a check is overridden, how far was read.

    `seen_findings` is the fingerprint of the stops the reason is for, where they are not those of the draft itself.
    """

    seen: str
    reason: str | None = None
    seen_turn: int | None = None
    seen_findings: str | None = None
    simulated: bool = False

    def overrides(self, stops: tuple[dict[str, Any], ...], draft: Draft) -> bool:
        """Whether there is a reason, and it was given by somebody to whom all these stops had been shown."""
        shown = all(stop in draft.checks.stops for stop in stops)
        return self.reason is not None and (shown or findings_sha256(stops) == self.seen_findings)


@dataclass(frozen=True)
class _Material:
    """What the rules look at; `said` names the newest turn and the message that answered each turn before it."""

    said: tuple[str | None, ...]
    text: str
    conversation: Conversation
    reply: Mapping[str, Any] | None


@dataclass(frozen=True)
class _Checked:
    """What the rules found in a draft, and whether it names a medicine, when this much had been said."""

    said: tuple[str | None, ...]
    checks: Inspection
    medicine: bool


class SignOff:
    """Accept, edit, reject; each draft is decided once, each turn answered once."""

    def __init__(self, store: Store, safety: SafetyDesk, *, demo: bool) -> None:
        self._store, self._safety, self._demo = store, safety, demo

    def approve(
        self,
        actor: Actor,
        draft: str,
        seen_sha256: str,
        *,
        override_reason: str | None = None,
        seen_turn: int | None = None,
        seen_findings: str | None = None,
    ) -> Message:
        """Sends a draft whose text is the one the physician saw, told by its fingerprint.

        `seen_turn` is the newest turn the physician saw: if the patient has said more since, nothing is sent. The
        checks are made again with all that is known now; one that says stop asks for a reason. A reason is for the
        stops that were shown, with the draft or by ReasonNeededError (`seen_findings`): for others it is asked again.
        """
        reason = None if override_reason is None else checked_text(override_reason, "override_reason").strip() or None
        checked = self._checked(draft, actor)
        with self._store.writing("draft accepted", actor) as writer:
            found, turn, consultation = _deciding(writer, draft)
            own_consultation(writer.connection, actor, consultation.id)
            approval = Approval(seen_sha256, reason, seen_turn, seen_findings)
            return self._accept(writer, actor, found, turn, approval, checked)

    def edit(self, actor: Actor, draft: str, seen_sha256: str, text: str) -> Draft:
        """A new version in the physician's words, to be approved in its turn; the version it came from is set aside."""
        digest = text_sha256(checked_text(text, "text"))
        with self._store.reading() as connection:
            found, turn, consultation = _to_decide(connection, draft)
            own_consultation(connection, actor, consultation.id)
            conversation, context = conversation_of(connection, turn)
            reply = reply_behind(connection, found)
        checks = inspect_reply(self._safety, text, conversation, reply)
        medicine = found.suggests_medicine or suggests_medicine(self._safety, text, checks)
        with self._store.writing("draft edited", actor) as writer:
            found, turn, consultation = _deciding(writer, draft)
            own_consultation(writer.connection, actor, consultation.id)
            former = decision_on(writer.connection, draft)
            if former is not None:
                child = _child_of(writer, draft)
                if former.kind == "edit" and child is not None and child.text_sha256 == digest:
                    return child
                raise ConflictError(f"the draft was decided already ({former.kind}): reload it")
            own_consultation(writer.connection, actor, consultation.id, to_change=True)
            _must_be_seen(found, seen_sha256)
            _decide(writer, actor, found, "edit", None, checks)
            proposal = DraftProposal("physician", text, checks=checks, parent=draft, suggests_medicine=medicine)
            return store_draft(writer, actor, turn, proposal, context)

    def reject(self, actor: Actor, draft: str, reason: str = "") -> Decision:
        """Sets a draft aside for good."""
        checked_text(reason, "reason")
        with self._store.writing("draft rejected", actor) as writer:
            found, _, consultation = _deciding(writer, draft)
            own_consultation(writer.connection, actor, consultation.id)
            former = decision_on(writer.connection, draft)
            if former is not None:
                if former.kind == "reject" and former.reason == reason:
                    return former
                raise ConflictError(f"the draft was decided already ({former.kind}): reload it")
            own_consultation(writer.connection, actor, consultation.id, to_change=True)
            return _decide(writer, actor, found, "reject", reason, Inspection())

    def simulate_physician(self, draft: str) -> Message | Decision:
        """In a demonstration only: accepts the draft, or rejects it where a check says stop; the audit log says who."""
        if not self._demo:
            raise RefusedError("a simulated physician needs a desk that was opened as a demonstration")
        actor, checked = SIMULATED_PHYSICIAN, self._checked(draft)
        with self._store.writing("draft decided by simulation", actor) as writer:
            found, turn, consultation = _deciding(writer, draft)
            if not consultation.demo:
                raise RefusedError("this consultation is no demonstration: its physician must decide")
            writer.detail["simulated"] = True
            try:
                approval = Approval(found.text_sha256 or "", simulated=True)
                return self._accept(writer, actor, found, turn, approval, checked)
            except ReasonNeededError as error:
                reason = "a check says stop"
                return _decide(writer, actor, found, "reject", reason, Inspection(error.findings), simulated=True)

    def _accept(
        self,
        writer: Writer,
        actor: Actor,
        draft: Draft,
        turn: Turn,
        approval: Approval,
        checked: _Checked,
    ) -> Message:
        former = decision_on(writer.connection, draft.id)
        if former is not None:
            if (former.kind, former.text_sha256, former.simulated) == ("accept", approval.seen, approval.simulated):
                writer.detail.clear()
                return _message_of(writer, turn)
            raise ConflictError(f"the draft was decided already ({former.kind}): reload it")
        self._must_be_sendable(writer, draft, turn, approval)
        now = _material(writer.connection, draft, turn)
        if now.said != checked.said:  # somebody has spoken since: rare enough to let others wait for the rules
            checked = self._check(now)
        checks = checked.checks
        if checks.stops and not approval.overrides(checks.stops, draft):
            raise ReasonNeededError("a check says stop: approve with a reason, or change the text", checks.stops)
        decision = _decide(writer, actor, draft, "accept", approval.reason, checks, simulated=approval.simulated)
        writer.insert(
            messages,
            turn=turn.id,
            draft=draft.id,
            decision=decision.id,
            text_sha256=draft.text_sha256,
            medicine_suggestion=int(draft.suggests_medicine or checked.medicine),
            sent_at=writer.now,
        )
        return _message_of(writer, turn)

    def _must_be_sendable(self, writer: Writer, draft: Draft, turn: Turn, approval: Approval) -> None:
        if Consultation.of(row_of(writer.connection, consultations, turn.consultation)).closed_at is not None:
            raise RefusedError("the consultation is closed: open a new one")
        _must_be_seen(draft, approval.seen)
        if any(message.turn == turn.id for message in messages_of(writer.connection, turn.consultation, turn.seq)):
            raise ConflictError("the turn was answered already: reload it")
        newest = last_seq(writer.connection, turn.consultation)
        if approval.seen_turn is not None and newest > approval.seen_turn:
            raise ConflictError(f"the patient has said more since turn {approval.seen_turn}: read it first")
        reason = why_drafts_are_stopped(self._safety)
        if reason and _words_of_a_model(writer.connection, draft):
            raise RefusedError(f"drafts are switched off ({reason}): write the answer in your own words")

    def _checked(self, draft: str, actor: Actor | None = None) -> _Checked:
        """The checks before a decision, so that nobody waits for the rules to write."""
        with self._store.reading() as connection:
            found, turn, consultation = _to_decide(connection, draft)
            if actor is not None:
                own_consultation(connection, actor, consultation.id)
            material = _material(connection, found, turn)
        return self._check(material)

    def _check(self, about: _Material) -> _Checked:
        checks = inspect_reply(self._safety, about.text, about.conversation, about.reply)
        return _Checked(about.said, checks, suggests_medicine(self._safety, about.text, checks))


def _to_decide(connection: Connection, draft: str) -> tuple[Draft, Turn, Consultation]:
    found = Draft.of(row_of(connection, drafts, draft))
    turn = turn_of(connection, found.turn)
    return found, turn, Consultation.of(row_of(connection, consultations, turn.consultation))


def _deciding(writer: Writer, draft: str) -> tuple[Draft, Turn, Consultation]:
    found, turn, consultation = _to_decide(writer.connection, draft)
    writer.consultation = consultation.id
    return found, turn, consultation


def _words_of_a_model(connection: Connection, draft: Draft) -> bool:
    """Whether a model wrote the text, or a draft of a model's for the same turn has the same, blanks and case aside."""
    query = select(drafts.c.text).where(drafts.c.turn == draft.turn, drafts.c.origin != "physician")
    texts = connection.execute(query.where(drafts.c.text.is_not(None))).scalars()
    return draft.origin != "physician" or any(_bare(text) == _bare(draft.text or "") for text in texts)


def _bare(text: str) -> str:
    return "".join(text.split()).casefold()


def _material(connection: Connection, draft: Draft, turn: Turn) -> _Material:
    """Everything said so far, which may be more than when the draft was made."""
    newest = turns_of(connection, turn.consultation)[-1]
    conversation, context = conversation_of(connection, newest)
    return _Material((newest.id, *context), draft.text or "", conversation, reply_behind(connection, draft))


def _must_be_seen(draft: Draft, seen_sha256: str) -> None:
    if draft.text_sha256 is None:
        raise ConflictError("the draft failed and has no text: write one")
    if draft.text_sha256 != seen_sha256:
        raise ConflictError("the draft has another text than the one you saw: reload it")


def _decide(
    writer: Writer,
    actor: Actor,
    draft: Draft,
    kind: str,
    reason: str | None,
    checks: Inspection,
    *,
    simulated: bool = False,
) -> Decision:
    row = writer.insert(
        decisions,
        draft=draft.id,
        kind=kind,
        text_sha256=draft.text_sha256 or "",
        reason=reason,
        checks=checks.to_json(),
        simulated=int(simulated),
        made_at=writer.now,
        made_by=actor.id,
    )
    writer.detail |= {"draft": draft.id, "text_sha256": draft.text_sha256, "stops": len(checks.stops)}
    return Decision.of(row)


def _message_of(writer: Writer, turn: Turn) -> Message:
    for message in messages_of(writer.connection, turn.consultation, turn.seq):
        if message.turn == turn.id:
            return message
    raise NotFoundError("the turn has no message")


def _child_of(writer: Writer, draft: str) -> Draft | None:
    row = writer.connection.execute(select(drafts).where(drafts.c.parent == draft)).mappings().first()
    return None if row is None else Draft.of(dict(row))
