"""Annotation: dialogues in the order of active learning, the model's proposals, and people's corrections of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nicegui import ui

from vrbot.dialogue.session import CATEGORIES
from vrbot.serving.annotation import Unlabelled
from vrbot.serving.console.annotation_import import ask_for_file, download_labels
from vrbot.serving.console.annotation_suggest import can_suggest, suggest
from vrbot.serving.console.annotation_turn import TurnCard
from vrbot.serving.console.annotation_view import confirmed, is_done, next_open, number_seen
from vrbot.serving.console.parts import button, empty_state, icon, percent, text
from vrbot.serving.console.records_frame import page_style
from vrbot.serving.console.shell import Visit, page_frame
from vrbot.serving.console.words import annotation


async def page(visit: Visit) -> None:
    """Builds the page; `?dialogue=` and `&turn=` say where a reload goes on."""
    with page_frame(visit, "annotation", wide=True):
        page_style(visit)
        await AnnotationScreen(visit).build()


class AnnotationScreen:
    """The page on one screen: a queue on the left, one dialogue on the right, keys below."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.heard = visit, visit.words(annotation.WORDS)
        self.queue: list[Unlabelled] = []
        self.dialogue: str | None = visit.request.query_params.get("dialogue")
        self.numbers: dict[str, int] = {}
        self.cards: list[TurnCard] = []
        self.current = 0

    async def build(self) -> None:
        """Heading, queue, dialogue, bar of keys."""
        await self._read_queue()
        with ui.element("div").classes("page-head"):
            with ui.element("div"):
                text("h1", self.heard("heading"), "page-title")
                text("p", self.heard("note"), "page-note")
            ui.element("div").classes("grow")
            with ui.element("div").classes("save-mark").props('role="status" data-testid="autosave"'):
                self.mark_icon = icon("cloud_done")
                self.mark = text("span", self.heard("autosave idle"))
            if can_suggest(self.visit.desk) and self.queue:
                propose = button(self.heard("suggest"), lambda: suggest(self), name="auto_awesome", key="P")
                propose.props('data-testid="suggest"')
                propose.props["title"] = self.heard("suggest title")
            button(self.heard("import"), lambda: ask_for_file(self), name="upload").props('data-testid="import"')
            button(self.heard("export"), lambda: download_labels(self), name="download").props('data-testid="export"')
        if not self.queue:
            empty_state("label_off", self.heard("none"), self.heard("none text"))
            return
        with ui.element("div").classes("workbench"):
            self.list = ui.element("nav").classes("queue")
            self.list.props["aria-label"] = self.heard("queue")
            self.place = ui.element("div").classes("dialogue")
        self._bar()
        wanted = self.visit.request.query_params.get("turn", "")
        await self.open(self.dialogue if self.dialogue in self.numbers else self.queue[0].consultation.id, wanted)

    async def _read_queue(self) -> None:
        """The order is that of the moment the page was opened: nothing jumps about while one works."""
        desk = self.visit.desk
        found = await self.visit.asked(self.heard, desk.annotation.to_label, self.visit.actor, demo=desk.demo) or []
        for each in found:
            self.numbers.setdefault(each.consultation.id, len(self.numbers) + 1)
        self.queue = sorted(found, key=lambda each: self.numbers[each.consultation.id])

    async def open(self, dialogue: str, turn: str = "") -> None:
        """Shows a dialogue, at the turn of this number, else at the first that is not done."""
        self.dialogue = dialogue
        desk = self.visit.desk
        turns = await self.visit.asked(self.heard, desk.annotation.labelled_turns, self.visit.actor, dialogue)
        self._show_queue()
        self.place.clear()
        with self.place:
            if not turns:
                empty_state("visibility_off", self.heard("cannot show"))
                self.cards = []
                return
            self.cards = [TurnCard(self, place, each) for place, each in enumerate(turns)]
        first = next((place for place, each in enumerate(turns) if not is_done(each)), 0)
        wanted = next((place for place, each in enumerate(turns) if str(each.seq) == turn), first)
        self.go_to(wanted, scroll=wanted > 0)

    async def reload(self, turn: str = "") -> None:
        """Shows everything as the store has it now, at the turn of this number if one is given."""
        if not self.queue or self.dialogue is None:
            ui.navigate.reload()
            return
        await self._read_queue()
        await self.open(self.dialogue, turn)

    def go_to(self, place: int, *, scroll: bool = True) -> None:
        """Makes a turn the one the keys work on."""
        if not self.cards:
            return
        self.current = max(0, min(place, len(self.cards) - 1))
        for card in self.cards:
            card.mark(card.place == self.current)
        card = self.cards[self.current]
        ui.navigate.history.replace(f"/annotation?dialogue={self.dialogue}&turn={card.turn.seq}")
        if scroll:
            ui.run_javascript(f"document.getElementById('{card.html_id}')?.scrollIntoView({{block: 'nearest'}})")

    async def save(self, card: TurnCard, values: dict[str, Any]) -> bool:
        """Stores labels of a turn, one by one, in place of those on the card, and shows the turn as the store has it.

        Where somebody else has given one since, theirs stays and is shown.
        """
        self._mark("sync", "autosave busy")
        desk, actor = self.visit.desk, self.visit.actor
        good = True
        for kind, value in values.items():
            label, seen = desk.annotation.label, number_seen(card.turn, kind)
            given = await self.visit.asked(self.heard, label, actor, card.turn.id, kind, value, seen)
            good = good and given is not None
        turns = await self.visit.asked(self.heard, desk.annotation.labelled_turns, actor, self.dialogue) or ()
        for each in turns:
            if each.id == card.turn.id:
                card.show(each)
        now = datetime.fromtimestamp(desk.store.clock() / 1e6).strftime("%H:%M:%S")
        self._mark("cloud_done" if good else "cloud_off", "autosave done" if good else "autosave failed", now)
        await self._read_queue()
        self._show_queue()
        return good

    def _mark(self, name: str, key: str, time: str = "") -> None:
        self.mark_icon.text = name
        self.mark.text = self.heard(key, time=time) if time else self.heard(key)

    def _show_queue(self) -> None:
        self.list.clear()
        done = sum(each.given >= each.wanted for each in self.queue)
        with self.list:
            text("div", self.heard("summary", done=done, all=len(self.queue)), "queue-head")
            for each in self.queue:
                self._queue_row(each)

    def _queue_row(self, each: Unlabelled) -> None:
        key, finished = each.consultation.id, each.given >= each.wanted
        row = ui.element("button").classes("queue-row").props('type="button" data-testid="queue-row"')
        row.on("click", lambda key=key: self.open(key), args=[])
        row.props["aria-current"] = "true" if key == self.dialogue else "false"
        with row:
            with ui.element("div").classes("queue-title"):
                icon("check_circle" if finished else "radio_button_unchecked", "mark-done" if finished else "mark-open")
                text("span", self.heard("dialogue", number=self.numbers[key]))
            many = self.heard("one turn") if each.num_turns == 1 else self.heard("turns", count=each.num_turns)
            text("div", f"{self.heard('language ' + each.consultation.language)} · {many}", "queue-note")
            sure = "" if each.confidence is None else self.heard("sure", share=percent(each.confidence))
            given = self.heard("labels given", given=each.given, wanted=each.wanted)
            text("div", self.heard("done") if finished else f"{given} · {sure}" if sure else given, "queue-note")
            with ui.element("div").classes("meter").props("aria-hidden=true"):
                ui.element("div").classes("meter-fill").style(f"width: {100 * each.given / max(each.wanted, 1):.0f}%")

    def _bar(self) -> None:
        """The keys, each as a button: what they do is always in sight, and works without a keyboard."""
        with ui.element("div").classes("keybar").props('role="toolbar"') as bar:
            bar.props["aria-label"] = self.heard("shortcuts")
            button(self.heard("confirm"), self._confirm, kind="primary", name="done", key="A")
            for number, category in enumerate(CATEGORIES, start=1):
                choose = button(self.heard(category), lambda name=category: self._category(name), key=str(number))
                choose.classes("keybar-option")
            button(self.heard("to state"), lambda: self._focus("state"), key="S")
            button(self.heard("to keywords"), lambda: self._focus("keywords"), key="D")
            ui.element("div").classes("grow")
            button(self.heard("last turn"), lambda: self.go_to(self.current - 1), kind="quiet", key="K")
            button(self.heard("next turn"), lambda: self.go_to(self.current + 1), kind="quiet", key="J")
            button(self.heard("next dialogue"), self._next_dialogue, kind="quiet", name="arrow_forward", key="N")

    async def _confirm(self) -> None:
        if not self.cards:
            return
        card = self.cards[self.current]
        values = confirmed(card.turn)
        if values is None:
            ui.notify(self.heard("choose category"), type="info", position="top")
        elif await self.save(card, values):
            if self.current + 1 < len(self.cards):
                self.go_to(self.current + 1)
            elif all(is_done(each.turn) for each in self.cards):
                await self._next_dialogue()

    async def _category(self, category: str) -> None:
        if self.cards and self.cards[self.current].turn.physician:
            await self.save(self.cards[self.current], {"category": category})

    def _focus(self, kind: str) -> None:
        if self.cards:
            ui.run_javascript(f"document.getElementById('{self.cards[self.current].html_id}-{kind}')?.focus()")

    async def _next_dialogue(self) -> None:
        key = next_open(self.queue, self.dialogue)
        if key is None:
            ui.notify(self.heard("all done"), type="positive", position="top")
        else:
            await self.open(key)
