"""The patient's side: a plain chat that shows the patient's own words and approved replies, and nothing else."""

from __future__ import annotations

from asyncio import to_thread
from collections import deque
from datetime import datetime

from fastapi import Request
from nicegui import ui

from vrbot.errors import VRBotError
from vrbot.serving.actors import Actor
from vrbot.serving.console.composing import Composer, composer
from vrbot.serving.console.drafts import begin_draft
from vrbot.serving.console.overview import stamp
from vrbot.serving.console.parts import empty_state, icon, text
from vrbot.serving.console.shell import Console, page_basics
from vrbot.serving.console.words import LANGUAGES, Words, patient, words
from vrbot.serving.patient_links import consultation_of
from vrbot.serving.queries import row_of, turns_of
from vrbot.serving.records import Consultation, PatientLine
from vrbot.serving.schema import consultations
from vrbot.serving.service import Desk
from vrbot.serving.texts import LONGEST_OF_PATIENT

POLL_SECONDS = 1.0
MOST_PER_MINUTE = 20
MINUTE = 60_000_000


def register(console: Console) -> None:
    """Puts the page where signed links lead."""

    @ui.page("/patient/{token}", response_timeout=30.0)
    async def page(request: Request, token: str) -> None:
        key = consultation_of(console.settings.secret, token)
        found = None if key is None else await to_thread(_consultation, console.desk, key)
        asked_for = request.query_params.get("language", "")
        language = asked_for if asked_for in LANGUAGES else "zh" if found is None else found.language
        heard = words(language, patient.WORDS)
        page_basics(request, language, heard("title"), console.version)
        if found is None:
            with ui.element("main").classes("patient"):
                empty_state("link_off", heard("gone"), heard("gone text"))
        else:
            await PatientScreen(console, found, heard).build()


def _consultation(desk: Desk, key: str) -> Consultation | None:
    try:
        with desk.store.reading() as connection:
            return Consultation.of(row_of(connection, consultations, key))
    except VRBotError:
        return None


class PatientScreen:
    """One patient's screen; drafts for what is said there are the physician's whose consultation it is."""

    def __init__(self, console: Console, consultation: Consultation, heard: Words) -> None:
        self.console, self.consultation, self.heard = console, consultation, heard
        self.owner = Actor(consultation.owner, "physician")
        self.stamp = -1
        self.sent: deque[int] = deque(maxlen=MOST_PER_MINUTE)

    async def build(self) -> None:
        """The chat and the box below it; looks for news from then on."""
        with ui.element("main").classes("patient"):
            with ui.element("header").classes("patient-head"):
                ui.element("span").classes("brand-mark")
                with ui.element("div"):
                    text("h1", self.heard("title"), "patient-title")
                    text("p", self.heard("subtitle"), "patient-note")
            self.lines = ui.element("div").classes("patient-lines").props('data-follow role="log" aria-live="polite"')
            self.foot = ui.element("footer").classes("patient-foot")
        await self._look()
        with self.foot:
            if self.consultation.closed_at is None:
                self._box()
            text("p", self.heard("emergency"), "patient-legal")
        ui.timer(POLL_SECONDS, self._look)

    def _box(self) -> None:
        about = Composer(
            name="patient",
            keep=f"patient:{self.consultation.id}",
            label=self.heard("write"),
            send=self.heard("send"),
            placeholder=self.heard("write"),
            hint=self.heard("enter sends"),
        )
        composer(about, self._send)

    async def _send(self, said: str, name: str) -> bool:
        now = self.console.desk.store.clock()
        if len(said) > LONGEST_OF_PATIENT:
            return self._refuse("too long")
        if len(self.sent) == MOST_PER_MINUTE and now - self.sent[0] < MINUTE:
            return self._refuse("too many")
        self.sent.append(now)
        receive = self.console.desk.consultations.receive_from_patient
        try:
            turn = await to_thread(receive, self.consultation.id, name, said)
        except VRBotError:
            return self._refuse("unsent")
        begin_draft(self.console, self.owner, turn.id)
        await self._look()
        return True

    def _refuse(self, key: str) -> bool:
        ui.notify(self.heard(key), type="warning", position="top")
        return False

    async def _look(self) -> None:
        try:
            newest = await to_thread(stamp, self.console.desk.store, self.consultation.id)
            if newest == self.stamp:
                return
            lines = await to_thread(self.console.desk.patient_view, self.consultation.id)
            flagged = await to_thread(_danger, self.console.desk, self.consultation.id)
            found = await to_thread(_consultation, self.console.desk, self.consultation.id)
        except VRBotError:
            return  # shown again as soon as it can be read
        self.stamp = newest
        if found is not None:
            self.consultation = found
        self._show(lines, flagged)

    def _show(self, lines: tuple[PatientLine, ...], flagged: frozenset[int]) -> None:
        self.lines.clear()
        with self.lines:
            if not lines:
                empty_state("waving_hand", self.heard("hello"), self.heard("hello text"))
            for line in lines:
                self._line(line)
                if line.author == "patient" and line.seq in flagged:
                    with ui.element("div").classes("notice notice-stop").props('role="alert"'):
                        icon("emergency")
                        text("span", self.heard("danger"))
            if self.consultation.closed_at is not None:
                with ui.element("div").classes("notice notice-info"):
                    text("span", f"{self.heard('closed')} {self.heard('closed text')}")
                self.foot.set_visibility(False)
            elif lines and lines[-1].author == "patient":
                with ui.element("div").classes("patient-waiting"):
                    for _ in range(3):
                        ui.element("span").classes("bounce")
                    text("span", self.heard("waiting"))

    def _line(self, line: PatientLine) -> None:
        who = "you" if line.author == "patient" else "physician"
        with ui.element("div").classes(f"say say-{who}") as said:
            said.props["data-testid"] = f"line-{who}"
            if who == "physician":
                with ui.element("span").classes("say-face"):
                    icon("medical_services")
            with ui.element("div").classes("say-body"):
                text("div", line.text, "say-text")
                at = datetime.fromtimestamp(line.at / 1_000_000).strftime("%H:%M")
                text("div", f"{self.heard(who)} · {at}", "say-note")
                if line.medicine_suggestion:
                    with ui.element("div").classes("say-medicine"):
                        icon("info")
                        text("span", self.heard("medicine"))


def _danger(desk: Desk, consultation: str) -> frozenset[int]:
    """The turns in which a patient said what cannot wait."""
    with desk.store.reading() as connection:
        return frozenset(turn.seq for turn in turns_of(connection, consultation) if turn.flags.stops)
