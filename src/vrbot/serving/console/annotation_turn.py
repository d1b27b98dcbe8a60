"""One turn on the annotation page: what was said, and three rows of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import events, ui

from vrbot.dialogue.session import CATEGORIES
from vrbot.serving.annotation import LabelledTurn
from vrbot.serving.console.annotation_view import Shown, is_done, shown, wanted_kinds, with_name, without_name
from vrbot.serving.console.parts import button, icon, percent, text

if TYPE_CHECKING:
    from vrbot.serving.console.annotation_page import AnnotationScreen

# An input method that composes sends Enter too; that one chooses a word and adds nothing.
ADD = """(e) => {
  if (e.key === "Escape") e.target.blur();
  if (e.key !== "Enter" || e.isComposing || e.keyCode === 229 || !e.target.value.trim()) return;
  e.preventDefault();
  emit(e.target.value);
  e.target.value = "";
}"""


class TurnCard:
    """The card of a turn; boxes to write in stay as they are while labels around them change."""

    def __init__(self, screen: AnnotationScreen, place: int, turn: LabelledTurn) -> None:
        self.screen, self.place, self.turn, self.heard = screen, place, turn, screen.heard
        self.html_id = f"turn-{turn.seq}"
        self.card = ui.element("section").classes("card turn-card").props('data-testid="turn"')
        self.card.props["id"] = self.html_id
        self.card.props["aria-label"] = self.heard("turn", number=turn.seq)
        self.card.on("click", lambda: self._chosen(), args=[])
        with self.card:
            with ui.element("div").classes("turn-head"):
                text("span", self.heard("turn", number=turn.seq), "turn-number")
                self.tick = icon("check_circle", "mark-done")
            self._said("patient", turn.patient)
            self._said("physician", turn.physician)
            with ui.element("div").classes("label-rows"):
                self.rows = {kind: self._row(kind) for kind in wanted_kinds(turn)}
            if not turn.physician:
                text("div", self.heard("no answer"), "hint")
        self.show(turn)

    def mark(self, current: bool) -> None:
        """Shows whether the keys work on this turn."""
        self.card.props["aria-current"] = "true" if current else "false"

    def show(self, turn: LabelledTurn) -> None:
        """Shows the labels of the turn as they are now."""
        self.turn = turn
        self.tick.set_visibility(is_done(turn))
        for kind, row in self.rows.items():
            row.clear()
            with row:
                view = shown(turn, kind)
                if kind == "category":
                    self._categories(view)
                else:
                    self._names(view)
                self._origin(view)

    def _said(self, who: str, said: str) -> None:
        if said:
            with ui.element("div").classes(f"said said-{who}"):
                text("span", self.heard(who), "said-who")
                text("p", said, "said-text")

    def _row(self, kind: str) -> ui.element:
        with ui.element("div").classes("label-row"):
            with ui.element("div").classes("label-name"):
                text("span", self.heard(kind))
                text("span", self.heard(f"{kind} hint"), "hint")
            with ui.element("div").classes("label-body"):
                row = ui.element("div").classes("label-values").props(f'data-testid="{kind}"')
                if kind != "category":
                    self._box(kind)
        return row

    def _box(self, kind: str) -> None:
        box = ui.element("input").classes("label-box").props('type="text" autocomplete="off" maxlength="80"')
        box.props["id"] = f"{self.html_id}-{kind}"
        box.props["placeholder"] = box.props["aria-label"] = self.heard(f"add {kind}")
        box.on("keydown", lambda event: self._add(kind, event), js_handler=ADD)

    def _categories(self, view: Shown) -> None:
        with ui.element("div").classes("segments").props('role="group"') as group:
            group.props["aria-label"] = self.heard("category")
            for category in CATEGORIES:
                choice = button(self.heard(category), lambda name=category: self._choose(name), kind="segment")
                choice.props["aria-pressed"] = "true" if view.value == category else "false"
                choice.classes(f"from-{view.origin}")

    def _names(self, view: Shown) -> None:
        for name in view.value:
            with ui.element("span").classes(f"label-chip from-{view.origin}"):
                text("span", name)
                remove = ui.element("button").props('type="button"').classes("chip-remove")
                remove.props["aria-label"] = remove.props["title"] = self.heard("remove", name=name)
                remove.on("click", lambda name=name: self._remove(view.kind, name), args=[])
                with remove:
                    icon("close")
        if not view.value and view.origin != "open":
            text("span", self.heard("nothing"), f"label-chip label-none from-{view.origin}")

    def _origin(self, view: Shown) -> None:
        key = "suggested" if view.by_labeller else view.origin
        told = self.heard(key)
        if view.confidence is not None:
            told = self.heard(f"{key} sure", share=percent(view.confidence))
        text("span", told, f"origin origin-{view.origin}")

    def _chosen(self) -> None:
        if self.screen.current != self.place:
            self.screen.go_to(self.place)

    async def _add(self, kind: str, event: events.GenericEventArguments) -> None:
        await self.screen.save(self, {kind: with_name(self.turn, kind, str(event.args))})

    async def _remove(self, kind: str, name: str) -> None:
        await self.screen.save(self, {kind: without_name(self.turn, kind, name)})

    async def _choose(self, category: str) -> None:
        self._chosen()
        await self.screen.save(self, {"category": category})
