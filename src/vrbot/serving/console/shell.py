"""The frame around every page of the console: header, navigation, language, theme, the state of drafts.

A page is an async function of a `Visit`; it builds its content inside `page_frame(visit, "its key")`. To register one,
add a line to `PAGES` in `table.py`. Styles are the classes of `static/console.css` (there is no Tailwind here); text
of people or models is shown with `parts.text` only, which never reads it as HTML. A button with `key="a"` is pressed
by that key anywhere on the page, except while somebody types.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from fastapi import Request
from nicegui import ui

from vrbot.errors import VRBotError
from vrbot.serving.actors import ROLES, Actor
from vrbot.serving.console.parts import asked, icon, link, text
from vrbot.serving.console.words import LANGUAGES, Table, Words, words
from vrbot.serving.problems import SignInError
from vrbot.serving.safety_desk import why_drafts_are_stopped
from vrbot.serving.service import Desk

LANGUAGE_COOKIE, THEME_COOKIE = "vrbot_language", "vrbot_theme"
THEMES = {"light": False, "dark": True, "auto": None}
STATIC = "/console-static"
LOOK_SECONDS = 5.0
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Console:
    """What all pages share; `settings` and `drafter` are those of the app (`serving.app`)."""

    desk: Desk
    settings: Any
    drafter: Any
    who: Callable[[Request], Actor | None]
    version: str = ""


@dataclass(frozen=True, eq=False)
class Visit:
    """One opening of a page: by whom, in which language; `request.path_params` has the parts of the address.

    A page lives for as long as its browser does, a sign-in does not: whatever the page does, it does through `does` or
    `asked`, which look at the token of `request` each time.
    """

    console: Console
    request: Request
    actor: Actor
    language: str
    pages: tuple[PageEntry, ...] = ()

    @property
    def desk(self) -> Desk:
        return self.console.desk

    def as_present(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """The function's answer while whoever opened the page is signed in, else SignInError; reads the database."""
        if self.console.who(self.request) != self.actor:
            raise SignInError("the sign-in has ended: sign in again")
        return function(*arguments, **named)

    async def does(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """As `as_present`, beside the event loop."""
        return await to_thread(self.as_present, function, *arguments, **named)

    async def asked(self, heard: Words, function: Callable[..., T], *arguments: Any, **named: Any) -> T | None:
        """As `does`; None and a message on the screen where it fails, and sign-in where nobody is signed in."""
        try:
            return await asked(heard, self.as_present, function, *arguments, **named)
        except SignInError:
            self.leave()
            return None

    async def goes_on(self) -> bool:
        """Whether the sign-in lasts; where it does not, the page is left. A database out of reach ends nobody's."""
        try:
            await self.does(bool)
        except SignInError:
            self.leave()
            return False
        except VRBotError:
            return True
        return True

    def leave(self) -> None:
        """Takes the browser to sign-in, and back here afterwards."""
        ui.navigate.to(f"/sign-in?next={quote(self.request.url.path)}")

    def words(self, *tables: Table) -> Words:
        """The strings of a page (and of the shell) in the visitor's language."""
        return words(self.language, *tables)


@dataclass(frozen=True)
class PageEntry:
    """A page: its address, the key of its name in the shell's words, its icon, what a role must be allowed to see it.

    A page without an icon is not in the navigation; one of `parent`'s keeps that entry marked.
    """

    path: str
    key: str
    icon: str | None
    needs: str | None
    build: Callable[[Visit], Awaitable[None]]
    parent: str | None = None

    def open_to(self, actor: Actor) -> bool:
        """Whether the actor's role may see it."""
        return self.needs is None or actor.may(self.needs)


def language_of(request: Request) -> str:
    """The language somebody chose, else the first of theirs that there is, else Chinese."""
    chosen = request.query_params.get("language") or request.cookies.get(LANGUAGE_COOKIE)
    if chosen in LANGUAGES:
        return str(chosen)
    for wanted in request.headers.get("accept-language", "").lower().split(","):
        if wanted.strip()[:2] in LANGUAGES:
            return wanted.strip()[:2]
    return LANGUAGES[0]


@contextmanager
def page_frame(visit: Visit, key: str, title: str | None = None, *, wide: bool = False) -> Iterator[ui.element]:
    """The page with everything around it; inside the block is its content. `wide` uses the whole width."""
    heard = visit.words()
    page_basics(visit.request, visit.language, f"{title or heard.of(key)} · {heard('product')}", visit.console.version)
    link(heard("skip"), "#content", "skip-link")
    with ui.element("header").classes("topbar"):
        _brand(heard)
        _navigation(visit, key, heard)
        ui.element("div").classes("grow")
        drafts_state(visit, heard)
        _tools(visit, heard)
    with ui.element("main").classes("page page-wide" if wide else "page").props('id="content" tabindex="-1"') as main:
        yield main


def page_basics(request: Request, language: str, title: str, version: str = "") -> None:
    """Title, styles, scripts and theme: what also a page without a frame needs."""
    ui.page_title(title)
    ui.add_head_html(f'<link rel="stylesheet" href="{STATIC}/console.css?{version}">')
    ui.add_head_html(f'<script src="{STATIC}/console.js?{version}"></script>')
    ui.colors(primary="#0f766e", negative="#b42318", positive="#15803d", warning="#b45309", dark="#161b22")
    ui.dark_mode(THEMES.get(request.cookies.get(THEME_COOKIE, "auto")))
    ui.run_javascript(f'document.documentElement.lang = "{"zh-CN" if language == "zh" else "en"}"')


def _brand(heard: Words) -> None:
    with ui.element("a").classes("brand").props('href="/"'):
        ui.element("span").classes("brand-mark").props("aria-hidden=true")
        text("span", heard("product"), "brand-name")
        text("span", heard("product line"), "brand-line")


def _navigation(visit: Visit, key: str, heard: Words) -> None:
    entries = [entry for entry in visit.pages if entry.icon and entry.open_to(visit.actor)]
    with ui.element("nav").classes("topnav") as navigation:
        navigation.props["aria-label"] = heard("navigation")
        for entry in entries:
            with link("", entry.path, "navlink") as anchor:
                icon(entry.icon or "")
                text("span", heard.of(entry.key))
            if entry.key == key or any(page.key == key and page.parent == entry.key for page in visit.pages):
                anchor.props["aria-current"] = "page"


def drafts_state(visit: Visit, heard: Words) -> None:
    """Whether the model may draft at present: the kill switch, looked at every few seconds, as is the sign-in."""
    pill = ui.element("div").classes("pill")
    with pill:
        ui.element("span").classes("dot")
        label = text("span", "", "pill-text")
        tip = ui.tooltip("")
    pill.props["role"] = "status"

    def show() -> None:
        reason = why_drafts_are_stopped(visit.desk.safety)
        missing = visit.desk.responder is None
        off = reason is not None or missing
        label.text = heard("drafts off" if off else "drafts on")
        told = heard("no model title") if missing else heard("drafts off title", reason=reason or "")
        tip.text = told if off else heard("drafts on title")
        pill.classes(replace="pill pill-off" if off else "pill pill-on")

    async def look() -> None:
        if await visit.goes_on():
            show()

    show()
    ui.timer(LOOK_SECONDS, look)


def _tools(visit: Visit, heard: Words) -> None:
    if visit.desk.demo:
        with ui.element("div").classes("pill pill-demo"):
            text("span", heard("demo"))
            ui.tooltip(heard("demo title"))
    other = next(each for each in LANGUAGES if each != visit.language)
    switch = ui.element("button").classes("tool").props('type="button" data-testid="language"')
    switch.on("click", js_handler=f'() => vrbot.choose("{LANGUAGE_COOKIE}", "{other}")')
    switch.props["aria-label"] = switch.props["title"] = heard("language title")
    with switch:
        text("span", heard("language"))
    theme = ui.element("button").classes("tool tool-icon").props('type="button" data-testid="theme"')
    theme.on("click", js_handler=f'() => vrbot.nextTheme("{THEME_COOKIE}")')
    theme.props["aria-label"] = theme.props["title"] = heard("theme title")
    with theme:
        icon("contrast")
    if not visit.desk.demo:
        _account(visit, heard)


def _account(visit: Visit, heard: Words) -> None:
    button = ui.element("button").classes("tool tool-icon").props('type="button" data-testid="account"')
    button.props["aria-label"] = heard("sign out")
    with button:
        icon("account_circle")
        with ui.menu().props("auto-close"):
            role = heard(f"role {visit.actor.role}") if visit.actor.role in ROLES else visit.actor.role
            text("div", role, "menu-note")
            ui.menu_item(heard("sign out"), on_click=lambda: ui.run_javascript("vrbot.signOut()"))
