"""Labels, ratings, and what researchers take away: sessions without names, judgements with."""

from __future__ import annotations

import random
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from vrbot.dialogue.canonical import session_to_line
from vrbot.dialogue.sources import Place
from vrbot.serving.api.bodies import Id, LabelKind, NewLabel, NewOrder, NewRating, PathName
from vrbot.serving.api.records_out import API, LabelOut, RatingOut, answer, plain, problems
from vrbot.serving.api.signin import SignedIn
from vrbot.serving.service import Desk

LINES: dict[int | str, dict[str, Any]] = {200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}}


def research_routes(desk: Desk, chance: random.Random) -> APIRouter:
    """Under /api/v1."""
    routes = APIRouter(prefix=API, tags=["labels and ratings"])

    @routes.get("/turns/{turn}/labels", response_model=dict[str, LabelOut], responses=problems(401, 404))
    def read_labels(turn: Id, actor: SignedIn) -> Response:
        """The labels of a turn that count, by kind."""
        return answer({kind: plain(label) for kind, label in desk.annotation.labels_of(actor, turn).items()})

    @routes.put("/turns/{turn}/labels/{kind}", response_model=LabelOut, responses=problems(401, 404, 409))
    def give_label(turn: Id, kind: LabelKind, body: NewLabel, actor: SignedIn) -> Response:
        """A label, or a correction of one; the newest counts, all are kept. One that was not seen is not replaced."""
        return answer(plain(desk.annotation.label(actor, turn, kind, body.value, body.seen)))

    @routes.post("/ratings/orders", response_model=dict[str, str], responses=problems(401))
    def draw_order(body: NewOrder, actor: SignedIn) -> Response:
        """The order in which this rater sees the systems of an item; drawn once, and the names stay hidden."""
        return answer({"order": desk.ratings.order(actor, body.campaign, body.item, body.systems, chance)})

    @routes.post("/ratings/orders/{order}", status_code=204, responses=problems(401, 404))
    def rate(order: Id, body: NewRating, actor: SignedIn) -> None:
        """A judgement of the system at a place of the order (first is 0)."""
        desk.ratings.rate(actor, order, body.measure, body.position, body.value)

    @routes.get("/ratings/{campaign}", response_model=list[RatingOut], responses=problems(401))
    def export_ratings(campaign: PathName, actor: SignedIn) -> Response:
        """Every judgement of a campaign, names uncovered; physicians' feedback on drafts is the campaign `feedback`."""
        return answer([plain(rating) for rating in desk.ratings.export(actor, campaign)])

    @routes.get("/export/sessions", response_class=Response, responses={**problems(401), **LINES})
    def export_sessions(
        actor: SignedIn, demo: Annotated[bool, Query(description="Demonstrations instead of consultations.")] = False
    ) -> Response:
        """All consultations without names, as the lines `vrbot prepare` reads."""
        sessions = desk.annotation.export(actor, demo=demo)
        lines = [session_to_line(session, Place("export", number)) for number, session in enumerate(sessions, start=1)]
        return Response("".join(f"{line}\n" for line in lines), media_type="application/x-ndjson")

    return routes
