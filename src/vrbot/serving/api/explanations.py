"""The reasons behind a reply in the few words other programs read: state, action, paths, confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def explanation_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Of a reply as plain values; what the model has no part for is None or empty.

    `confidence` is calibrated where the server has a guard, else the model's own probability of the category.
    """
    evidence = reply.get("evidence")
    evidence = evidence if isinstance(evidence, Mapping) else {}
    categories = reply.get("categories") or {}
    confidence = evidence.get("confidence")
    if confidence is None and categories:
        confidence = max(categories.values())
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
        "confidence": confidence,
        "abstain": list(evidence.get("abstain") or ()),
        "evidence": dict(evidence) or None,
    }
