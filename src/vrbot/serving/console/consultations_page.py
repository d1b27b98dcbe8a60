"""The list of consultations: who waits, who is in danger, and a way to open a new one."""

from __future__ import annotations

from nicegui import ui

from vrbot.serving.console.overview import Listed, listed
from vrbot.serving.console.parts import button, card, empty_state, icon, link, since, text
from vrbot.serving.console.shell import Visit, page_frame
from vrbot.serving.console.words import LANGUAGES, consultations
from vrbot.serving.records import Consultation

FILTERS = ("all", "waiting", "answered", "closed")
POLL_SECONDS = 2.0
SNIPPET = 120


async def page(visit: Visit) -> None:
    """Builds the page."""
    with page_frame(visit, "consultations"):
        await ListScreen(visit).build()


class ListScreen:
    """The list on one screen."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.heard = visit, visit.words(consultations.WORDS)
        self.lines: tuple[Listed, ...] = ()
        self.filter = "all"

    async def build(self) -> None:
        """Heading, filter and list; looks for news from then on."""
        self.lines = await self._read()
        with ui.element("div").classes("page-head"):
            with ui.element("div"):
                text("h1", self.heard("heading"), "page-title")
                self.summary = text("p", "", "page-note")
            ui.element("div").classes("grow")
            button(self.heard("new"), self._ask_for_new, kind="primary", name="add", key="N").props(
                'data-testid="new-consultation"'
            )
        self.filters = ui.element("div").classes("segments").props('role="group"')
        self.filters.props["aria-label"] = self.heard("filter")
        self.list = ui.element("div").classes("list")
        self._show()
        ui.timer(POLL_SECONDS, self._look)

    async def _read(self) -> tuple[Listed, ...]:
        return await self.visit.does(listed, self.visit.desk.store, self.visit.actor)

    async def _look(self) -> None:
        lines = await self.visit.asked(self.heard, listed, self.visit.desk.store, self.visit.actor)
        if lines is not None and lines != self.lines:
            self.lines = lines
            self._show()

    def _choose(self, chosen: str) -> None:
        self.filter = chosen
        self._show()

    def _show(self) -> None:
        counts = {name: sum(line.status == name for line in self.lines) for name in FILTERS}
        counts["all"] = len(self.lines)
        self.summary.text = self.heard("summary", waiting=counts["waiting"], all=counts["all"])
        self.filters.clear()
        with self.filters:
            for name in FILTERS:
                chosen = button(self.heard(name), lambda name=name: self._choose(name), kind="segment")
                chosen.props["aria-pressed"] = "true" if name == self.filter else "false"
                with chosen:
                    text("span", str(counts[name]), "count")
        self.list.clear()
        wanted = [line for line in self.lines if self.filter in ("all", line.status)]
        with self.list:
            for line in wanted:
                self._line(line)
            if not self.lines:
                with empty_state("forum", self.heard("none"), self.heard("none text")):
                    button(self.heard("new"), self._ask_for_new, kind="primary", name="add")
            elif not wanted:
                empty_state("inbox", self.heard("none here"), self.heard("none here text"))

    def _line(self, line: Listed) -> None:
        about = line.consultation
        with link("", f"/consultations/{about.id}", f"list-row status-{line.status}") as row:
            row.props["data-testid"] = "consultation"
            with ui.element("div").classes("list-mark"):
                icon("warning" if line.urgent else ICONS[line.status], "mark-urgent" if line.urgent else "")
            with ui.element("div").classes("list-main"):
                text("div", name_of(about, self.heard("unnamed", id=about.id[:6])), "list-title")
                said = self.heard("nothing said") if line.last is None else line.last.text[:SNIPPET]
                text("div", said, "list-text")
            with ui.element("div").classes("list-side"):
                badge = "urgent" if line.urgent else line.status
                text("span", self.heard(badge), f"badge badge-{badge}")
                count = 0 if line.last is None else line.last.seq
                many = self.heard("one turn") if count == 1 else self.heard("turns", count=count)
                ago = since(line.active_at, self.visit.desk.store.clock(), self.heard)
                text("span", f"{self.heard('language ' + about.language)} · {many} · {ago}", "list-note")

    def _ask_for_new(self) -> None:
        chosen = {"language": self.visit.language}
        name = self.visit.desk.store.new_id()  # however often it is sent, the dialog opens one
        with ui.dialog(value=True) as dialog, card(self.heard("dialog title"), classes="dialog"):
            text("div", self.heard("dialog language"), "label")
            ui.toggle(
                {language: self.heard(f"language {language}") for language in LANGUAGES}, value=chosen["language"]
            ).bind_value(chosen, "language").props("unelevated no-caps")
            reference = ui.input(self.heard("reference")).props("outlined maxlength=120").classes("full")
            text("div", self.heard("reference hint"), "hint")
            with ui.element("div").classes("dialog-foot"):
                button(self.heard("cancel"), dialog.close, kind="quiet")
                button(
                    self.heard("open"),
                    lambda: self._open(chosen["language"], reference.value or "", name),
                    kind="primary",
                ).props('data-testid="open-consultation"')
        dialog.on("hide", dialog.delete)

    async def _open(self, language: str, reference: str, name: str) -> None:
        open_one = self.visit.desk.consultations.open
        opened = await self.visit.asked(self.heard, open_one, self.visit.actor, language, reference, name)
        if opened is not None:
            ui.navigate.to(f"/consultations/{opened.id}")


ICONS = {"waiting": "schedule", "answered": "done_all", "closed": "lock", "empty": "chat_bubble_outline"}


def name_of(consultation: Consultation, unnamed: str) -> str:
    """The physician's own mark for a consultation, else a short one made of its id."""
    return consultation.reference.strip() or unnamed
