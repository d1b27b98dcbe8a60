"""The conversation at the desk; words that a reason points to can be lit."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from nicegui import ui

from vrbot.serving.console.desk_view import DeskView, Mark, Piece, Spot, evidence_of, pieces, spot_of
from vrbot.serving.console.parts import empty_state, icon, text
from vrbot.serving.console.words import Words
from vrbot.serving.records import Message, Turn


class ChatColumn:
    """What was said, oldest first; `light` marks the words a chip or a word of the draft came from."""

    def __init__(self, around: ui.element, heard: Words) -> None:
        self._around, self._heard = around, heard
        self._spots: dict[Spot, list[ui.element]] = {}
        self._lit: frozenset[Spot] = frozenset()

    def show(self, view: DeskView) -> None:
        """Builds the column anew."""
        self._around.clear()
        self._spots, self._lit = {}, frozenset()
        answers = {message.turn: message for message in view.case.messages}
        places = _places(view)
        with self._around:
            if not view.case.turns:
                empty_state("chat_bubble_outline", self._heard("silence"), self._heard("silence text"))
            for turn in view.case.turns:
                self._patient(turn, places)
                if turn.id in answers:
                    self._physician(turn, answers[turn.id], places)
                elif turn is not view.turn:
                    text("div", self._heard("no answer"), "chat-gap")

    def light(self, spots: Iterable[Spot]) -> None:
        """Lights these words and no others; the same again puts them out."""
        wanted = frozenset(spots) & frozenset(self._spots)
        for spot in self._lit:
            for element in self._spots[spot]:
                element.classes(remove="lit")
        self._lit = frozenset() if wanted == self._lit else wanted
        for spot in self._lit:
            for element in self._spots[spot]:
                element.classes("lit")
        if self._lit:
            ui.run_javascript(
                'document.querySelector(".chat .lit")?.scrollIntoView({block: "nearest", behavior: "smooth"})'
            )

    def _patient(self, turn: Turn, places: dict[tuple[str, int], list[Mark]]) -> None:
        marks = list(places.get(("patient", turn.seq - 1), ()))
        marks += [
            Mark(found["start"], found["end"], "flag")
            for flag in turn.flags.findings
            for found in flag.get("evidence") or ()
        ]
        with ui.element("div").classes("say say-patient"), ui.element("div").classes("say-body"):
            self._text(pieces(turn.text, marks))
            with ui.element("div").classes("say-note"):
                if turn.urgent:
                    icon("warning", "mark-urgent")
                text(
                    "span",
                    f"{self._heard('patient')} · {self._heard('turn', seq=turn.seq)} · {clock(turn.received_at)}",
                )

    def _physician(self, turn: Turn, message: Message, places: dict[tuple[str, int], list[Mark]]) -> None:
        with ui.element("div").classes("say say-physician"), ui.element("div").classes("say-body"):
            self._text(pieces(message.text, places.get(("physician", turn.seq - 1), ())))
            who = "simulated" if message.simulated else "physician"
            with ui.element("div").classes("say-note"):
                icon("done_all")
                text("span", f"{self._heard(who)} · {self._heard('sent')} · {clock(message.sent_at)}")

    def _text(self, found: list[Piece]) -> None:
        with ui.element("div").classes("say-text"):
            for piece in found:
                element = text("span", piece.text, " ".join(piece.marks))
                for spot in piece.spots:
                    self._spots.setdefault(spot, []).append(element)


def _places(view: DeskView) -> dict[tuple[str, int], list[Mark]]:
    """The words of the conversation any reason points to, by speaker and turn."""
    evidence = evidence_of(view.reply)
    told = [mention["place"] for each in evidence.get("state") or () for mention in each["mentions"]]
    told += [copy["place"] for word in evidence.get("words") or () for copy in word["copies"] if copy.get("place")]
    found: dict[tuple[str, int], list[Mark]] = {}
    for spot in dict.fromkeys(map(spot_of, told)):
        speaker, turn, start, end = spot
        found.setdefault((speaker, turn), []).append(Mark(start, end, "spot", spot))
    return found


def clock(at: int) -> str:
    """The time of day of a moment in microseconds."""
    return datetime.fromtimestamp(at / 1_000_000).strftime("%H:%M")
