"""Drafts: asked of the model, changed, explained, judged; and the physician's decision about each."""

from __future__ import annotations

from fastapi import APIRouter, Response

from vrbot.serving.api.bodies import Approval, Edit, Feedback, Id, OwnWords, Rejection, WhatIf
from vrbot.serving.api.drafter import Drafter
from vrbot.serving.api.explanations import explanation_of
from vrbot.serving.api.records_out import (
    API,
    DecisionOut,
    DraftOut,
    ExplanationOut,
    MessageOut,
    answer,
    plain,
    problems,
)
from vrbot.serving.api.signin import SignedIn
from vrbot.serving.problems import ConflictError, InvalidInputError
from vrbot.serving.records import Draft
from vrbot.serving.service import Desk

OWN = problems(401, 404, 409)
FEEDBACK = "feedback"
"""The campaign under which physicians' judgements of drafts are kept."""


def draft_routes(desk: Desk, drafter: Drafter) -> APIRouter:
    """Under /api/v1; nothing here reaches a patient but by `approve`. As long as there are routes, each a few lines."""
    routes = APIRouter(prefix=API, tags=["drafts"])

    @routes.post("/turns/{turn}/drafts", response_model=DraftOut, responses=OWN)
    async def make_draft(turn: Id, actor: SignedIn) -> Response:
        """The model's draft, stored before it is shown; asking again gives the same one. A failure is a draft too."""
        return _bytes(await drafter.draft(actor, turn))

    @routes.post("/turns/{turn}/what-if", response_model=DraftOut, responses=OWN)
    async def ask_what_if(turn: Id, body: WhatIf, actor: SignedIn) -> Response:
        """The model's draft if the patient's state or the physician's action were as given."""
        change = body.model_dump(exclude_none=True)
        if not change:
            raise InvalidInputError("say what to change: state, category or keywords")
        return _bytes(await drafter.draft(actor, turn, change))

    @routes.post("/turns/{turn}/answers", response_model=DraftOut, responses=OWN)
    def write_answer(turn: Id, body: OwnWords, actor: SignedIn) -> Response:
        """A draft in the physician's own words, checked like any other."""
        return _bytes(desk.drafting.write(actor, turn, body.text))

    @routes.get("/drafts/{draft}", response_model=DraftOut, responses=OWN)
    def read_draft(draft: Id, actor: SignedIn) -> Response:
        """One draft."""
        return _bytes(desk.drafting.one(actor, draft))

    @routes.post("/drafts/{draft}/approve", response_model=MessageOut, responses=OWN)
    def approve_draft(draft: Id, body: Approval, actor: SignedIn) -> Response:
        """Sends exactly the text whose fingerprint the physician saw; where a check says stop, only with a reason."""
        message = desk.signoff.approve(
            actor,
            draft,
            body.seen_sha256,
            override_reason=body.override_reason,
            seen_turn=body.seen_turn,
            seen_findings=body.seen_findings,
        )
        return answer(plain(message))

    @routes.post("/drafts/{draft}/edit", response_model=DraftOut, responses=OWN)
    def edit_draft(draft: Id, body: Edit, actor: SignedIn) -> Response:
        """A new version in the physician's words, to be approved in its turn."""
        return _bytes(desk.signoff.edit(actor, draft, body.seen_sha256, body.text))

    @routes.post("/drafts/{draft}/reject", response_model=DecisionOut, responses=OWN)
    def reject_draft(draft: Id, body: Rejection, actor: SignedIn) -> Response:
        """Sets a draft aside for good."""
        return answer(plain(desk.signoff.reject(actor, draft, body.reason)))

    @routes.get("/drafts/{draft}/explanation", response_model=ExplanationOut, responses=OWN)
    def explain_draft(draft: Id, actor: SignedIn) -> Response:
        """Where the words, keywords and state of a draft came from, and how sure the model is."""
        found = desk.drafting.one(actor, draft)
        if found.reply is None or found.model is None:
            raise ConflictError("no model wrote this draft: there is nothing to explain")
        return answer({"draft": found.id, "model": found.model, **explanation_of(found.reply)})

    @routes.post("/drafts/{draft}/feedback", status_code=204, responses=OWN)
    def judge_draft(draft: Id, body: Feedback, actor: SignedIn) -> None:
        """The physician's judgement of a draft, 1 to 5; of several the last counts."""
        found = desk.drafting.one(actor, draft)
        given = body.model_dump(exclude_none=True)
        if not given:
            raise InvalidInputError("say how good the draft is: fluency, knowledge or quality")
        order = desk.ratings.order(actor, FEEDBACK, found.id, [found.model or found.origin])
        for measure, value in given.items():
            desk.ratings.rate(actor, order, measure, 0, value)

    return routes


def _bytes(draft: Draft) -> Response:
    return Response(draft.to_json(), media_type="application/json")
