"""Small parts every page is made of; each shows text as text, whatever is in it."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Callable
from typing import Any, TypeVar

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from vrbot.errors import VRBotError
from vrbot.serving.console.words import Words
from vrbot.serving.problems import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    SignInError,
    UnavailableError,
)

log = logging.getLogger(__name__)
T = TypeVar("T")
PROBLEMS: tuple[tuple[type[VRBotError], str], ...] = (
    (ConflictError, "error conflict"),
    (NotFoundError, "error missing"),
    (RefusedError, "error refused"),
    (InvalidInputError, "error invalid"),
    (UnavailableError, "error busy"),
)


def text(tag: str, content: str, classes: str = "") -> TextElement:
    """An element with a text in it; the one way to show what people or models wrote."""
    return TextElement(tag=tag, text=content).classes(classes)


def icon(name: str, classes: str = "") -> TextElement:
    """An icon of the font that comes with the console; it says nothing to a screen reader."""
    return text("span", name, f"material-icons icon {classes}").props("aria-hidden=true translate=no")


def link(label: str, target: str, classes: str = "") -> ui.element:
    """A link to a page; `with` it to put more than a label inside."""
    anchor = ui.element("a").classes(classes)
    anchor.props["href"] = target
    if label:
        with anchor:
            text("span", label)
    return anchor


def button(
    label: str, on_click: Callable[..., Any] | None = None, *, kind: str = "plain", name: str = "", key: str = ""
) -> ui.element:
    """A button: `kind` is primary, plain, quiet or danger; `name` an icon; `key` presses it, and is shown on it."""
    made = ui.element("button").classes(f"button button-{kind}").props('type="button"')
    if on_click is not None:
        made.on("click", on_click, args=[])
    with made:
        if name:
            icon(name)
        if label:
            text("span", label)
        if key:
            made.props["data-key"] = key.lower()
            made.props["aria-keyshortcuts"] = key
            text("kbd", key)
    return made


def icon_button(name: str, label: str, on_click: Callable[..., Any] | None = None) -> ui.element:
    """A small round button with an icon only; the label is read out, and shown to whoever waits."""
    made = button("", on_click, kind="icon", name=name)
    made.props["aria-label"] = made.props["title"] = label
    return made


def card(title: str = "", *, note: str = "", classes: str = "") -> ui.element:
    """A box with a heading; `with` it for its content."""
    box = ui.element("section").classes(f"card {classes}")
    if title:
        box.props["aria-label"] = title
        with box, ui.element("div").classes("card-head"):
            text("h2", title, "card-title")
            if note:
                text("span", note, "card-note")
    return box


def empty_state(name: str, title: str, body: str = "") -> ui.element:
    """What stands where there is nothing yet; `with` it to add a way out."""
    box = ui.element("div").classes("empty")
    with box:
        icon(name, "empty-icon")
        text("div", title, "empty-title")
        if body:
            text("div", body, "empty-body")
    return box


def told(error: VRBotError, heard: Words) -> str:
    """An error as a sentence for the person at the screen."""
    for kind, key in PROBLEMS:
        if isinstance(error, kind):
            return heard(key, message=str(error)) if "{message}" in heard(key) else heard(key)
    return heard("error other", message=str(error))


async def asked(heard: Words, function: Callable[..., T], *arguments: Any, **named: Any) -> T | None:
    """The function's answer, worked out beside the event loop; None and a message on the screen where it fails.

    What is somebody's to see or to do is asked through their `Visit`, which alone knows what to do about SignInError.
    """
    try:
        return await to_thread(function, *arguments, **named)
    except SignInError:
        raise
    except VRBotError as error:
        ui.notify(told(error, heard), type="warning", position="top")
    except Exception as error:  # nothing a page asks for may take the page down; the message may quote a patient
        log.error("a page's request failed (%s)", type(error).__name__)
        ui.notify(heard("went wrong text"), type="negative", position="top")
    return None


def since(then: int, now: int, heard: Words) -> str:
    """How long ago, roughly; both in microseconds."""
    minutes = max(0, now - then) // 60_000_000
    for size, key in ((1440, "days"), (60, "hours"), (1, "minutes")):
        if minutes >= size:
            return heard(key, count=minutes // size)
    return heard("now")


def percent(share: float) -> str:
    """A share as a whole percentage; what is not nothing is not shown as nothing."""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"
