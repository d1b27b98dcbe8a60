"""Who is which rater of a study, and which judgements count."""

from __future__ import annotations

import pytest

from tests.serving.fakes import BOB, EVE, RAY, SUE, DeskAtWork
from vrbot.serving.audit import verify
from vrbot.serving.problems import RefusedError


def test_a_rater_keeps_the_first_free_place_and_the_last_place_ends_it(work: DeskAtWork) -> None:
    seats = ("rater-1", "rater-2")
    assert [work.desk.ratings.seat(actor, "pilot", seats) for actor in (EVE, BOB, EVE)] == [
        "rater-1",
        "rater-2",
        "rater-1",
    ]
    assert work.desk.ratings.seats(RAY, "pilot") == {"eve": "rater-1", "bob": "rater-2"}
    with pytest.raises(RefusedError, match="all 2 raters"):
        work.desk.ratings.seat(RAY, "pilot", seats)
    with pytest.raises(RefusedError):
        work.desk.ratings.seat(SUE, "pilot", seats)
    assert verify(work.store).good


def test_an_order_that_was_drawn_before_is_kept_as_it_is(work: DeskAtWork) -> None:
    order = work.desk.ratings.order(EVE, "pilot", "item", ["c", "a", "b"])
    assert work.desk.ratings.systems(EVE, order) == ("c", "a", "b")


def test_of_several_judgements_the_last_counts_and_everybodys_are_all_of_them(work: DeskAtWork) -> None:
    for rater, values in ((EVE, (2, 5)), (BOB, (3,))):
        order = work.desk.ratings.order(rater, "pilot", "item", ["a", "b"])
        for value in values:
            work.desk.ratings.rate(rater, order, "fluency", 1, value)
    mine = work.desk.ratings.mine(EVE, "pilot")
    assert [(each.system, each.value) for each in mine] == [("b", 5)]
    assert sorted((each.rater, each.value) for each in work.desk.ratings.everybodys(BOB, "pilot")) == [
        ("bob", 3),
        ("eve", 5),
    ]
