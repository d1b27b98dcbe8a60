"""Errors as answers: problem+json (RFC 9457) with one clear line; OpenAI's form for OpenAI's routes."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from vrbot.errors import UsageError, VRBotError
from vrbot.safety.tables import NOTICE
from vrbot.serving.problems import (
    BusyError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ReasonNeededError,
    RefusedError,
    SignInError,
    UnavailableError,
)
from vrbot.serving.safety_desk import findings_sha256

log = logging.getLogger(__name__)

STATUS: tuple[tuple[type[VRBotError], int], ...] = (
    (BusyError, 429),
    (UnavailableError, 503),
    (SignInError, 401),
    (RefusedError, 403),
    (NotFoundError, 404),
    (ConflictError, 409),
    (ReasonNeededError, 422),
    (InvalidInputError, 422),
    (UsageError, 422),
    (VRBotError, 500),
)
TITLES = {
    400: "The request cannot be read",
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Not a method of this route",
    408: "The request came too slowly",
    409: "Done already, in another way",
    413: "Too large",
    421: "Asked under another name",
    422: "A value is wrong",
    429: "Too many at once",
    500: "Something went wrong",
    503: "Not available at present",
}
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
RETRY_SECONDS = 1


def status_of(error: VRBotError) -> int:
    """The status an error is answered with."""
    return next(status for kind, status in STATUS if isinstance(error, kind))


def answer_with(status: int, detail: str, path: str = "", **more: Any) -> Response:
    """A problem as an answer."""
    headers = {"Retry-After": str(more.pop("retry_after", RETRY_SECONDS))} if status in (429, 503) else {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="vrbot"'
    if path.startswith("/v1/"):
        error = {"message": detail, "type": TYPES.get(status, "invalid_request_error"), "param": None, "code": status}
        return JSONResponse({"error": error}, status, headers)
    content = {"type": "about:blank", "title": TITLES.get(status, "Problem"), "status": status, "detail": detail}
    return JSONResponse({**content, **more}, status, headers, "application/problem+json")


def answer_to(error: VRBotError, path: str = "") -> Response:
    """The answer to an error of the desk."""
    more: dict[str, Any] = {}
    if isinstance(error, ReasonNeededError):
        shown = findings_sha256(error.findings)
        more |= {"findings": list(error.findings), "findings_sha256": shown, "notice": NOTICE}
    if isinstance(error, BusyError):
        more["retry_after"] = error.retry_after
    return answer_with(status_of(error), " ".join(str(error).splitlines()), path, **more)


def answer_to_fault(error: Exception, path: str = "") -> Response:
    """The answer to what nobody foresaw; the log says where it was, not what was being worked on."""
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    log.error("%s at %s", type(error).__name__, " < ".join(reversed(places[-6:])))
    return answer_with(500, "something went wrong on the server; its log says where", path)


def install_answers(app: FastAPI) -> None:
    """Has every error of the app answered so."""

    @app.exception_handler(VRBotError)
    async def of_desk(request: Request, error: VRBotError) -> Response:
        return answer_to(error, request.url.path)

    @app.exception_handler(RequestValidationError)
    async def of_form(request: Request, error: RequestValidationError) -> Response:
        # What was sent is not repeated: it may be what a patient said.
        wrong = [
            {"field": ".".join(str(part) for part in each["loc"])[:200], "problem": each["msg"][:200]}
            for each in error.errors()[:20]
        ]
        unreadable = any(each["type"] == "json_invalid" for each in error.errors())
        first = f"{wrong[0]['field']}: {wrong[0]['problem']}"
        return answer_with(400 if unreadable else 422, first, request.url.path, errors=wrong)

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> Response:
        answer = answer_with(error.status_code, str(error.detail), request.url.path)
        for name, value in (error.headers or {}).items():
            answer.headers[name] = value
        return answer
