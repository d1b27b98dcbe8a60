"""The blind evaluation: every question once, answers that come back as given, and files the score reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console.small_study import put_study
from tests.evaluation.invented_study import SYSTEMS, possible_answers
from tests.serving.fakes import BOB, EVE, RAY, DeskAtWork
from vrbot.errors import DataError, UsageError
from vrbot.evaluation.human_criteria import CRITERION_KEYS
from vrbot.evaluation.human_folders import gather_judgements
from vrbot.evaluation.human_ratings import PREFERRED
from vrbot.evaluation.human_scores import score_study
from vrbot.evaluation.human_study import KEY, STUDY, read_key
from vrbot.serving.console.rating_cards import name_of_question
from vrbot.serving.console.rating_steps import OpenStudy, Rater, open_study, raw_answers
from vrbot.serving.console.words import rating, words
from vrbot.serving.problems import RefusedError
from vrbot.serving.store import Store


@pytest.fixture
def work(tmp_path: Path) -> DeskAtWork:
    return DeskAtWork(Store.open(tmp_path / "desk.sqlite", create=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_study(tmp_path_factory.mktemp("drawn") / "study", dialogues=3)


@pytest.fixture
def study(folder: Path) -> OpenStudy:
    return open_study(folder)


def answered(rater: Rater, shift: int = 0) -> None:
    """Answers everything, each question in a way of its own."""
    for step in rater.steps:
        for number, question in enumerate(step.questions):
            choices = possible_answers(question.asked)
            rater.give(question, choices[(number + shift) % len(choices)])


def test_a_rater_is_asked_everything_of_the_share_once_and_marks_last(study: OpenStudy) -> None:
    share = study.study.shares[0]
    steps = study.steps(share.rater)
    assert [step.kind for step in steps] == ["ratings"] * 3 + ["preferences"] * 3 + ["marks"] * 3
    asked = [(share.rater, q.item if q.asked == PREFERRED else q.code, q.asked) for s in steps for q in s.questions]
    assert sorted(asked) == sorted(study.asked.questions(share))
    with pytest.raises(UsageError, match="not a rater"):
        study.steps("nobody")


def test_the_order_on_the_screen_is_the_one_drawn_for_the_rater_and_is_stored(
    study: OpenStudy, work: DeskAtWork
) -> None:
    rater = Rater(work.desk.ratings, EVE, study)
    first = rater.steps[0].questions[0]
    rater.give(first, 3)
    order = work.desk.ratings.order(EVE, study.campaign, first.item, first.order)
    assert work.desk.ratings.systems(EVE, order) == rater.steps[0].page.candidates


def test_answers_outlive_a_new_visit_and_the_last_one_counts(study: OpenStudy, work: DeskAtWork) -> None:
    rater = Rater(work.desk.ratings, EVE, study)
    question = rater.steps[0].questions[0]
    rater.give(question, 2)
    rater.give(question, 5)
    again = Rater(work.desk.ratings, EVE, study)
    assert (again.name, again.answer(question), again.progress()[0]) == (rater.name, 5, 1)
    answered(again)
    assert again.progress()[0] == again.progress()[1]
    assert again.first_open() == len(again.steps) - 1


def test_the_raw_export_is_read_by_the_score_and_means_what_was_answered(
    study: OpenStudy, work: DeskAtWork, folder: Path, tmp_path: Path
) -> None:
    raters = [Rater(work.desk.ratings, actor, study) for actor in (EVE, BOB)]
    for rater in raters:
        answered(rater, shift=rater.name == "rater-2")
    path = tmp_path / "ratings.jsonl"
    path.write_bytes(raw_answers(work.desk.ratings, RAY, study))
    found = gather_judgements(study.study, [path])
    key = read_key(folder / KEY, folder / STUDY)
    scores = score_study(study.study, key, found)
    assert all(one.asked == one.answered for one in scores.progress)
    live = study.agreement(found)
    assert live == scores.agreement
    assert {one.question for one in live} >= {*CRITERION_KEYS, "explanation"}
    for step in raters[0].steps:
        for question in step.questions:
            if question.asked == PREFERRED:
                mine = raters[0].answer(question)
                pair = study.asked.pairs[question.item]
                wanted = mine if pair.first == question.order[0] else -(mine or 0)
                assert [one.answer for one in found if one.rater == raters[0].name and one.code == pair.code] == [
                    wanted
                ]


def test_only_who_may_export_gets_the_raw_answers(study: OpenStudy, work: DeskAtWork) -> None:
    with pytest.raises(RefusedError):
        raw_answers(work.desk.ratings, EVE, study)


def test_what_the_page_is_made_of_names_no_system(study: OpenStudy) -> None:
    heard = words("en", rating.WORDS)
    told = [
        name_of_question(heard, step, question)
        for rater in study.raters
        for step in study.steps(rater)
        for question in step.questions
    ]
    assert not any(system in line for system in SYSTEMS for line in [*told, repr(study.study)])


def test_a_folder_without_a_study_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="humaneval draw"):
        open_study(tmp_path)
