"""What answers carry, for the OpenAPI document; and the one way a record becomes bytes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import Response
from pydantic import BaseModel

from vrbot.safety.tables import NOTICE
from vrbot.serving.texts import canonical_json

API = "/api/v1"
Finding = dict[str, Any]
Notice = dict[str, str]
"""What must be shown beside findings of the rules, by language."""


def plain(record: Any) -> dict[str, Any]:
    """A record as plain values; what the rules found is a list, and their notice goes with it."""
    content = asdict(record)
    for name in ("checks", "flags"):
        if name in content:
            content |= {name: list(content[name]["findings"]), "notice": NOTICE}
    return content


def answer(content: Any, status: int = 200) -> Response:
    """A value in its one form, so that equal answers have equal bytes."""
    return Response(canonical_json(content).encode("utf-8"), status, media_type="application/json")


class ProblemOut(BaseModel):
    type: str
    title: str
    status: int
    detail: str
    findings: list[Finding] | None = None
    findings_sha256: str | None = None
    notice: Notice | None = None
    errors: list[dict[str, str]] | None = None


class ConsultationOut(BaseModel):
    id: str
    owner: str
    language: str
    reference: str
    demo: bool
    opened_at: int
    closed_at: int | None


class TurnOut(BaseModel):
    id: str
    consultation: str
    seq: int
    client_turn_id: str
    text: str
    text_sha256: str
    flags: list[Finding]
    notice: Notice
    received_at: int
    received_by: str


class DraftOut(BaseModel):
    id: str
    turn: str
    version: int
    origin: str
    parent: str | None
    text: str | None
    text_sha256: str | None
    failure: str | None
    reply: dict[str, Any] | None
    change: dict[str, Any] | None
    model: str | None
    checks: list[Finding]
    notice: Notice
    suggests_medicine: bool
    made_at: int
    made_by: str


class DecisionOut(BaseModel):
    id: str
    draft: str
    kind: str
    text_sha256: str
    reason: str | None
    checks: list[Finding]
    notice: Notice
    simulated: bool
    made_at: int
    made_by: str


class MessageOut(BaseModel):
    id: str
    turn: str
    draft: str
    decision: str
    text: str
    text_sha256: str
    medicine_suggestion: bool
    simulated: bool
    sent_at: int


class CaseOut(BaseModel):
    consultation: ConsultationOut
    turns: list[TurnOut]
    drafts: list[DraftOut]
    decisions: list[DecisionOut]
    messages: list[MessageOut]


class LinkOut(BaseModel):
    key: str
    path: str


class LineOut(BaseModel):
    seq: int
    author: str
    text: str
    at: int
    medicine_suggestion: bool


class PatientOut(BaseModel):
    lines: list[LineOut]


class ExplanationOut(BaseModel):
    draft: str
    model: str
    text: str
    state: list[dict[str, Any]] | None
    action: dict[str, Any]
    paths: list[dict[str, Any]]
    confidence: float | None
    abstain: list[str] | None
    evidence: dict[str, Any] | None


class LabelOut(BaseModel):
    id: str
    turn: str
    number: int
    kind: str
    value: Any
    made_at: int
    made_by: str


class RatingOut(BaseModel):
    campaign: str
    item: str
    rater: str
    system: str
    measure: str
    value: int
    number: int


class UserOut(BaseModel):
    id: str
    name: str
    role: str
    disabled: bool
    made_at: int


class LoginOut(BaseModel):
    token: str
    expires_at: int
    user: UserOut


class MeOut(BaseModel):
    id: str
    role: str
    may: list[str]
    demo: bool


class SwitchOut(BaseModel):
    on: bool
    reason: str
    who: str
    when: str


class FaultOut(BaseModel):
    place: str
    problem: str


class AuditOut(BaseModel):
    good: bool
    events: int
    rows: int
    head: dict[str, Any]
    witnessed: int | None
    unwitnessed: int | None
    faults: list[FaultOut]
    notes: list[FaultOut]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors a route may answer with, beside those every route may."""
    words = {
        400: "The request cannot be read.",
        401: "Nobody is signed in.",
        403: "Not allowed.",
        404: "There is no such thing, or it is not yours.",
        408: "The request came too slowly.",
        409: "Done already, in another way.",
        413: "Too large.",
        421: "Asked under another name than a loopback one, in an open demonstration.",
        422: "A value is wrong, or a reason is needed.",
        429: "Too many at once; see Retry-After.",
        500: "Something went wrong on the server.",
        503: "Not available at present; to try again is safe.",
    }
    always = (400, 403, 408, 413, 421, 422, 429, 500, 503)
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemOut"}}}
    return {status: {"description": words[status], "content": content} for status in sorted({*always, *statuses})}
