"""Labels a model proposes: those an auto-labeller left for a turn, else those behind the model's own draft."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, select

from vrbot.dialogue.session import CATEGORIES
from vrbot.explain.given_labels import HUMAN
from vrbot.explain.given_labels import PROPOSED as PROPOSED_NOTE
from vrbot.serving.schema import LABELS, drafts, labels, turns
from vrbot.serving.texts import canonical_json

PROPOSED = "auto-labeller"
"""Stands in `made_by` of a proposal. No account has it: ids of users are made by the store."""


@dataclass(frozen=True)
class Proposal:
    """A value nobody has confirmed; how sure the model is of it, 0 to 1, or None if it does not say."""

    value: Any
    confidence: float | None
    source: Literal["auto-labeller", "draft"]
    model: str | None = None  # the fingerprint of the one that proposes, where it is known

    def to_dict(self) -> dict[str, Any]:
        """The value and where it is from."""
        named = {} if self.model is None else {"model": self.model}
        return {"value": self.value, "confidence": self.confidence, **named}

    def to_json(self) -> str:
        """As an auto-labeller's proposal is kept."""
        return canonical_json(self.to_dict())


Proposals = Mapping[str, Mapping[str, Proposal]]
"""By turn and kind."""


def proposals_of(connection: Connection, chosen: ColumnElement[bool]) -> Proposals:
    """For all turns of the consultations chosen; the newest of each kind, an auto-labeller's before a draft's."""
    found: dict[str, dict[str, Proposal]] = {}
    query = select(drafts.c.turn, drafts.c.reply).join(turns, turns.c.id == drafts.c.turn)
    query = query.where(chosen, drafts.c.origin == "model", drafts.c.reply.is_not(None)).order_by(drafts.c.version)
    for row in connection.execute(query):
        found.setdefault(row.turn, {}).update(behind_draft(json.loads(row.reply)))
    kept = select(labels).join(turns, turns.c.id == labels.c.turn)
    kept = kept.where(chosen, labels.c.made_by == PROPOSED).order_by(labels.c.number)
    for row in connection.execute(kept):
        content = json.loads(row.value)
        proposal = Proposal(content["value"], content["confidence"], "auto-labeller", content.get("model"))
        found.setdefault(row.turn, {})[row.kind] = proposal
    return found


def provenance_of(made_by: str, proposal: Proposal | None) -> dict[str, Any]:
    """Who a person's label is by, as `vrbot annotate import` notes it, and what an auto-labeller proposed for it."""
    note: dict[str, Any] = {"by": HUMAN, "annotator": made_by}
    if proposal is not None and proposal.source == "auto-labeller":
        note[PROPOSED_NOTE] = proposal.to_dict()
    return note


def behind_draft(reply: Mapping[str, Any]) -> dict[str, Proposal]:
    """State, category and keywords of a model's reply, as far as it has them in the form the agent gives them."""
    values: dict[str, tuple[Any, float | None]] = {}
    state, keywords = _entities(reply.get("state")), _entities(reply.get("keywords"))
    if state is not None:
        values["state"] = ([each["name"] for each in state], None)
    if reply.get("category") in CATEGORIES:
        shares = reply.get("categories")
        share = shares.get(reply["category"]) if isinstance(shares, Mapping) else None
        values["category"] = (reply["category"], _share(share))
    if keywords is not None:
        sure = [share for each in keywords if (share := _share(each.get("probability"))) is not None]
        values["keywords"] = ([each["name"] for each in keywords], fmean(sure) if sure else None)
    return {kind: Proposal(*values[kind], "draft") for kind in LABELS if kind in values}


def _entities(given: Any) -> Sequence[Mapping[str, Any]] | None:
    if not isinstance(given, list):
        return None
    return [each for each in given if isinstance(each, Mapping) and isinstance(each.get("name"), str) and each["name"]]


def _share(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and 0 <= value <= 1 else None
