"""The physician's desk as one thing: consultations, drafts, sign-off, labels, ratings and accounts over one store."""

from __future__ import annotations

from vrbot.serving.accounts import Accounts
from vrbot.serving.actors import SYSTEM
from vrbot.serving.annotation import Annotation
from vrbot.serving.consultations import Consultations
from vrbot.serving.drafting import Drafting
from vrbot.serving.ratings import Ratings
from vrbot.serving.records import PatientLine
from vrbot.serving.responder import Responder
from vrbot.serving.safety_desk import SafetyDesk
from vrbot.serving.signoff import SignOff
from vrbot.serving.store import Store


class Desk:
    """Opens a desk, and says so in the audit log; `demo` alone allows a simulated physician, and only there.

    Without a responder everything works but drafts, which are stored as failures.
    """

    def __init__(
        self, store: Store, safety: SafetyDesk, responder: Responder | None = None, *, demo: bool = False
    ) -> None:
        self.store, self.safety, self.responder, self.demo = store, safety, responder, demo
        self.consultations = Consultations(store, safety, demo=demo)
        self.drafting = Drafting(store, safety, responder)
        self.signoff = SignOff(store, safety, demo=demo)
        self.annotation = Annotation(store, safety)
        self.ratings = Ratings(store)
        self.accounts = Accounts(store)
        with store.writing("desk opened", SYSTEM) as writer:
            writer.detail |= {"demo": demo, "model": None if responder is None else responder.fingerprint}

    def patient_view(self, consultation: str) -> tuple[PatientLine, ...]:
        """All a patient may ever see of a consultation."""
        return self.consultations.patient_view(consultation)
