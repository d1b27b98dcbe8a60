"""Rules and a model that do as they are told."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from argon2 import PasswordHasher

from vrbot.serving.accounts import Accounts
from vrbot.serving.actors import Actor
from vrbot.serving.records import Consultation, Draft, Message, Turn
from vrbot.serving.safety_desk import Conversation, Finding
from vrbot.serving.service import Desk
from vrbot.serving.store import Store

ANN, BOB = Actor("ann", "physician"), Actor("bob", "physician")
EVE, RAY, SUE = Actor("eve", "annotator"), Actor("ray", "researcher"), Actor("sue", "admin")


class PlainRules:
    """Aspirin is stopped for who is allergic to it; ibuprofen is known, and nothing against it; no unicorn is.

    The word "broken" breaks the rules that read what patients say or are to read.
    """

    def __init__(self) -> None:
        self.stopped: str | None = None

    def red_flags(self, text: str) -> Sequence[Finding]:
        _break_at(text)
        return [{"level": "stop", "code": "chest_pain"}] if "chest pain" in text else []

    def medication(self, text: str, conversation: Conversation) -> Sequence[Finding]:
        _break_at(text)
        if "aspirin" not in text:
            return []
        allergic = any("allergic to aspirin" in patient for patient, _ in conversation)
        return [{"level": "stop" if allergic else "info", "code": "allergy"}]

    def unsupported(self, text: str, conversation: Conversation, reply: Mapping[str, Any]) -> Sequence[Finding]:
        said = " ".join([*(patient + physician for patient, physician in conversation), str(reply.get("keywords"))])
        medicines = [name for name in ("ibuprofen", "aspirin") if name in text and name not in said]
        found = [{"level": "caution", "kind": "medicine", "surface": name} for name in medicines]
        return found + ([{"level": "caution", "kind": "disease"}] if "unicorn" in text else [])

    def deidentify(self, text: str) -> str:
        _break_at(text)
        return text.replace("Ann Smith", "[name]")

    def drafts_stopped(self) -> str | None:
        return self.stopped


class Parrot:
    """Answers with what it heard; fails at the word "crash"."""

    def __init__(self, fingerprint: str = "parrot-1") -> None:
        self.fingerprint = fingerprint
        self.calls = 0

    def respond(self, conversation: Conversation) -> Mapping[str, Any]:
        self.calls += 1
        last = conversation[-1][0]
        if "crash" in last:
            raise RuntimeError(f"cannot answer {last}")
        category = "prescribe_medicine" if "medicine" in last else "ask_symptoms"
        heard = sum(len(patient) + len(physician) for patient, physician in conversation)
        return {"text": f"You say: {last}", "category": category, "keywords": [], "confidence": heard / 3}

    def what_if(self, conversation: Conversation, change: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**self.respond(conversation), "text": f"Then: {sorted(change)}"}


class DeskAtWork:
    """A desk with one physician, and shorter words for what tests do all the time."""

    def __init__(self, store: Store, *, demo: bool = False, parrot: Parrot | None = None) -> None:
        self.rules = PlainRules()
        self.parrot = parrot or Parrot()
        self.store = store
        self.desk = Desk(store, self.rules, self.parrot, demo=demo)
        self.names = itertools.count()

    def opened(self, actor: Actor = ANN) -> Consultation:
        return self.desk.consultations.open(actor, "en")

    def said(self, consultation: Consultation, text: str) -> Turn:
        return self.desk.consultations.receive(ANN, consultation.id, f"c{next(self.names)}", text)

    def drafted(self, turn: Turn) -> Draft:
        return self.desk.drafting.draft(ANN, turn.id)

    def sent(self, draft: Draft, **how: Any) -> Message:
        return self.desk.signoff.approve(ANN, draft.id, draft.text_sha256 or "", **how)

    def seen_by_patient(self, consultation: Consultation) -> list[str]:
        lines = self.desk.patient_view(consultation.id)
        return [line.text for line in lines if line.author == "physician"]


def quick_accounts(store: Store, lifetime_seconds: int = 3600) -> Accounts:
    """Accounts whose passwords cost next to nothing to check."""
    return Accounts(store, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1), lifetime_seconds)


def _break_at(text: str) -> None:
    if "broken" in text:
        raise ValueError(f"cannot read {text}")
