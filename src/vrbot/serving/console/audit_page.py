"""Audit: the chain of events, its verification, replay of drafts; accounts and the kill switch for administrators."""

from __future__ import annotations

from datetime import datetime

from nicegui import ui

from vrbot.serving.actors import ADMINISTER
from vrbot.serving.audit import AuditReport, verify
from vrbot.serving.console.audit_admin import AccountsPanel, SwitchPanel
from vrbot.serving.console.audit_view import Event, Wanted, events, kinds, names, pretty, replay_draft
from vrbot.serving.console.parts import button, card, empty_state, icon, link, text
from vrbot.serving.console.records_frame import choice_box, page_style, text_box
from vrbot.serving.console.shell import Visit, page_frame
from vrbot.serving.console.words import Words, audit

TABS = ("log", "users", "switch")


async def page(visit: Visit) -> None:
    """Builds the page; `?tab=` is the log, the accounts or the kill switch, `?consultation=` filters the log."""
    heard = visit.words(audit.WORDS)
    tabs = TABS if visit.actor.may(ADMINISTER) else TABS[:1]
    wanted = visit.request.query_params.get("tab", "log")
    chosen = wanted if wanted in tabs else "log"
    with page_frame(visit, "audit"):
        page_style(visit)
        with ui.element("div").classes("page-head"), ui.element("div"):
            text("h1", heard("heading"), "page-title")
            text("p", heard("note"), "page-note")
        if len(tabs) > 1:
            with ui.element("nav").classes("tabs") as bar:
                bar.props["aria-label"] = heard("heading")
                for tab in tabs:
                    anchor = link(heard(f"tab {tab}"), f"/audit?tab={tab}", "tab")
                    anchor.props["aria-current"] = "page" if tab == chosen else "false"
        if chosen == "users":
            await AccountsPanel(visit, heard).build()
        elif chosen == "switch":
            SwitchPanel(visit, heard).build()
        else:
            _verification(visit, heard)
            await LogPanel(visit, heard).build()


def _verification(visit: Visit, heard: Words) -> None:
    async def check() -> None:
        start.props["disabled"] = True
        result.clear()
        with result:
            text("span", heard("verifying"), "hint")
        report = await visit.asked(heard, verify, visit.desk.store)
        start.props.pop("disabled", None)
        start.update()
        result.clear()
        if report is not None:
            with result:
                _report(heard, report)

    with card(classes="verify"):
        with ui.element("div").classes("verify-row"):
            start = button(heard("verify"), check, kind="primary", name="verified_user", key="V")
            start.props('data-testid="verify"')
            text("span", heard("verify text"), "hint")
        result = ui.element("div").props('role="status" data-testid="verified"')


def _report(heard: Words, report: AuditReport) -> None:
    with ui.element("div").classes("verdict verdict-good" if report.good else "verdict verdict-bad"):
        icon("gpp_good" if report.good else "gpp_bad")
        text("strong", heard("good" if report.good else "bad"))
        text("span", heard("verified", events=f"{report.events:,}", rows=f"{report.rows:,}"))
        if report.witnessed is None:
            text("span", heard("no witness"))
        else:
            text("span", heard("witnessed", count=f"{report.witnessed:,}"))
            text("span", heard("unwitnessed", count=f"{report.unwitnessed or 0:,}"))
    with ui.element("div").classes("hash-line"):
        text("span", heard("head"), "hint")
        text("code", report.head.hash, "hash")
    if report.faults:
        text("h3", heard("faults"), "label")
        with ui.element("ul").classes("plain-list"):
            for fault in report.faults:
                text("li", f"{fault.place}: {fault.problem}")
    for note in report.notes:
        text("p", f"{note.place}: {note.problem}", "hint")


class LogPanel:
    """The log with its filters."""

    def __init__(self, visit: Visit, heard: Words) -> None:
        self.visit, self.heard = visit, heard
        self.wanted = {"kind": "", "actor": "", "consultation": visit.request.query_params.get("consultation", "")}
        self.names: dict[str, str] = {}

    async def build(self) -> None:
        """Filters and the newest events."""
        store, actor = self.visit.desk.store, self.visit.actor
        self.names = await self.visit.asked(self.heard, names, store, actor) or {}
        known = await self.visit.asked(self.heard, kinds, store, actor) or []
        people = {"": self.heard("any actor"), **dict(sorted(self.names.items(), key=lambda each: each[1]))}
        people |= {key: self._role(key) for key in ("system", "operator")}
        with ui.element("div").classes("filters").props('role="group"') as group:
            group.props["aria-label"] = self.heard("filters")
            options = {"": self.heard("any kind"), **{kind: self._kind(kind) for kind in known}}
            choice_box(self.heard("kind"), options, "", lambda value: self._filter("kind", value))
            choice_box(self.heard("actor"), people, "", lambda value: self._filter("actor", value))
            hint, first = self.heard("consultation hint"), self.wanted["consultation"]
            text_box(self.heard("consultation"), lambda value: self._filter("consultation", value.strip()), hint, first)
        self.list = ui.element("div").classes("events")
        self.more = ui.element("div").classes("more")
        await self._show(None)

    async def _filter(self, name: str, value: str) -> None:
        self.wanted[name] = value
        self.list.clear()
        await self._show(None)

    async def _show(self, before: int | None) -> None:
        store, actor = self.visit.desk.store, self.visit.actor
        answer = await self.visit.asked(self.heard, events, store, actor, Wanted(**self.wanted), before)
        self.more.clear()
        if answer is None:
            return
        found, rest = answer
        with self.list:
            for event in found:
                self._row(event)
            if not found and before is None:
                empty_state("search_off", self.heard("no events"), self.heard("no events text"))
        if rest is not None:
            with self.more:
                button(self.heard("older"), lambda: self._show(rest), name="expand_more")

    def _row(self, event: Event) -> None:
        with ui.element("details").classes("event").props('data-testid="event"') as details:
            with ui.element("summary"):
                text("span", f"#{event.seq}", "event-seq")
                text("span", datetime.fromtimestamp(event.at / 1e6).strftime("%Y-%m-%d %H:%M:%S"), "event-time")
                text("span", self._kind(event.kind), f"badge badge-{_tone(event.kind)}")
                text("span", self.names.get(event.actor, self._role(event.actor)), "event-actor")
                text("span", "" if event.consultation is None else event.consultation[:8], "event-about")
                text("code", event.hash[:12], "hash")
            inside = ui.element("div").classes("event-inside")
        opened = {"filled": False}

        def fill() -> None:
            if not opened["filled"]:
                opened["filled"] = True
                with inside:
                    self._inside(event)

        details.on("toggle", fill, args=[])

    def _inside(self, event: Event) -> None:
        with ui.element("div").classes("hash-line"):
            text("span", self.heard("hash"), "hint")
            text("code", event.hash, "hash")
        text("span", self.heard("body"), "hint")
        text("pre", pretty(event), "command")
        if event.kind == "draft made" and event.draft is not None:
            with ui.element("div").classes("verify-row"):
                answer = None

                async def again() -> None:
                    desk, actor = self.visit.desk, self.visit.actor
                    found = await self.visit.asked(
                        self.heard, replay_draft, desk.store, actor, desk.responder, event.draft
                    )
                    if found is not None and answer is not None:
                        answer.text = self.heard(f"replay {found}")

                button(self.heard("replay"), again, name="replay").props('data-testid="replay"')
                answer = text("span", "", "hint").props('role="status" data-testid="replayed"')

    def _kind(self, kind: str) -> str:
        key = f"event {kind}"
        return self.heard(key) if key in self.heard else kind

    def _role(self, role: str) -> str:
        key = f"role {role}"
        return self.heard(key) if key in self.heard else role


def _tone(kind: str) -> str:
    """The colour of an event: what goes to patients, what is refused or shut, and the rest."""
    if kind in ("draft accepted", "draft edited"):
        return "good"
    return "warn" if kind in ("sign-in refused", "user disabled", "drafts switched off", "draft rejected") else "plain"
