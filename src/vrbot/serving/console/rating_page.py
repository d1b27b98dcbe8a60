"""Blind human evaluation: one screen at a time, in the rater's own order, saved answer by answer."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from nicegui import run, ui
from nicegui.elements.mixins.text_element import TextElement

from vrbot.errors import VRBotError
from vrbot.evaluation.human_criteria import CRITERIA, CRITERION_KEYS
from vrbot.evaluation.human_ratings import EXPLAINED, PREFERRED
from vrbot.serving.actors import EXPORT
from vrbot.serving.console.material import material_of
from vrbot.serving.console.parts import button, card, empty_state, icon, percent, text
from vrbot.serving.console.rating_cards import RatingCards, name_of_question
from vrbot.serving.console.rating_steps import OpenStudy, Question, Rater, open_study, raw_answers
from vrbot.serving.console.records_frame import command, page_style, plain_table
from vrbot.serving.console.shell import Visit, page_frame
from vrbot.serving.console.words import Words, rating

if TYPE_CHECKING:
    from vrbot.evaluation.human_agreement import Agreement

AGREEMENT_SECONDS = 4.0
DRAW = "vrbot humaneval draw A.jsonl B.jsonl --out study\nvrbot serve MODEL --study study"


async def page(visit: Visit) -> None:
    """Builds the page; `?screen=` says where a reload goes on."""
    heard = visit.words(rating.WORDS)
    with page_frame(visit, "evaluation", wide=True):
        page_style(visit)
        place = material_of(visit.console.settings).study
        if place is None:
            with empty_state("rate_review", heard("no study"), heard("no study text")):
                command(DRAW)
            return
        try:
            study = await run.io_bound(open_study, place)
        except VRBotError as error:
            empty_state("error_outline", heard("broken study"), str(error))
            return
        if study is not None:
            await Evaluation(visit, heard, study).build()


class Evaluation:
    """The page: an invitation for who has no place among the raters yet, else the screens; agreement below."""

    def __init__(self, visit: Visit, heard: Words, study: OpenStudy) -> None:
        self.visit, self.heard, self.study = visit, heard, study
        self.shown_agreement: tuple[Agreement, ...] | None = None

    async def build(self) -> None:
        """Heading, work, agreement."""
        with ui.element("div").classes("page-head"):
            with ui.element("div"):
                text("h1", self.heard("heading"), "page-title")
                text("p", self.heard("note"), "page-note")
            ui.element("div").classes("grow")
            with ui.element("div").classes("save-mark").props('role="status" data-testid="autosave"'):
                icon("cloud_done")
                self.mark = text("span", self.heard("autosave idle"))
            if self.visit.actor.may(EXPORT):
                export = button(self.heard("export"), self._export, name="download").props('data-testid="export"')
                export.props["title"] = self.heard("export title")
        self.work = ui.element("div")
        ratings, actor = self.visit.desk.ratings, self.visit.actor
        seats = await self.visit.asked(self.heard, ratings.seats, actor, self.study.campaign) or {}
        if actor.id in seats:
            await self._begin()
        else:
            self._invite(len(self.study.raters) - len(seats))
        with card(self.heard("agreement"), note=self.heard("agreement note"), classes="agreement"):
            self.kappas = ui.element("div").props('data-testid="agreement"')
        ui.timer(AGREEMENT_SECONDS, self._look)

    def _invite(self, free: int) -> None:
        with self.work:
            if free < 1:
                empty_state("event_busy", self.heard("seats gone"), self.heard("seats gone text"))
                return
            with empty_state("rate_review", self.heard("welcome"), self.heard("welcome text")):
                with ui.element("ul").classes("guide"):
                    for each in CRITERIA:
                        asked_for = each.question.zh if self.visit.language == "zh" else each.question.en
                        with ui.element("li"):
                            text("strong", f"{self.heard(each.key)} · ")
                            text("span", asked_for)
                button(self.heard("begin"), self._begin, kind="primary", name="play_arrow", key="Enter").props(
                    'data-testid="begin"'
                )
                text("div", self.heard("places", free=free, all=len(self.study.raters)), "hint")

    async def _begin(self) -> None:
        rater = await self.visit.asked(self.heard, Rater, self.visit.desk.ratings, self.visit.actor, self.study)
        if rater is not None:
            self.work.clear()
            with self.work:
                RatingScreen(self.visit, self.heard, rater, self.mark).build()

    async def _look(self) -> None:
        found = await self.visit.asked(self.heard, self._agreement)
        if found is None or found == self.shown_agreement:
            return
        self.shown_agreement = found
        self.kappas.clear()
        with self.kappas:
            if not found:
                text("p", self.heard("no agreement"), "hint")
                return
            columns = [self.heard(name) for name in ("question", "pairs", "shared", "equal", "kappa", "quadratic")]
            plain_table(columns, [self._kappa_row(one) for one in found], label=self.heard("agreement"), numbers=5)

    def _agreement(self) -> tuple[Agreement, ...]:
        ratings, actor = self.visit.desk.ratings, self.visit.actor
        given = ratings.everybodys(actor, self.study.campaign)
        return self.study.agreement(self.study.judgements(given, ratings.seats(actor, self.study.campaign)))

    def _kappa_row(self, one: Agreement) -> list[str]:
        name = one.question if one.question in CRITERION_KEYS else f"kind {one.question}"
        both = (one.kappa, one.quadratic_kappa)
        kappas = [self.heard("kappa none") if each is None else f"{each:.2f}" for each in both]
        equal = "" if one.agreement is None else percent(one.agreement / 100)
        shared = sum(pair.num_shared for pair in one.pairs)
        return [self.heard(name), str(len(one.pairs)), str(shared), equal, *kappas]

    async def _export(self) -> None:
        content = await self.visit.asked(self.heard, raw_answers, self.visit.desk.ratings, self.visit.actor, self.study)
        if content is not None:
            ui.download.content(content, f"{self.study.campaign}.jsonl", "application/x-ndjson")


class RatingScreen:
    """A rater at work: conversation on the left, what is judged on the right, keys below."""

    def __init__(self, visit: Visit, heard: Words, rater: Rater, mark: TextElement) -> None:
        self.visit, self.heard, self.rater, self.mark = visit, heard, rater, mark
        self.place, self.current = rater.first_open(), 0
        self.cards: RatingCards | None = None

    def build(self) -> None:
        """Stages, content, keys."""
        with ui.element("div").classes("stage"):
            self.stage = ui.element("div").classes("segments").props('role="group"')
            text("span", self.heard("you are", rater=self.rater.name), "stage-count")
            ui.element("div").classes("grow")
            self.count = text("span", "", "stage-count").props('data-testid="progress"')
        with ui.element("div").classes("meter").props("aria-hidden=true"):
            self.meter = ui.element("div").classes("meter-fill")
        self.body = ui.element("div").classes("rating")
        self._bar()
        wanted = self.visit.request.query_params.get("screen", "")
        self.show(int(wanted) - 1 if wanted.isdecimal() and len(wanted) < 6 else self.place)

    def show(self, place: int) -> None:
        """Shows a screen, at its first open question."""
        if not self.rater.steps:
            return
        self.place = max(0, min(place, len(self.rater.steps) - 1))
        step = self.rater.steps[self.place]
        ui.navigate.history.replace(f"/evaluation?screen={self.place + 1}")
        self.body.clear()
        with self.body:
            self.cards = RatingCards(self.heard, step, self.rater, self.answer, self.go_to)
        open_ones = (number for number, each in enumerate(step.questions) if self.rater.answer(each) is None)
        self.go_to(next(open_ones, 0))
        self._show_progress()

    def go_to(self, number: int) -> None:
        """Makes a question the one the keys answer."""
        step = self.rater.steps[self.place]
        self.current = max(0, min(number, len(step.questions) - 1))
        question = step.questions[self.current]
        if self.cards is not None:
            self.cards.mark(self.current)
        self.now.text = self.heard("current", what=name_of_question(self.heard, step, question))
        for place, choice in enumerate(self.choices):
            choice.set_visibility(place < len(question.answers))
            if place < len(question.answers):
                label, key = _label(self.heard, question, place)
                self.labels[place][0].text, self.labels[place][1].text = label, key
                choice.props["data-key"] = choice.props["aria-keyshortcuts"] = key
            else:
                choice.props.pop("data-key", None)

    async def answer(self, number: int, value: int) -> None:
        """Stores an answer, and goes on to the next open question."""
        step = self.rater.steps[self.place]
        question = step.questions[number]
        await self.visit.asked(self.heard, self.rater.give, question, value)
        if self.rater.answer(question) != value:
            return
        if self.cards is not None:
            self.cards.show(number)
        now = datetime.fromtimestamp(self.visit.desk.store.clock() / 1e6).strftime("%H:%M:%S")
        self.mark.text = self.heard("saved", time=now)
        later = (place for place in range(number + 1, len(step.questions)) if self._is_open(step.questions[place]))
        self.go_to(next(later, number))
        self._show_progress()

    def _is_open(self, question: Question) -> bool:
        return self.rater.answer(question) is None

    def _show_progress(self) -> None:
        given, wanted = self.rater.progress()
        self.meter.style(f"width: {100 * given / max(wanted, 1):.1f}%")
        self.count.text = (
            f"{self.heard('screen', number=self.place + 1, all=len(self.rater.steps))}"
            f" · {self.heard('progress', given=given, asked=wanted)}"
        )
        self.stage.clear()
        with self.stage:
            for kind in dict.fromkeys(step.kind for step in self.rater.steps):
                first = next(place for place, step in enumerate(self.rater.steps) if step.kind == kind)
                left = sum(self.rater.open_questions(step) for step in self.rater.steps if step.kind == kind)
                entry = button(self.heard(f"stage {kind}"), lambda first=first: self.show(first), kind="segment")
                entry.props["aria-pressed"] = "true" if self.rater.steps[self.place].kind == kind else "false"
                with entry:
                    text("span", self.heard("open left", count=left) if left else self.heard("complete"), "count")
        self.done.set_visibility(given == wanted)

    def _bar(self) -> None:
        with ui.element("div").classes("done-note").props('role="status"') as self.done:
            icon("task_alt", "mark-done")
            text("strong", self.heard("all done"))
            text("span", self.heard("all done text"))
        with ui.element("div").classes("keybar").props('role="toolbar"') as bar:
            bar.props["aria-label"] = self.heard("answer")
            self.now = text("span", "", "keybar-now")
            self.choices: list[ui.element] = []
            self.labels: list[tuple[TextElement, TextElement]] = []
            for place in range(5):
                choice = ui.element("button").classes("button button-plain").props('type="button"')
                choice.on("click", lambda place=place: self._press(place), args=[])
                with choice:
                    self.labels.append((text("span", ""), text("kbd", "")))
                self.choices.append(choice)
            ui.element("div").classes("grow")
            button(self.heard("previous"), lambda: self.show(self.place - 1), kind="quiet", key="K")
            button(self.heard("next"), lambda: self.show(self.place + 1), kind="primary", key="J")
            open_one = button(self.heard("to open"), lambda: self.show(self.rater.first_open()), kind="quiet", key="N")
            open_one.classes("wide-only")

    async def _press(self, place: int) -> None:
        question = self.rater.steps[self.place].questions[self.current]
        if place < len(question.answers):
            await self.answer(self.current, question.answers[place])


def _label(heard: Words, question: Question, place: int) -> tuple[str, str]:
    """What stands on the button of an answer, and its key."""
    if question.asked == PREFERRED:
        return heard(("first", "neither", "second")[place]), ("1", "0", "2")[place]
    if question.asked == EXPLAINED:
        return heard(("yes", "no")[place]), ("1", "0")[place]
    return "", str(question.answers[place])
