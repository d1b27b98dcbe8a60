"""Why the draft says what it says: state, action, keywords, and the paths between them; all can be changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from nicegui import ui

from vrbot.dialogue.session import CATEGORIES
from vrbot.serving.console.desk_actions import DeskActions
from vrbot.serving.console.desk_view import Chip, DeskView, Spot, action_of, evidence_of, keyword_chips, state_chips
from vrbot.serving.console.parts import button, card, empty_state, icon, icon_button, percent, text
from vrbot.serving.console.path_picture import entity_types, picture, picture_height, shown_paths, weight_text
from vrbot.serving.console.words import Words
from vrbot.serving.console.words.desk import RELATIONS

MOST_FOUND = 8
Light = Callable[[Sequence[Spot]], None]


class WhyColumn:
    """The reasons of the draft shown, paths `below` it; `names` are what a change may use (none known: anything)."""

    def __init__(
        self, around: ui.element, below: ui.element, actions: DeskActions, light: Light, names: Sequence[str]
    ) -> None:
        self._around, self._below = around, below
        self._actions, self._light, self._names = actions, light, names
        self._heard: Words = actions.heard
        self._keyword: str | None = None

    def show(self, view: DeskView) -> None:
        """Builds the column anew."""
        self._around.clear()
        self._below.clear()
        self._keyword = None
        reply = view.reply
        with self._around:
            if not reply:
                with card():
                    own = view.current is not None and view.current.origin == "physician"
                    key = "why own" if own else "why none"
                    empty_state("edit_note" if own else "account_tree", self._heard(key), self._heard(f"{key} text"))
                return
            editable = view.current is not None and not view.closed
            given = set((view.current.change or {}) if view.current is not None else ())
            if reply.get("state") is not None:
                self._state(state_chips(reply), editable, "state" in given)
            if reply.get("categories") is not None:
                self._action(reply, editable, given)
            if not reply.get("state") and not reply.get("categories"):
                text("p", self._heard("why plain"), "hint")
        with self._below:
            self._paths(reply)

    def _state(self, chips: list[Chip], editable: bool, given: bool) -> None:
        note = self._heard("given") if given else self._heard("state note")
        around = card(self._heard("state"), note=note, classes="card-given" if given else "")
        with around, ui.element("div").classes("chips").props('data-testid="state"'):
            if not chips:
                text("span", self._heard("state none"), "hint")
            for chip in chips:
                self._state_chip(chip, editable)
            if editable:
                self._adder(self._heard("add state"), self._add_state)

    def _state_chip(self, chip: Chip, editable: bool) -> None:
        with ui.element("span").classes(f"chip chip-{chip.status}") as made:
            made.props["data-chip"] = chip.name
            name = ui.element("button").classes("chip-name").props('type="button"')
            name.props["title"] = self._heard("light", name=chip.name)
            name.on("click", lambda: self._light(chip.spots), args=[])
            with name:
                ui.element("span").classes(f"kind kind-{chip.type}")
                text("span", chip.name, "chip-text")
                text("span", self._heard(chip.status), "chip-status")
            if editable and chip.status != "dropped":
                icon_button("close", self._heard("remove", name=chip.name), lambda: self._drop_state(chip.name))

    async def _drop_state(self, name: str) -> None:
        await self._actions.change("state", [each for each in self._actions.state_names() if each != name])

    async def _add_state(self, name: str) -> None:
        await self._actions.change("state", list(dict.fromkeys([*self._actions.state_names(), name])))

    def _action(self, reply: Any, editable: bool, given: set[str]) -> None:
        chosen, _ = action_of(reply)
        note = self._heard("given") if given & {"category", "keywords"} else self._heard("action note")
        with card(self._heard("action"), note=note, classes="card-given" if given & {"category", "keywords"} else ""):
            with ui.element("div").classes("bars").props('data-testid="categories"'):
                for category in CATEGORIES:
                    self._bar(category, float(reply["categories"].get(category) or 0.0), category == chosen, editable)
            split = keyword_chips(reply)
            with ui.element("div").classes("keyword-split"):
                for key, chips in (("from conversation", split.conversation), ("from graph", split.graph)):
                    with ui.element("div").classes("keyword-side"):
                        text("h3", self._heard(key), f"side-title side-{key.split()[-1]}")
                        with ui.element("div").classes("chips"):
                            for chip in chips:
                                self._keyword_chip(chip, editable, key)
                            if not chips:
                                text("span", self._heard("keywords none"), "hint")
            if editable:
                self._adder(self._heard("add keyword"), self._add_keyword)

    def _bar(self, category: str, share: float, chosen: bool, editable: bool) -> None:
        bar = ui.element("button").classes("bar bar-chosen" if chosen else "bar").props('type="button"')
        bar.props["data-category"] = category
        bar.props["aria-pressed"] = "true" if chosen else "false"
        if editable and not chosen:
            bar.on("click", lambda: self._actions.change("category", category), args=[])
        else:
            bar.props["aria-disabled"] = "true"
        with bar:
            text("span", self._heard(category), "bar-name")
            with ui.element("span").classes("bar-track"):
                ui.element("span").classes("bar-fill").style(f"width: {share * 100:.1f}%")
            text("span", percent(share), "bar-share")

    def _keyword_chip(self, chip: Chip, editable: bool, side: str) -> None:
        with ui.element("span").classes(f"chip chip-keyword chip-{side.split()[-1]}") as made:
            made.props["data-keyword"] = chip.name
            name = ui.element("button").classes("chip-name").props('type="button"')
            usual = self._heard("usually after", words=chip.note) if chip.note else ""
            name.props["title"] = "\n".join(filter(None, (self._heard("paths of", name=chip.name), usual)))
            name.on("click", lambda: self._choose(chip.name), args=[])
            with name:
                ui.element("span").classes(f"kind kind-{chip.type}")
                text("span", chip.name, "chip-text")
                if chip.share is not None:
                    text("span", percent(chip.share), "chip-status")
            if editable:
                icon_button("close", self._heard("remove", name=chip.name), lambda: self._drop_keyword(chip.name))

    async def _drop_keyword(self, name: str) -> None:
        await self._actions.change("keywords", [each for each in self._actions.keyword_names() if each != name])

    async def _add_keyword(self, name: str) -> None:
        await self._actions.change("keywords", list(dict.fromkeys([*self._actions.keyword_names(), name])))

    def _adder(self, label: str, add: Callable[[str], Awaitable[None]]) -> None:
        """A button that opens a box in which a term of the graph is found and taken."""
        with button(label, kind="add", name="add"):
            menu = ui.menu().props("no-focus")
        with menu, ui.element("div").classes("finder"):
            box = ui.input(placeholder=self._heard("find")).props("dense outlined autofocus debounce=120")
            found = ui.element("div").classes("finder-list")
            nothing = text("span", self._heard("find none"), "hint")
        nothing.set_visibility(False)
        shown: dict[str, ui.element] = {}

        async def take(name: str) -> None:
            menu.close()
            box.set_value("")
            await add(name)

        def look() -> None:
            """Shows what matches now; a name that still matches keeps its button, so that no click is lost."""
            names = self._matching(str(box.value or "").strip())
            for name in [name for name in shown if name not in names]:
                shown.pop(name).delete()
            for place, name in enumerate(names):
                if name not in shown:
                    with found:
                        shown[name] = button(name, lambda name=name: take(name), kind="option")
                shown[name].move(target_index=place)
            nothing.set_visibility(not names)

        box.on_value_change(look)
        box.on("keydown.enter", lambda: (names := self._matching(str(box.value or "").strip())) and take(names[0]))
        menu.on("show", look, args=[])

    def _matching(self, wanted: str) -> list[str]:
        if not self._names:
            return [wanted] if wanted else []
        folded = wanted.casefold()
        starts = [name for name in self._names if name.casefold().startswith(folded)]
        inside = [name for name in self._names if folded in name.casefold() and name not in set(starts)]
        return (starts + inside)[:MOST_FOUND]

    def _paths(self, reply: Any) -> None:
        if evidence_of(reply).get("keywords") is None:
            return
        with card(self._heard("paths"), note=self._heard("paths note"), classes="card-paths"):
            self._picture = ui.element("div").classes("full").props('data-testid="paths"')
        self._reply = reply
        self._draw()

    def _choose(self, keyword: str) -> None:
        self._keyword = None if self._keyword == keyword else keyword
        if evidence_of(getattr(self, "_reply", {})):
            self._draw()

    def _draw(self) -> None:
        """The paths of the keyword chosen, or of all; as a picture, and as lines for whoever cannot see one."""
        paths = shown_paths(self._reply, self._keyword)
        relations = RELATIONS[self._heard.language]
        self._picture.clear()
        with self._picture:
            if not paths:
                text("p", self._heard("paths none"), "hint")
                return
            chart = ui.echart(picture(paths, entity_types(self._reply), relations), renderer="svg")
            chart.classes("path-picture").style(f"height: {picture_height(paths)}px").props("aria-hidden=true")
            with ui.element("ul").classes("path-list"):
                for path in paths:
                    with ui.element("li"):
                        for number, entity in enumerate(path.entities):
                            if number:
                                text(
                                    "span",
                                    relations.get(path.relations[number - 1], path.relations[number - 1]),
                                    "relation",
                                )
                                icon("arrow_forward", "relation-arrow")
                            text("span", entity, "path-entity")
                        text("span", self._heard("weight", weight=weight_text(path.weight)), "path-weight")
                        text("span", self._heard("without", effect=f"{-path.effect:+.1%}"), "path-weight")
