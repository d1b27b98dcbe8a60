"""Who does something at the desk, and what each role may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vrbot.serving.problems import RefusedError

CONSULT, ANNOTATE, RATE, EXPORT, ADMINISTER, AUDIT = "consult", "annotate", "rate", "export", "administer", "audit"
MAY: Mapping[str, frozenset[str]] = {
    "physician": frozenset({CONSULT, ANNOTATE, RATE}),
    "annotator": frozenset({ANNOTATE, RATE}),
    "researcher": frozenset({RATE, EXPORT}),
    "admin": frozenset({ADMINISTER, AUDIT}),
    "operator": frozenset({ANNOTATE, EXPORT, ADMINISTER, AUDIT}),
    "system": frozenset(),
    "patient": frozenset(),
}
"""Role -> what it may do. An operator is whoever has the machine's command line; nobody signs in as one."""
ROLES = ("physician", "annotator", "researcher", "admin")
"""The roles a user can have."""


@dataclass(frozen=True)
class Actor:
    """Somebody known to the desk."""

    id: str
    role: str

    def may(self, what: str) -> bool:
        """Whether the role allows it."""
        return what in MAY.get(self.role, frozenset())

    def must(self, what: str) -> None:
        """RefusedError unless the role allows it."""
        if not self.may(what):
            raise RefusedError(f"a {self.role} may not {what}: sign in with another account")


OPERATOR, SYSTEM = Actor("operator", "operator"), Actor("system", "system")
PATIENT = Actor("patient", "patient")
"""Whoever holds a patient's link; may say something in that one consultation, which no role is asked for."""
SIMULATED_PHYSICIAN = Actor("simulated-physician", "system")
