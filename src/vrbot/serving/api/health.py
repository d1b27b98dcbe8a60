"""Whether the server lives, whether it is ready for work, and what it has measured."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from vrbot.errors import VRBotError
from vrbot.serving.api.drafter import Drafter
from vrbot.serving.api.drain import Drain
from vrbot.serving.api.meters import CONTENT_TYPE, Meters
from vrbot.serving.safety_desk import why_drafts_are_stopped
from vrbot.serving.service import Desk

log = logging.getLogger(__name__)

GOOD, WAITING = "good", "waiting"
FIRST_TURN = (("你好 hello", ""),)


class Readiness:
    """Ready means: a model whose manifest and graph were verified has answered a first turn, and the database answers.

    Loading verifies the SHA-256 of every file of a model; one that does not verify is not loaded at all. While drafts
    are switched off on purpose the desk is ready: everything but drafts works.
    """

    def __init__(self, desk: Desk, drain: Drain, meters: Meters) -> None:
        self._desk, self._drain, self._meters = desk, drain, meters
        self._warm_up = WAITING

    async def warm_up(self, drafter: Drafter) -> None:
        """Has the model answer a first turn, again until it can."""
        if self._desk.responder is None:
            self._warm_up = "no model is loaded"
            return
        while self._warm_up != GOOD:
            try:
                if why_drafts_are_stopped(self._desk.safety) is None:
                    await drafter.reply(FIRST_TURN)
                self._warm_up = GOOD
                self._meters.ready.set(1)
            except VRBotError as error:
                self._warm_up = str(error)
                await asyncio.sleep(1)
            except Exception as error:
                log.error("the first turn failed (%s)", type(error).__name__)
                self._warm_up = f"the first turn failed ({type(error).__name__})"
                return

    def checks(self) -> dict[str, str]:
        """By name, `good` or what is the matter; asks the database."""
        loaded = GOOD if self._desk.responder is not None else "no model is loaded"
        try:
            self._desk.store.head()
            database = GOOD
        except VRBotError as error:
            database = str(error)
        return {
            "manifest": loaded,
            "graph": loaded,
            "database": database,
            "first turn": self._warm_up,
            "accepting": "shutting down" if self._drain.begun else GOOD,
        }


def health_routes(readiness: Readiness, meters: Meters) -> APIRouter:
    """`/livez`, `/readyz` and `/metrics`."""
    routes = APIRouter(tags=["health"])

    @routes.get("/livez", summary="Whether the process answers")
    async def alive() -> dict[str, str]:
        return {"status": "alive"}

    @routes.get("/readyz", summary="Whether it is ready for work", responses={503: {"description": "Not yet."}})
    def ready() -> JSONResponse:
        checks = readiness.checks()
        good = all(state == GOOD for state in checks.values())
        content: dict[str, Any] = {"status": "ready" if good else "not ready", "checks": checks}
        return JSONResponse(content, 200 if good else 503)

    @routes.get("/metrics", summary="Figures for Prometheus", response_class=Response)
    async def measured() -> Response:
        return Response(meters.page(), media_type=CONTENT_TYPE)

    return routes
