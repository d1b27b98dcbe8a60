"""What the pages about records (labels, ratings, experiments, card, audit) share beside the shell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from nicegui import ui

from vrbot.serving.console.parts import text
from vrbot.serving.console.shell import STATIC, Visit

Change = Callable[[str], Awaitable[None]]
"""Hears of a new value."""


def page_style(visit: Visit) -> None:
    """The styles of these pages."""
    ui.add_head_html(f'<link rel="stylesheet" href="{STATIC}/records.css?{visit.console.version}">')


def plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, label: str = "", numbers: int = 0
) -> ui.element:
    """A table of texts; the last `numbers` columns are set to the right."""
    first_number = len(columns) - numbers
    with ui.element("div").classes("table-scroll"), ui.element("table").classes("table") as table:
        if label:
            table.props["aria-label"] = label
        with ui.element("thead"), ui.element("tr"):
            for place, column in enumerate(columns):
                text("th", column, "number" if place >= first_number else "").props("scope=col")
        with ui.element("tbody"):
            for row in rows:
                with ui.element("tr"):
                    for place, cell in enumerate(row):
                        text("td", cell, "number" if place >= first_number else "")
    return table


def command(lines: str) -> None:
    """Commands to type, as they are."""
    text("pre", lines, "command")


def choice_box(label: str, options: Mapping[str, str], value: str, on_change: Change) -> None:
    """A list to choose from, with its label."""
    with ui.element("label").classes("field"):
        text("span", label, "field-name")
        box = ui.element("select").classes("field-box")
        box.on("change", lambda event: on_change(str(event.args)), js_handler="(e) => emit(e.target.value)")
        with box:
            for key, told in options.items():
                option = text("option", told)
                option.props["value"] = key
                if key == value:
                    option.props["selected"] = True


def text_box(label: str, on_change: Change, hint: str = "", value: str = "") -> None:
    """A line to write in, with its label; heard of when somebody has finished it."""
    with ui.element("label").classes("field"):
        text("span", label, "field-name")
        box = ui.element("input").classes("field-box").props('type="text" autocomplete="off" maxlength="200"')
        box.props["placeholder"], box.props["value"] = hint, value
        box.on("change", lambda event: on_change(str(event.args)), js_handler="(e) => emit(e.target.value)")
