"""The sign-in page, which makes the first account while there is none: a plain form that posts to the API."""

from __future__ import annotations

from asyncio import to_thread

from fastapi import Request
from nicegui import events, ui
from sqlalchemy import select

from vrbot.serving.console.parts import text
from vrbot.serving.console.shell import LANGUAGE_COOKIE, Console, language_of, page_basics
from vrbot.serving.console.words import LANGUAGES, signin, words
from vrbot.serving.schema import users
from vrbot.serving.store import Store

ADDRESS, SETUP = "/api/v1/sign-in", "/api/v1/setup"
SUBMIT = """(e) => { e.preventDefault(); vrbot.signIn(e.currentTarget, (problem) => emit(problem)); }"""


def register(console: Console) -> None:
    """Puts the page at /sign-in."""

    @ui.page("/sign-in")
    async def page(request: Request) -> None:
        language = language_of(request)
        anybody = await to_thread(_anybody, console.desk.store)
        page_basics(request, language, words(language, signin.WORDS)("sign in"), console.version)
        _form(language, _safe_target(request.query_params.get("next", "/")), anybody)


def _anybody(store: Store) -> bool:
    with store.reading() as connection:
        return connection.execute(select(users.c.id).limit(1)).first() is not None


def _safe_target(target: str) -> str:
    """A path of this console; anything that could lead elsewhere becomes the start page."""
    plain = target.startswith("/") and not target.startswith("//") and "\\" not in target and target.isprintable()
    return target if plain else "/"


def _form(language: str, target: str, anybody: bool) -> None:
    heard = words(language, signin.WORDS)
    with ui.element("main").classes("signin"), ui.element("div").classes("signin-card card"):
        with ui.element("div").classes("brand brand-large"):
            ui.element("span").classes("brand-mark")
            text("span", heard("product"), "brand-name")
            text("span", heard("product line"), "brand-line")
        text("h1", heard("sign in" if anybody else "set up"), "page-title")
        text("p", heard("sign in text" if anybody else "no accounts text"), "page-note")
        form = ui.element("form").classes("signin-form")
        form.props["data-action"] = ADDRESS if anybody else SETUP
        form.props["data-next"] = target if anybody else "/sign-in"
        with form:
            if not anybody:
                _field(heard("code"), "code", "text", "off")
            _field(heard("name"), "name", "text", "username")
            _field(heard("password"), "password", "password", "current-password" if anybody else "new-password")
            problem = text("div", "", "field-error").props('role="alert"')
            with ui.element("button").classes("button button-primary full").props('type="submit"'):
                text("span", heard("enter" if anybody else "set up enter"))

        def show(event: events.GenericEventArguments) -> None:
            refused = "refused" if anybody else "set up refused"
            problem.text = heard(event.args if event.args in ("slow down", "unreachable") else refused)

        form.on("submit", show, js_handler=SUBMIT)
        other = next(each for each in LANGUAGES if each != language)
        switch = ui.element("button").classes("button button-quiet").props('type="button"')
        switch.on("click", js_handler=f'() => vrbot.choose("{LANGUAGE_COOKIE}", "{other}")')
        with switch:
            text("span", heard("language"))


def _field(label: str, name: str, kind: str, completes: str) -> None:
    with ui.element("label").classes("field"):
        text("span", label, "label")
        box = ui.element("input").classes("field-box")
        for key, value in (("name", name), ("type", kind), ("autocomplete", completes), ("required", True)):
            box.props[key] = value
