"""The answers of raters: what may be asked of whom, the console's lines, and reading everything back.

A line of the console's file is one answer:
{"rater": "rater-1", "code": "bcdfgh", "asked": "Flu", "answer": 4}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vrbot.errors import DataError
from vrbot.evaluation.human_criteria import CRITERION_KEYS, HIGHEST, LOWEST
from vrbot.evaluation.human_study import Item, Mark, Page, Pair, Share, Study
from vrbot.files import atomic_write

PREFERRED, EXPLAINED, TIE = "preferred", "explained", "tie"


@dataclass(frozen=True)
class Judgement:
    """One answer. `asked` Flu, KC or EQ: 1 to 5, of a reply. `preferred`: 1 the first of the pair (in the order of
    codes), -1 the second, 0 neither. `explained`: 1 or 0, of a mark."""

    rater: str
    code: str
    asked: str
    answer: int

    @property
    def question(self) -> tuple[str, str, str]:
        """What was asked of whom; there is one answer to it."""
        return self.rater, self.code, self.asked


@dataclass(frozen=True)
class Given:
    """A judgement and where it was read."""

    judgement: Judgement
    file: Path
    line: int

    def refuse(self, field: str, problem: str, fix: str) -> DataError:
        """The error that names this place."""
        return DataError(self.file, self.line, field, problem, fix)


@dataclass(frozen=True)
class Asked:
    """Everything a study asks: for each rater and code, the item and the names of the answers."""

    study: Study

    @cached_property
    def pages(self) -> dict[str, dict[str, Page]]:
        """Pages by rater and item."""
        return {share.rater: {page.item: page for page in share.pages} for share in self.study.shares}

    @cached_property
    def item_of(self) -> dict[str, Item]:
        """The item of every code: of replies, explanations, pairs and marks."""
        return {code: item for item in self.study.items for code in _codes(item)}

    @cached_property
    def pairs(self) -> dict[str, Pair]:
        """Pairs by code."""
        return {pair.code: pair for item in self.study.items for pair in item.pairs}

    @cached_property
    def marks(self) -> dict[str, Mark]:
        """Marks by code."""
        return {
            mark.code: mark
            for item in self.study.items
            for explanation in item.explanations
            for mark in explanation.marks
        }

    @cached_property
    def replies(self) -> dict[str, str]:
        """The text behind the code of every reply."""
        return {candidate.code: candidate.reply for item in self.study.items for candidate in item.candidates}

    def names(self, code: str) -> tuple[str, ...]:
        """What is asked about a code: the criteria, `preferred` or `explained`."""
        if code in self.replies:
            return CRITERION_KEYS
        return (PREFERRED,) if code in self.pairs else (EXPLAINED,) if code in self.marks else ()

    def questions(self, share: Share) -> list[tuple[str, str, str]]:
        """Everything a rater is asked."""
        return [
            (share.rater, code, name)
            for page in share.pages
            for code in _codes(self.study.item_of[page.item])
            for name in self.names(code)
        ]

    def check(self, file: Path, line: int, rater: str, code: str) -> None:
        """DataError unless there is such a rater, such a code, and the code is among the rater's."""
        if rater not in self.pages:
            known = ", ".join(sorted(self.pages))
            raise DataError(file, line, "rater", f"{rater!r} is not a rater of this study", f"write one of {known}")
        if not self.names(code):
            fix = "put back the code of the sheet that was drawn"
            raise DataError(file, line, "code", f"{code!r} is not a code of this study", fix)
        if self.item_of[code].item not in self.pages[rater]:
            fix = "give every rater the sheet of that rater"
            raise DataError(file, line, "code", f"{code!r} was not given to {rater} to judge", fix)


def _codes(item: Item) -> list[str]:
    codes = [candidate.code for candidate in item.candidates] + [pair.code for pair in item.pairs]
    for explanation in item.explanations:
        codes += [explanation.code, *(mark.code for mark in explanation.marks)]
    return codes


def check_answer(file: Path, line: int, asked: str, answer: object) -> int:
    """A rating from 1 to 5; DataError otherwise."""
    if isinstance(answer, int) and not isinstance(answer, bool) and LOWEST <= answer <= HIGHEST:
        return answer
    fix = f"write a whole number from {LOWEST} to {HIGHEST}, or leave it empty"
    raise DataError(file, line, asked, f"{answer!r} is not a rating", fix)


def write_ratings(path: Path, judgements: Iterable[Judgement], study: Study) -> None:
    """The console's lines, whole or not at all."""
    asked = Asked(study)
    with atomic_write(path) as file:
        for judgement in judgements:
            line = {"rater": judgement.rater, "code": judgement.code, "asked": judgement.asked}
            file.write(json.dumps({**line, "answer": _spoken(judgement, asked)}, ensure_ascii=False) + "\n")


def read_ratings(path: Path, asked: Asked) -> list[Given]:
    """The console's lines; `file:line: field: problem: fix` for the first that is wrong."""
    found = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    found.append(Given(_judgement(_content(line, path, number), path, number, asked), path, number))
    except (OSError, UnicodeDecodeError) as error:
        fix = "give the file that the console exported"
        raise DataError(path, None, "file", f"cannot be read ({error})", fix) from error
    return found


def without_repetition(given: Sequence[Given]) -> list[Judgement]:
    """The judgements; refuses a question that was answered twice, even alike."""
    seen: dict[tuple[str, str, str], Given] = {}
    for one in given:
        before = seen.setdefault(one.judgement.question, one)
        if before is not one:
            rater, code, asked = one.judgement.question
            problem = f"{rater} answered {asked} of {code!r} already at {before.file}:{before.line}"
            raise one.refuse("code", problem, "keep one of the two answers")
    return [one.judgement for one in given]


def _content(line: str, path: Path, number: int) -> Mapping[str, Any]:
    fix = "write rater, code, asked and answer as one JSON object"
    try:
        content = json.loads(line)
    except ValueError as error:
        raise DataError(path, number, "line", f"is not JSON ({error})", fix) from error
    if not isinstance(content, dict):
        raise DataError(path, number, "line", "is not a JSON object", fix)
    for field in ("rater", "code", "asked"):
        if not isinstance(content.get(field), str):
            raise DataError(path, number, field, "is missing or not text", fix)
    if "answer" not in content:
        raise DataError(path, number, "answer", "is missing", fix)
    return content


def _judgement(content: Mapping[str, Any], path: Path, number: int, asked: Asked) -> Judgement:
    rater, code, name, answer = (content[field] for field in ("rater", "code", "asked", "answer"))
    asked.check(path, number, rater, code)
    if name not in asked.names(code):
        raise DataError(path, number, "asked", f"{name!r} is not asked here", f"ask {' or '.join(asked.names(code))}")
    if name == EXPLAINED:
        if not isinstance(answer, bool):
            raise DataError(path, number, "answer", f"{answer!r} is neither true nor false", "write one of them")
        return Judgement(rater, code, name, int(answer))
    if name == PREFERRED:
        pair = asked.pairs[code]
        if answer not in (pair.first, pair.second, TIE):
            fix = f"write {pair.first!r}, {pair.second!r} or {TIE!r}"
            raise DataError(path, number, "answer", f"{answer!r} is not of this pair", fix)
        return Judgement(rater, code, name, {pair.first: 1, pair.second: -1, TIE: 0}[answer])
    return Judgement(rater, code, name, check_answer(path, number, name, answer))


def _spoken(judgement: Judgement, asked: Asked) -> int | str | bool:
    """The answer as the console writes it."""
    if judgement.asked == EXPLAINED:
        return bool(judgement.answer)
    if judgement.asked == PREFERRED:
        pair = asked.pairs[judgement.code]
        return {1: pair.first, -1: pair.second, 0: TIE}[judgement.answer]
    return judgement.answer
