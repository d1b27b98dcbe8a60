"""What the raters found, unblinded: means per system, contests of systems, explained keywords, agreement.

The unit of every mean, interval and test is the dialogue: the judgements of all raters about one dialogue are averaged
first, because they are not independent of each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from vrbot.evaluation.human_agreement import Agreement, rater_agreement
from vrbot.evaluation.human_contests import Contest, contest, with_holm
from vrbot.evaluation.human_criteria import ASPECTS, CRITERION_KEYS, HIGHEST, LOWEST, MARKS
from vrbot.evaluation.human_ratings import EXPLAINED, PREFERRED, Asked, Judgement
from vrbot.evaluation.human_study import Explanation, Item, Key, Study
from vrbot.evaluation.significance import summarise_seeds

Values = Iterable[tuple[str, float]]
"""Dialogue and value, one for each judgement."""


@dataclass(frozen=True)
class Mean:
    """The mean over dialogues with its 95 % interval (t distribution); one dialogue has no interval."""

    mean: float
    low: float | None
    high: float | None
    num_judgements: int
    num_dialogues: int


@dataclass(frozen=True)
class RaterProgress:
    """How many answers of a kind a rater was asked for, and how many are there."""

    rater: str
    kind: str
    asked: int
    answered: int


@dataclass(frozen=True)
class HumanScores:
    """Everything `vrbot humaneval score` reports; absent means are None, MEP and MER are percent."""

    ratings: Mapping[str, Mapping[str, Mean | None]]
    explanations: Mapping[str, Mapping[str, Mean | None]]
    contests: tuple[Contest, ...]
    agreement: tuple[Agreement, ...]
    progress: tuple[RaterProgress, ...]


def score_study(study: Study, key: Key, judgements: Sequence[Judgement]) -> HumanScores:
    """The order of judgements plays no part; what was not answered is left out."""
    found = _Answers(study, key, judgements)
    systems = [system.name for system in key.systems]
    ratings = {system: {name: _mean(found.ratings(system, name)) for name in CRITERION_KEYS} for system in systems}
    explanations = {
        system: {
            "mep": _mean(found.explained(system, "keyword")),
            "mer": _mean(found.explained(system, "entity")),
        }
        for system in systems
    }
    contests = [
        contest(first, second, about, list(found.differences(first, second, about)))
        for first, second in combinations(systems, 2)
        for about in (*CRITERION_KEYS, *ASPECTS)
    ]
    held = with_holm([one for one in contests if one.num_judgements])
    return HumanScores(ratings, explanations, held, found.agreement(), found.progress())


class _Answers:
    """The judgements of a study by who gave them and what they are about."""

    def __init__(self, study: Study, key: Key, judgements: Sequence[Judgement]) -> None:
        self.study, self.key, self.asked = study, key, Asked(study)
        self.given = {one.question: one.answer for one in judgements}
        ordered = sorted(judgements, key=lambda one: one.question)
        self.took_part = {(one.rater, self._kind(one.code, one.asked)) for one in ordered}

    def ratings(self, system: str, criterion: str) -> Iterator[tuple[str, float]]:
        """Every rating of a system's replies."""
        for rater, item in self._judged():
            answer = self.given.get((rater, self._code(item, system, self.key.replies), criterion))
            if answer is not None:
                yield self._dialogue(item), float(answer)

    def explained(self, system: str, asked: str) -> Iterator[tuple[str, float]]:
        """Percent of a turn's marks that were answered yes, where a rater answered all of them.

        A turn without keywords accounts for no entity: 0 by every rater who marked anything.
        """
        for rater, item in self._judged():
            if asked == "entity" and system in self.key.without_keywords.get(item.item, ()):
                if (rater, asked) in self.took_part:
                    yield self._dialogue(item), 0.0
                continue
            share = self._share(rater, self._explanation(item, system), asked)
            if share is not None:
                yield self._dialogue(item), 100 * share

    def differences(self, first: str, second: str, about: str) -> Iterator[tuple[str, float]]:
        """For each judgement of both systems: how far the first is ahead."""
        for rater, item in self._judged():
            ahead = self._ahead(rater, item, first, second, about)
            if ahead is not None:
                yield self._dialogue(item), float(ahead)

    def agreement(self) -> tuple[Agreement, ...]:
        """For each question that two raters answered for one same unit."""
        answers = {name: tuple(range(LOWEST, HIGHEST + 1)) for name in CRITERION_KEYS}
        answers |= dict.fromkeys(ASPECTS, (-1, 0, 1)) | dict.fromkeys(MARKS, (0, 1))
        by_kind: dict[str, dict[str, dict[str, int]]] = {kind: defaultdict(dict) for kind in answers}
        for (rater, code, name), answer in self.given.items():
            by_kind[self._kind(code, name)][rater][code] = answer
        found = [rater_agreement(kind, given, answers[kind]) for kind, given in by_kind.items()]
        return tuple(one for one in found if one.pairs)

    def progress(self) -> tuple[RaterProgress, ...]:
        """Answers asked for and given, for each rater and question."""
        found = []
        for share in self.study.shares:
            asked, answered = defaultdict[str, int](int), defaultdict[str, int](int)
            for question in self.asked.questions(share):
                kind = self._kind(question[1], question[2])
                asked[kind] += 1
                answered[kind] += question in self.given
            found += [RaterProgress(share.rater, kind, asked[kind], answered[kind]) for kind in asked]
        return tuple(found)

    def _judged(self) -> Iterator[tuple[str, Item]]:
        for share in self.study.shares:
            for page in sorted(share.pages, key=lambda page: page.item):
                yield share.rater, self.study.item_of[page.item]

    def _kind(self, code: str, name: str) -> str:
        """The question behind an answer: a criterion, what a preference is about, or what a mark asks."""
        if name == PREFERRED:
            return self.asked.pairs[code].about
        return self.asked.marks[code].asked if name == EXPLAINED else name

    def _dialogue(self, item: Item) -> str:
        return self.key.turns[item.item].session

    def _code(self, item: Item, system: str, owners: Mapping[str, Sequence[str]]) -> str:
        """The system's code in an item, "" where it has none."""
        codes = [one.code for one in item.candidates] + [one.code for one in item.explanations]
        return next((code for code in codes if system in owners.get(code, ())), "")

    def _explanation(self, item: Item, system: str) -> Explanation | None:
        code = self._code(item, system, self.key.explanations)
        return next((one for one in item.explanations if one.code == code), None)

    def _share(self, rater: str, explanation: Explanation | None, asked: str) -> float | None:
        marks = [mark for mark in explanation.marks if mark.asked == asked] if explanation is not None else []
        answers = [self.given.get((rater, mark.code, EXPLAINED)) for mark in marks]
        given = [answer for answer in answers if answer is not None]
        return sum(given) / len(given) if given and len(given) == len(marks) else None

    def _ahead(self, rater: str, item: Item, first: str, second: str, about: str) -> int | None:
        owners = self.key.explanations if about == "explanation" else self.key.replies
        one, other = (self._code(item, system, owners) for system in (first, second))
        if not one or not other:
            return None
        if about in CRITERION_KEYS:
            left, right = self.given.get((rater, one, about)), self.given.get((rater, other, about))
            return None if left is None or right is None else left - right
        if one == other:
            return 0 if (rater, about) in self.took_part else None
        answer = self.given.get((rater, "-".join(sorted((one, other))), PREFERRED))
        return answer if answer is None or one < other else -answer


def _mean(values: Values) -> Mean | None:
    by_dialogue = defaultdict[str, list[float]](list)
    for dialogue, value in values:
        by_dialogue[dialogue].append(value)
    if not by_dialogue:
        return None
    found = summarise_seeds([sum(one) / len(one) for _, one in sorted(by_dialogue.items())])
    return Mean(found.mean, found.low, found.high, sum(map(len, by_dialogue.values())), len(by_dialogue))
