"""The physician's console: pages on the same app and port as the API, in Chinese and English, without a network."""

from __future__ import annotations

import hashlib
import logging
import warnings
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from nicegui import app as pages_app
from nicegui import core, ui

from vrbot.serving.actors import Actor
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.api.signin import signed_in
from vrbot.serving.console import failures, patient_page, signin_page
from vrbot.serving.console.parts import button, empty_state
from vrbot.serving.console.shell import STATIC, Console, PageEntry, Visit, language_of, page_frame
from vrbot.serving.console.table import PAGES
from vrbot.serving.service import Desk

log = logging.getLogger(__name__)
FILES = Path(__file__).parent / "static"
BUILD_SECONDS = 30.0
Build = Callable[[Visit], Awaitable[None]]
Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def attach(app: FastAPI, desk: Desk, settings: AppSettings, drafter: Any) -> None:
    """Puts the console on an app; a process has one console, the one attached last."""
    console = Console(desk, settings, drafter, signed_in, _version())
    pages_app.add_static_files(STATIC, FILES)
    _register_home(console)
    for entry in PAGES:
        _register(console, entry.path, entry.build, entry)
    patient_page.register(console)
    failures.install(console.version)
    signin_page.register(console)
    core.app.user_middleware.clear()
    core.app.middleware_stack = None
    icon = (FILES / "icon.svg").read_text(encoding="utf-8")
    ui.run_with(
        app, title="VRBot", favicon=icon, tailwind=False, reconnect_timeout=10, show_welcome_message=False, dark=None
    )
    app.router.lifespan_context = _quietly(app.router.lifespan_context)


def _quietly(lifespan: Lifespan) -> Lifespan:
    """NiceGUI looks at every object there is as it starts; some of them (torch's) complain of being looked at."""

    @asynccontextmanager
    async def started(app: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                state = await stack.enter_async_context(lifespan(app))
            yield state

    return started


def _register(console: Console, path: str, build: Build, entry: PageEntry | None = None) -> None:
    @ui.page(path, response_timeout=BUILD_SECONDS)
    async def page(request: Request) -> RedirectResponse | None:
        actor = await _actor(console, request)
        if actor is None:
            return RedirectResponse(f"/sign-in?next={quote(request.url.path)}")
        visit = Visit(console, request, actor, language_of(request), PAGES)
        if entry is not None and not entry.open_to(actor):
            _nothing_here(visit, "no pages", visit.words()("no pages text", role=actor.role))
            return None
        client = ui.context.client
        try:
            await build(visit)
        except Exception as error:  # its message may quote a patient: neither the page nor the log repeats it
            log.error("the page %s failed (%s)", path, type(error).__name__)
            client.content.clear()
            with client.content:
                failures.show(request, "went wrong", console.version)
        return None


def _register_home(console: Console) -> None:
    @ui.page("/")
    async def home(request: Request) -> RedirectResponse | None:
        actor = await _actor(console, request)
        if actor is None:
            return RedirectResponse("/sign-in")
        open_pages = [entry for entry in PAGES if entry.icon and entry.open_to(actor)]
        if open_pages:
            return RedirectResponse(open_pages[0].path)
        visit = Visit(console, request, actor, language_of(request), PAGES)
        _nothing_here(visit, "no pages", visit.words()("no pages text", role=actor.role))
        return None


async def _actor(console: Console, request: Request) -> Actor | None:
    return await to_thread(console.who, request)


def _nothing_here(visit: Visit, key: str, body: str) -> None:
    heard = visit.words()
    with page_frame(visit, "", heard(key)), empty_state("lock", heard(key), body):
        button(heard("to the start"), lambda: ui.navigate.to("/"), kind="primary")


def _version() -> str:
    """Changes with the styles and scripts, so that no browser keeps old ones."""
    digest = hashlib.sha256()
    for path in sorted(FILES.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
