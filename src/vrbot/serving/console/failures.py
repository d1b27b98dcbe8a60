"""What is shown where there is no page, or a page fails: nothing of what was being worked on, on screen or in logs."""

from __future__ import annotations

import logging

from fastapi import Request, Response
from fastapi.responses import PlainTextResponse
from nicegui import Client, ui
from nicegui import app as pages_app

from vrbot.serving.console.parts import empty_state, link
from vrbot.serving.console.shell import STATIC, language_of, page_basics
from vrbot.serving.console.words import words

log = logging.getLogger(__name__)
FILES = ("/_nicegui", STATIC)


def install(version: str) -> None:
    """Takes the place of the framework's own error pages, which show the error."""

    @pages_app.exception_handler(404)
    async def missing(request: Request, error: Exception) -> Response:
        del error
        if request.url.path.startswith(FILES):
            return PlainTextResponse("not found", 404)
        return _page(request, "not found", 404, version)

    @pages_app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        log.error("a page failed (%s)", type(error).__name__)
        return _page(request, "went wrong", 500, version)


def _page(request: Request, key: str, status: int, version: str) -> Response:
    with Client(ui.page(""), request=request) as client:
        show(request, key, version)
    return client.build_response(request, status)


def show(request: Request, key: str, version: str) -> None:
    """The message in the middle of an empty page, with the way to the start."""
    language = language_of(request)
    heard = words(language)
    page_basics(request, language, heard(key), version)
    with ui.element("main").classes("page"):
        name = "search_off" if key == "not found" else "healing"
        with empty_state(name, heard(key), heard(f"{key} text")):
            link(heard("to the start"), "/", "button button-primary")
