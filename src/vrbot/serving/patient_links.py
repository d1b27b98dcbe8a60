"""Links that open the patient's side of one consultation and nothing else, signed so that nobody can make one up."""

from __future__ import annotations

import hashlib
import hmac


def patient_token(secret: str, consultation: str) -> str:
    """What stands in a patient's link."""
    return f"{consultation}.{_signature(secret, consultation)}"


def consultation_of(secret: str, token: str) -> str | None:
    """The consultation a token opens; None if it was not signed with this secret."""
    consultation, _, signature = token.partition(".")
    good = hmac.compare_digest(signature.encode("utf-8"), _signature(secret, consultation).encode("ascii"))
    return consultation if good else None


def _signature(secret: str, consultation: str) -> str:
    return hmac.new(secret.encode("utf-8"), f"patient|{consultation}".encode(), hashlib.sha256).hexdigest()[:40]
