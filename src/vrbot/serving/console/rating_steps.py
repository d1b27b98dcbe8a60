"""A blind study as one rater walks through it: ratings of all items, then preferences, then marks of explanations.

Only `study.json` is read, which knows codes and no systems; the key stays where the study was drawn. Marks come last
because they name what the physician really said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from vrbot.errors import UsageError
from vrbot.evaluation.human_criteria import ASPECTS, CRITERION_KEYS, HIGHEST, LOWEST, MARKS
from vrbot.evaluation.human_ratings import EXPLAINED, PREFERRED, Asked, Judgement, write_ratings
from vrbot.evaluation.human_study import STUDY, Explanation, Item, Page, Study, read_study
from vrbot.files import sha256_of
from vrbot.serving.actors import Actor
from vrbot.serving.ratings import Rating, Ratings, counting

if TYPE_CHECKING:
    from vrbot.evaluation.human_agreement import Agreement

MEASURES = {"Flu": "fluency", "KC": "knowledge", "EQ": "quality", PREFERRED: "preference", EXPLAINED: "explained"}
"""What the study asks -> the measure under which the store keeps it."""
NAMES = {measure: asked for asked, measure in MEASURES.items()}
Kind = Literal["ratings", "preferences", "marks"]


@dataclass(frozen=True)
class Question:
    """One thing to answer: about a code, at a place of an order that is kept under `item`.

    An answer to `preferred` is 1 for the first shown, -1 for the second, 0 for neither.
    """

    item: str
    order: tuple[str, ...]
    position: int
    asked: str

    @property
    def code(self) -> str:
        """Whom the question is about."""
        return self.order[self.position]

    @property
    def answers(self) -> tuple[int, ...]:
        """All that can be answered, in the order of the buttons."""
        if self.asked == PREFERRED:
            return (1, 0, -1)
        return (1, 0) if self.asked == EXPLAINED else tuple(range(LOWEST, HIGHEST + 1))


@dataclass(frozen=True)
class Step:
    """One screen."""

    kind: Kind
    item: Item
    page: Page
    questions: tuple[Question, ...]


@dataclass(frozen=True, eq=False)
class OpenStudy:
    """A study that is being rated; `campaign` is its name in the store."""

    study: Study
    campaign: str

    @cached_property
    def asked(self) -> Asked:
        """What it asks of whom."""
        return Asked(self.study)

    @cached_property
    def raters(self) -> tuple[str, ...]:
        """The raters it was drawn for."""
        return tuple(share.rater for share in self.study.shares)

    def steps(self, rater: str) -> tuple[Step, ...]:
        """Everything a rater is asked, screen by screen, in that rater's own order."""
        share = next((share for share in self.study.shares if share.rater == rater), None)
        if share is None:
            raise UsageError(f"{rater!r} is not a rater of this study")
        pages = [(self.study.item_of[page.item], page) for page in share.pages]
        steps = [
            *(Step("ratings", item, page, _ratings(page)) for item, page in pages),
            *(Step("preferences", item, page, _preferences(page)) for item, page in pages),
            *(Step("marks", item, page, _marks(item, page)) for item, page in pages),
        ]
        return tuple(step for step in steps if step.questions)

    def judgements(self, given: Iterable[Rating], seats: Mapping[str, str]) -> list[Judgement]:
        """What the store holds, as the study's own answers under its own names of raters."""
        return [self._judgement(each, seats[each.rater]) for each in given if each.rater in seats]

    def _judgement(self, given: Rating, rater: str) -> Judgement:
        asked = NAMES[given.measure]
        if asked != PREFERRED:
            return Judgement(rater, given.system, asked, given.value)
        ahead = given.value if self.asked.pairs[given.item].first == given.system else -given.value
        return Judgement(rater, given.item, asked, ahead)

    def agreement(self, judgements: Sequence[Judgement]) -> tuple[Agreement, ...]:
        """How far the raters agree, for each question that two of them have answered for one same thing."""
        if len({one.rater for one in judgements}) < 2:
            return ()
        from vrbot.evaluation.human_agreement import rater_agreement  # brings scikit-learn

        answers = {name: tuple(range(LOWEST, HIGHEST + 1)) for name in CRITERION_KEYS}
        answers |= dict.fromkeys(ASPECTS, (-1, 0, 1)) | dict.fromkeys(MARKS, (0, 1))
        by_kind: dict[str, dict[str, dict[str, int]]] = {kind: defaultdict(dict) for kind in answers}
        for one in judgements:
            by_kind[self._kind(one)][one.rater][one.code] = one.answer
        found = [rater_agreement(kind, given, answers[kind]) for kind, given in by_kind.items()]
        return tuple(one for one in found if one.pairs)

    def _kind(self, one: Judgement) -> str:
        if one.asked == PREFERRED:
            return self.asked.pairs[one.code].about
        return self.asked.marks[one.code].asked if one.asked == EXPLAINED else one.asked


class Rater:
    """Somebody at work on a study; every answer is stored before the page shows it."""

    def __init__(self, ratings: Ratings, actor: Actor, study: OpenStudy) -> None:
        self._ratings, self.actor, self.study = ratings, actor, study
        self.name = ratings.seat(actor, study.campaign, study.raters)
        self.steps = study.steps(self.name)
        given = ratings.mine(actor, study.campaign)
        self._given = {(each.item, each.system, each.measure): each.value for each in given}

    def answer(self, question: Question) -> int | None:
        """What was answered before; None if nothing was."""
        return self._given.get((question.item, question.code, MEASURES[question.asked]))

    def give(self, question: Question, value: int) -> None:
        """Stores an answer."""
        order = self._ratings.order(self.actor, self.study.campaign, question.item, question.order)
        self._ratings.rate(self.actor, order, MEASURES[question.asked], question.position, value)
        self._given[question.item, question.code, MEASURES[question.asked]] = value

    def open_questions(self, step: Step) -> int:
        """How many questions of a screen are not answered."""
        return sum(self.answer(question) is None for question in step.questions)

    def first_open(self) -> int:
        """The first screen on which something is to be done; the last if all is done."""
        places = (place for place, step in enumerate(self.steps) if self.open_questions(step))
        return next(places, max(len(self.steps) - 1, 0))

    def progress(self) -> tuple[int, int]:
        """Answers given, and answers asked for."""
        asked = sum(len(step.questions) for step in self.steps)
        return asked - sum(self.open_questions(step) for step in self.steps), asked


def open_study(place: Path) -> OpenStudy:
    """The study of a folder `vrbot humaneval draw` wrote, or of its study.json."""
    path = place / STUDY if place.is_dir() else place
    return OpenStudy(read_study(path), f"study-{sha256_of(path)[:16]}")


def raw_answers(ratings: Ratings, actor: Actor, study: OpenStudy) -> bytes:
    """Every answer that counts, under codes, as `vrbot humaneval score` reads it."""
    given = counting(ratings.export(actor, study.campaign))
    found = study.judgements(given, ratings.seats(actor, study.campaign))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.jsonl"
        write_ratings(path, found, study.study)
        return path.read_bytes()


def explanation_of(item: Item, code: str) -> Explanation:
    """The explanation behind a code."""
    return next(each for each in item.explanations if each.code == code)


def _ratings(page: Page) -> tuple[Question, ...]:
    return tuple(
        Question(page.item, page.candidates, place, name)
        for place in range(len(page.candidates))
        for name in CRITERION_KEYS
    )


def _preferences(page: Page) -> tuple[Question, ...]:
    return tuple(Question(pair.code, (pair.first, pair.second), 0, PREFERRED) for pair in page.pairs)


def _marks(item: Item, page: Page) -> tuple[Question, ...]:
    return tuple(
        Question(mark.code, (mark.code,), 0, EXPLAINED)
        for code in page.explanations
        for mark in explanation_of(item, code).marks
    )
