"""What one screen of the blind evaluation shows: the conversation, and the things to judge with their answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicegui import ui

from vrbot.evaluation.human_criteria import CRITERIA, Wording
from vrbot.evaluation.human_study import Explanation, Mark
from vrbot.serving.console.parts import button, card, text
from vrbot.serving.console.rating_steps import Question, Rater, Step, explanation_of
from vrbot.serving.console.words import Words

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
Answer = Callable[[int, int], Awaitable[None]]
"""The number of a question and the answer to it."""


def letter(place: int) -> str:
    """What a thing is called on the screen: by its place, never by its code."""
    return LETTERS[place] if place < len(LETTERS) else str(place + 1)


def name_of_question(heard: Words, step: Step, question: Question) -> str:
    """Which question the keys answer."""
    if step.kind == "ratings":
        return f"{heard('reply', letter=letter(question.position))} · {heard(question.asked)}"
    place = step.questions.index(question)
    if step.kind == "preferences":
        about = next(pair.about for pair in step.item.pairs if pair.code == question.item)
        return f"{place + 1} · {heard(f'about {about}')}"
    return f"{place + 1} · {_mark_of(step, question).name}"


class RatingCards:
    """The cards of a step; `mark` shows which question the keys answer, `show` what was answered."""

    def __init__(
        self, heard: Words, step: Step, rater: Rater, on_answer: Answer, on_choose: Callable[[int], None]
    ) -> None:
        self.heard, self.step, self.rater, self.on_answer, self.on_choose = heard, step, rater, on_answer, on_choose
        self.rows: list[ui.element] = []
        self.answers: list[dict[int, ui.element]] = []
        self._conversation()
        with ui.element("div").classes("rating-cards"):
            {"ratings": self._ratings, "preferences": self._preferences, "marks": self._marks}[step.kind]()
        for number in range(len(self.rows)):
            self.show(number)

    def mark(self, current: int) -> None:
        """Shows which question the keys answer."""
        ui.run_javascript(f"document.getElementById('question-{current}')?.scrollIntoView({{block: 'nearest'}})")
        for number, row in enumerate(self.rows):
            row.props["aria-current"] = "true" if number == current else "false"

    def show(self, number: int) -> None:
        """Shows the answer to a question."""
        given = self.rater.answer(self.step.questions[number])
        for value, choice in self.answers[number].items():
            choice.props["aria-pressed"] = "true" if value == given else "false"

    def _conversation(self) -> None:
        with card(self.heard("conversation"), classes="conversation"):
            for line in self.step.item.context:
                with ui.element("div").classes(f"said said-{line.speaker}"):
                    text("span", self.heard(line.speaker), "said-who")
                    text("p", line.text, "said-text")
            if not self.step.item.context:
                text("p", self.heard("no conversation"), "hint")

    def _ratings(self) -> None:
        replies = {each.code: each.reply for each in self.step.item.candidates}
        for place, code in enumerate(self.step.page.candidates):
            with card(self.heard("reply", letter=letter(place)), classes="judged").props('data-testid="candidate"'):
                self._reply(replies[code])
                for criterion in CRITERIA:
                    self._rating_row(criterion.key, criterion.question, criterion.worst, criterion.best)

    def _rating_row(self, key: str, question: Wording, worst: Wording, best: Wording) -> None:
        with self._row("rating-row"):
            with ui.element("div").classes("rating-name"):
                text("span", self.heard(key))
                text("span", self._said(question), "hint")
            with ui.element("div").classes("scale"):
                self._choices([str(value) for value in self.step.questions[len(self.rows) - 1].answers])
                text("span", f"1 {self._said(worst)} · 5 {self._said(best)}", "hint scale-ends")

    def _preferences(self) -> None:
        replies = {each.code: each.reply for each in self.step.item.candidates}
        for number, question in enumerate(self.step.questions, start=1):
            about = next(pair.about for pair in self.step.item.pairs if pair.code == question.item)
            box = card(self.heard(f"about {about}"), note=f"{number}", classes="judged").props('data-testid="pair"')
            with box, self._row("pair-row"):
                with ui.element("div").classes("pair"):
                    for place, code in enumerate(question.order):
                        with ui.element("div").classes("pair-side"):
                            text("div", self.heard(("first", "second")[place]), "pair-name")
                            if about == "reply":
                                self._reply(replies[code])
                            else:
                                self._explanation(explanation_of(self.step.item, code))
                self._choices([self.heard("first"), self.heard("neither"), self.heard("second")])

    def _marks(self) -> None:
        for place, code in enumerate(self.step.page.explanations):
            explanation = explanation_of(self.step.item, code)
            with card(self.heard("explanation", letter=letter(place)), classes="judged"):
                self._explanation(explanation)
                for mark in explanation.marks:
                    with self._row("rating-row"):
                        with ui.element("div").classes("rating-name"):
                            text("span", mark.name)
                            text("span", self.heard(f"about {mark.asked}"), "hint")
                        with ui.element("div").classes("scale"):
                            self._choices([self.heard("yes"), self.heard("no")])

    def _row(self, classes: str) -> ui.element:
        number = len(self.rows)
        row = ui.element("div").classes(classes).props('role="group" data-testid="question"')
        row.props["id"] = f"question-{number}"
        row.on("click", lambda: self.on_choose(number), args=[])
        self.rows.append(row)
        return row

    def _choices(self, labels: list[str]) -> None:
        number = len(self.rows) - 1
        question = self.step.questions[number]
        with ui.element("div").classes("segments"):
            made: dict[int, ui.element] = {}
            for value, label in zip(question.answers, labels, strict=True):
                made[value] = button(label, lambda value=value: self.on_answer(number, value), kind="segment")
                made[value].props["data-answer"] = str(value)
        self.answers.append(made)

    def _reply(self, reply: str) -> None:
        text("p", reply or self.heard("empty reply"), "reply-text")

    def _explanation(self, one: Explanation) -> None:
        with ui.element("dl").classes("explanation"):
            self._fact("state", list(one.state))
            self._fact("category", [] if one.category is None else [self.heard.of(one.category)])
            marked = [f"{name} ({self.heard('linked')})" if name in one.linked else name for name in one.keywords]
            self._fact("keywords", marked)
            self._fact("paths", list(one.paths))

    def _fact(self, key: str, values: list[str]) -> None:
        text("dt", self.heard(key))
        with ui.element("dd"):
            for value in values:
                text("span", value, "label-chip from-plain")
            if not values:
                text("span", self.heard("none"), "hint")

    def _said(self, wording: Wording) -> str:
        return wording.zh if self.heard.language == "zh" else wording.en


def _mark_of(step: Step, question: Question) -> Mark:
    marks = (mark for each in step.item.explanations for mark in each.marks)
    return next(mark for mark in marks if mark.code == question.item)
