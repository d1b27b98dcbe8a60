"""Labels and ratings come back as they were given; what goes to training has no names in it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.serving.fakes import ANN, BOB, EVE, RAY, SUE, DeskAtWork
from vrbot.dialogue.canonical import write_sessions
from vrbot.dialogue.formats import read_sessions
from vrbot.dialogue.session import Action
from vrbot.serving.audit import verify
from vrbot.serving.problems import InvalidInputError, NotFoundError, RefusedError


def test_the_last_label_of_a_kind_counts_and_all_are_kept(work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    label = work.desk.annotation.label
    label(EVE, turn.id, "state", ["cough"])
    assert label(ANN, turn.id, "state", ["cough", "fever"]) == label(ANN, turn.id, "state", ["cough", "fever"])
    label(ANN, turn.id, "category", "diagnosis")
    found = work.desk.annotation.labels_of(EVE, turn.id)
    assert {kind: (each.value, each.number) for kind, each in found.items()} == {
        "state": (["cough", "fever"], 2),
        "category": ("diagnosis", 3),
    }
    assert verify(work.store).good


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("mood", []),
        ("state", "cough"),
        ("state", [""]),
        ("state", ["a\0"]),
        ("state", [5]),
        ("state", ["x"] * 201),
        ("category", "guess"),
        ("category", None),
        ("keywords", {"a": 1}),
    ],
)
def test_a_wrong_label_is_refused(kind: str, value: Any, work: DeskAtWork) -> None:
    turn = work.said(work.opened(), "a cough")
    with pytest.raises(InvalidInputError):
        work.desk.annotation.label(EVE, turn.id, kind, value)


def test_training_gets_de_identified_sessions_in_the_canonical_form(work: DeskAtWork, tmp_path: Path) -> None:
    consultation = work.opened()
    first = work.said(consultation, "I am Ann Smith, I cough\0")
    work.said(consultation, "")
    work.said(consultation, "hello?")
    work.sent(work.desk.drafting.write(ANN, first.id, "Dear Ann Smith, rest."))
    work.desk.annotation.label(ANN, first.id, "state", ["cough"])
    work.desk.annotation.label(ANN, first.id, "keywords", ["rest"])
    work.opened()
    write_sessions(tmp_path / "out.jsonl", work.desk.annotation.export(RAY))
    (session,) = read_sessions(tmp_path / "out.jsonl")
    assert [(turn.patient, turn.physician) for turn in session.turns] == [
        ("I am [name], I cough ", "Dear [name], rest."),
        ("hello?", ""),
    ]
    assert session.turns[0].state == ("cough",)
    assert session.turns[0].action == Action(None, ("rest",))
    assert consultation.id not in session.id


def test_unapproved_drafts_and_demonstrations_are_not_exported(work: DeskAtWork) -> None:
    work.drafted(work.said(work.opened(), "a cough"))
    demo = DeskAtWork(work.store, demo=True)
    demo.said(demo.opened(), "a play")
    assert [turn.physician for session in work.desk.annotation.export(RAY) for turn in session.turns] == [""]
    assert [turn.patient for each in work.desk.annotation.export(RAY, demo=True) for turn in each.turns] == ["a play"]


def test_text_that_cannot_be_de_identified_is_not_given_out(work: DeskAtWork) -> None:
    work.said(work.opened(), "Ann Smith is broken")
    with pytest.raises(ValueError, match="cannot read"):
        list(work.desk.annotation.export(RAY))


@pytest.mark.parametrize("actor", [ANN, EVE, SUE], ids=lambda actor: actor.role)
def test_only_researchers_and_operators_export(actor: Any, work: DeskAtWork) -> None:
    with pytest.raises(RefusedError, match="may not export"):
        work.desk.annotation.export(actor)
    with pytest.raises(RefusedError, match="may not export"):
        work.desk.ratings.export(actor, "c")


def test_each_rater_has_an_order_that_stays_and_places_are_rated_not_names(work: DeskAtWork) -> None:
    ratings, systems = work.desk.ratings, ["vrbot", "seq2seq", "physician"]
    orders = {
        (rater.id, item): ratings.order(rater, "pilot", f"item-{item}", systems, random.Random(item))
        for rater in (EVE, BOB)
        for item in range(6)
    }
    again = ratings.order(EVE, "pilot", "item-0", systems[::-1], random.Random(99))
    assert again == orders["eve", 0]
    assert len({ratings.systems(EVE, orders["eve", item]) for item in range(6)}) > 1
    ratings.rate(EVE, again, "fluency", 0, 2)
    ratings.rate(EVE, again, "fluency", 0, 4)
    found = ratings.export(RAY, "pilot")
    assert [(each.system, each.value, each.number) for each in found] == [
        (ratings.systems(EVE, again)[0], 2, 1),
        (ratings.systems(EVE, again)[0], 4, 2),
    ]
    with pytest.raises(NotFoundError):
        ratings.rate(BOB, again, "fluency", 0, 3)
    assert verify(work.store).good


@pytest.mark.parametrize(("measure", "position", "value"), [("beauty", 0, 1), ("fluency", 2, 1), ("fluency", 0, 6)])
def test_a_wrong_rating_is_refused(measure: str, position: int, value: int, work: DeskAtWork) -> None:
    order = work.desk.ratings.order(EVE, "pilot", "item", ["a", "b"], random.Random(0))
    with pytest.raises(InvalidInputError):
        work.desk.ratings.rate(EVE, order, measure, position, value)


def test_an_item_cannot_change_its_systems(work: DeskAtWork) -> None:
    work.desk.ratings.order(EVE, "pilot", "item", ["a", "b"], random.Random(0))
    with pytest.raises(InvalidInputError, match="other systems"):
        work.desk.ratings.order(EVE, "pilot", "item", ["a", "c"], random.Random(0))
