"""The reasons behind a reply in the few words other programs read: state, action, paths, confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def explanation_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Of a reply as plain values; what the model has no part for is None or empty.

    `confidence` and `abstain` are what the server's guard says, and None without one: a probability of the model's own
    is not calibrated, and where nobody looked for reasons to abstain, an empty list of them would look like none.
    """
    evidence = reply.get("evidence")
    evidence = evidence if isinstance(evidence, Mapping) else {}
    abstain = evidence.get("abstain")
    paths = [
        {"keyword": keyword["name"], **path}
        for keyword in evidence.get("keywords") or ()
        for path in keyword.get("paths") or ()
    ]
    action = {name: reply.get(name) for name in ("category", "categories", "keywords")}
    return {
        "text": reply.get("text", ""),
        "state": reply.get("state"),
        "action": action,
        "paths": paths,
        "confidence": evidence.get("confidence"),
        "abstain": None if abstain is None else list(abstain),
        "evidence": dict(evidence) or None,
    }
