"""The app: the API, the layer around it, and the console where it is wanted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute, Match

from vrbot.errors import ConfigError
from vrbot.serving.api.admin_routes import admin_routes
from vrbot.serving.api.answers import answer_with, install_answers
from vrbot.serving.api.completions import completion_routes
from vrbot.serving.api.consultation_routes import consultation_routes, patient_routes
from vrbot.serving.api.draft_routes import draft_routes
from vrbot.serving.api.drafter import Drafter
from vrbot.serving.api.drain import Drain
from vrbot.serving.api.front import Front
from vrbot.serving.api.health import Readiness, health_routes
from vrbot.serving.api.meters import Meters
from vrbot.serving.api.records_out import ProblemOut
from vrbot.serving.api.research_routes import research_routes
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.api.signin import Gate, signin_routes
from vrbot.serving.service import Desk

__all__ = ["AppSettings", "create_app"]

DESCRIPTION = (
    "The physician's desk. Sign in with `POST /api/v1/sign-in`, then send `Authorization: Bearer TOKEN`. Nothing "
    "reaches a patient without a physician's approval of exactly that text. Times are microseconds since 1970."
)
EVERY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


def create_app(desk: Desk, settings: AppSettings) -> FastAPI:
    """The whole app over a desk, for one process."""
    if settings.open_demo and not desk.demo:
        raise ConfigError("only a desk that was opened as a demonstration may do without sign-in")
    meters, drain = Meters(), Drain(settings.drain_seconds, settings.drain_pause)
    drafter, readiness = Drafter(desk, settings, meters), Readiness(desk, drain, meters)
    app = FastAPI(
        title="vrbot",
        version=version("vrbot"),
        description=DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # those pages load their scripts from another machine
        redoc_url=None,
        lifespan=_lifespan(settings, drafter, readiness, drain),
    )
    routers = (
        health_routes(readiness, meters),
        signin_routes(desk, settings),
        consultation_routes(desk, settings),
        draft_routes(desk, drafter),
        patient_routes(desk, settings),
        research_routes(desk, random.SystemRandom()),
        admin_routes(desk, settings),
        completion_routes(desk, drafter, settings),
    )
    for router in routers:
        app.include_router(router)
    _answer_unknown_routes(app, [route for router in routers for route in router.routes])
    install_answers(app)
    _describe(app)
    app.add_middleware(Front, gate=Gate(desk, settings), drain=drain, meters=meters)
    if settings.console:
        from vrbot.serving import console

        console.attach(app, desk, settings, drafter)
    return app


def _lifespan(settings: AppSettings, drafter: Drafter, readiness: Readiness, drain: Drain) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # One thread more than connections to the database would only wait for one.
        anyio.to_thread.current_default_thread_limiter().total_tokens = settings.threads
        warming = asyncio.create_task(readiness.warm_up(drafter))
        drain.install()
        try:
            yield
        finally:
            drain.uninstall()
            warming.cancel()
            with suppress(asyncio.CancelledError):
                await warming
            await drafter.stop()

    return lifespan


def _answer_unknown_routes(app: FastAPI, known: list[BaseRoute]) -> None:
    """What no route answers is a problem too, and not a page of the console."""

    async def unknown(request: Request, rest: str) -> Response:
        del rest
        found = {
            method
            for route in known
            if route.matches(request.scope)[0] is Match.PARTIAL
            for method in getattr(route, "methods", None) or ()
        }
        if not found:
            return answer_with(404, "there is no such route: see /api/v1/openapi.json", request.url.path)
        answer = answer_with(405, f"this route knows {', '.join(sorted(found))}", request.url.path)
        answer.headers["Allow"] = ", ".join(sorted(found))
        return answer

    for prefix in ("/api/{rest:path}", "/v1/{rest:path}"):
        app.add_api_route(prefix, unknown, methods=EVERY_METHOD, include_in_schema=False)


def _describe(app: FastAPI) -> None:
    """The OpenAPI document, with the form of problems in it."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
                tags=app.openapi_tags,
            )
            schemas = found.setdefault("components", {}).setdefault("schemas", {})
            schemas["ProblemOut"] = ProblemOut.model_json_schema()
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]
