"""A box to write in: Enter sends (not while an input method composes), and a reload loses nothing."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nicegui import events, ui

from vrbot.serving.console.parts import button, text
from vrbot.serving.texts import LONGEST_OF_STAFF

Send = Callable[[str, str], Awaitable[bool]]
"""Text and its client id in, whether it was stored out."""


@dataclass(frozen=True)
class Composer:
    """How a box looks and behaves; `name` is unique on the page, `keep` names the text in the browser's tab."""

    name: str
    keep: str
    label: str
    send: str
    placeholder: str = ""
    hint: str = ""
    initial: str = ""
    with_ctrl: bool = False
    focus: bool = False
    rows: int = 1
    icon: str = "send"


def composer(about: Composer, on_send: Send, on_cancel: Callable[[], None] | None = None, cancel: str = "") -> None:
    """The box with its button; what is in it goes to `on_send` with an id that is the same for every retry."""

    client = ui.context.client  # the box may be gone when the answer comes

    async def send(event: events.GenericEventArguments) -> None:
        said, name = str(event.args["text"]), str(event.args["id"])
        stored = await on_send(said, name)
        client.run_javascript(f"vrbot.sent({json.dumps(about.name)}, {json.dumps(said)}, {json.dumps(stored)})")

    with ui.element("div").classes("composer") as around:
        around.props["data-composer"] = about.name
        box = ui.element("textarea").classes("composer-box")
        box.props["data-keep"] = about.keep
        box.props["aria-label"] = about.label
        box.props["placeholder"] = about.placeholder
        box.props["rows"] = about.rows
        box.props["maxlength"] = LONGEST_OF_STAFF
        box.props["data-sends"] = "ctrl" if about.with_ctrl else "enter"
        if about.initial:
            box.props["data-initial"] = about.initial
        if about.focus:
            box.props["data-focus"] = "1"
        with ui.element("div").classes("composer-foot"):
            text("span", about.hint, "hint")
            if on_cancel is not None:
                button(cancel, on_cancel, kind="quiet").props("data-cancel")
            made = button(about.send, kind="primary", name=about.icon).props("data-send")
            made.on("click", send, js_handler="(e) => { const m = vrbot.message(e.currentTarget); if (m) emit(m); }")
