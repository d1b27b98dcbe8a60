"""What administrators do: accounts, and the kill switch for drafts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from nicegui import ui

from vrbot.serving.accounts import User
from vrbot.serving.actors import ROLES
from vrbot.serving.console.audit_view import throw_switch
from vrbot.serving.console.material import material_of
from vrbot.serving.console.parts import button, card, empty_state, icon, text
from vrbot.serving.console.shell import Visit
from vrbot.serving.console.words import Words


class AccountsPanel:
    """Who may sign in."""

    def __init__(self, visit: Visit, heard: Words) -> None:
        self.visit, self.heard = visit, heard

    async def build(self) -> None:
        """The list, and a way to add to it."""
        with ui.element("div").classes("panel-head"):
            ui.element("div").classes("grow")
            add = button(self.heard("add user"), self._ask_for_user, kind="primary", name="person_add", key="N")
            add.props('data-testid="add-user"')
        self.list = ui.element("div").classes("card")
        await self._show()

    async def _show(self) -> None:
        found = await self.visit.asked(self.heard, self.visit.desk.accounts.everyone, self.visit.actor)
        self.list.clear()
        with self.list:
            if not found:
                empty_state("group", self.heard("no users"), self.heard("no users text"))
                return
            with ui.element("div").classes("table-scroll"), ui.element("table").classes("table users"):
                with ui.element("thead"), ui.element("tr"):
                    for key in ("user name", "user role", "user state", "user since"):
                        text("th", self.heard(key)).props("scope=col")
                    ui.element("th")
                with ui.element("tbody"):
                    for user in found:
                        self._row(user)

    def _row(self, user: User) -> None:
        with ui.element("tr").props('data-testid="user"'):
            own = user.id == self.visit.actor.id
            text("th", f"{user.name} ({self.heard('yourself')})" if own else user.name).props("scope=row")
            text("td", self.heard(f"role {user.role}"))
            with ui.element("td"):
                key = "user disabled" if user.disabled else "user active"
                text("span", self.heard(key), "badge badge-warn" if user.disabled else "badge badge-good")
            text("td", datetime.fromtimestamp(user.made_at / 1e6).strftime("%Y-%m-%d"))
            with ui.element("td").classes("row-actions"):
                button(self.heard("set password"), lambda: self._ask_for_password(user), kind="quiet")
                if not own:  # nobody locks themselves out
                    shut = self.heard("enable" if user.disabled else "disable")
                    button(shut, lambda: self._disable(user), kind="quiet" if user.disabled else "danger")

    async def _disable(self, user: User) -> None:
        accounts, actor = self.visit.desk.accounts, self.visit.actor
        await self.visit.asked(self.heard, accounts.set_disabled, actor, user.name, not user.disabled)
        await self._show()

    def _ask_for_user(self) -> None:
        with ui.dialog(value=True) as dialog, card(self.heard("add user title"), classes="dialog"):
            name = _box(self.heard("user name"), self.heard("name hint"))
            text("div", self.heard("user role"), "label")
            role = ui.toggle({role: self.heard(f"role {role}") for role in ROLES}, value=ROLES[0])
            role.props("unelevated no-caps")
            password = _box(self.heard("password"), self.heard("password hint"), secret=True)

            async def add() -> None:
                values = (name.value or "").strip(), password.value or "", role.value
                added = await self.visit.asked(self.heard, self.visit.desk.accounts.add, self.visit.actor, *values)
                if added is not None:
                    dialog.close()
                    ui.notify(self.heard("user added", name=added.name), type="positive", position="top")
                    await self._show()

            _foot(self.heard, dialog, self.heard("add user"), add)

    def _ask_for_password(self, user: User) -> None:
        with ui.dialog(value=True) as dialog, card(self.heard("set password title", name=user.name), classes="dialog"):
            password = _box(self.heard("password"), self.heard("password hint"), secret=True)

            async def change() -> None:
                accounts, actor = self.visit.desk.accounts, self.visit.actor
                changed = await self.visit.asked(
                    self.heard, accounts.set_password, actor, user.name, password.value or ""
                )
                if changed is not None:
                    dialog.close()
                    ui.notify(self.heard("password set", name=user.name), type="positive", position="top")

            _foot(self.heard, dialog, self.heard("save"), change)


class SwitchPanel:
    """The kill switch: one look says whether drafts are made, one button and a reason change it."""

    def __init__(self, visit: Visit, heard: Words) -> None:
        self.visit, self.heard, self.switch = visit, heard, material_of(visit.console.settings).switch

    def build(self) -> None:
        """The state of the switch."""
        self.place = ui.element("div")
        self._show()

    def _show(self) -> None:
        self.place.clear()
        with self.place:
            if self.switch is None:
                empty_state("toggle_off", self.heard("no switch"), self.heard("no switch text"))
                return
            state = self.switch.state()
            word = "on" if state.on else "off"
            with card(classes=f"switch switch-{word}").props('data-testid="switch"'):
                with ui.element("div").classes("verdict verdict-bad" if state.on else "verdict verdict-good"):
                    icon("front_hand" if state.on else "edit_note")
                    text("strong", self.heard(f"switch {word} title"))
                text("p", self.heard(f"switch {word} text"))
                if state.reason:
                    text("p", f"{self.heard('reason')}: {state.reason}", "prose")
                if state.who:
                    text("p", self.heard("switch by", who=state.who, when=state.when[:19].replace("T", " ")), "hint")
                reason = _box(self.heard("reason"), self.heard("reason hint"))
                reason.props('data-testid="reason"')
                label = self.heard("allow drafts" if state.on else "stop drafts")
                kind, name = ("primary", "play_arrow") if state.on else ("danger", "front_hand")
                throw = button(label, lambda: self._throw(not state.on, reason.value or ""), kind=kind, name=name)
                throw.props('data-testid="throw"')

    async def _throw(self, on: bool, reason: str) -> None:
        if not reason.strip():
            ui.notify(self.heard("reason needed"), type="info", position="top")
            return
        store, actor = self.visit.desk.store, self.visit.actor
        if await self.visit.asked(self.heard, throw_switch, store, self.switch, actor, on, reason) is not None:
            self._show()


def _box(label: str, hint: str, *, secret: bool = False) -> ui.input:
    made = ui.input(label, password=secret).props("outlined dense maxlength=300").classes("full")
    made.props["hint"] = hint
    if secret:
        made.props["autocomplete"] = "new-password"
    return made


def _foot(heard: Words, dialog: ui.dialog, label: str, action: Callable[..., object]) -> None:
    with ui.element("div").classes("dialog-foot"):
        button(heard("cancel"), dialog.close, kind="quiet")
        button(label, action, kind="primary").props('data-testid="submit"')
    dialog.on("hide", dialog.delete)
