"""A request that is sent again does nothing twice, and a text that could not be stored is not forgotten."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from nicegui import Client
from sqlalchemy import text

from tests.serving.api.served import Served, desk_of, serving
from tests.serving.conftest import OpenStore
from tests.serving.fakes import ANN, BOB, RAY, DeskAtWork
from tests.serving.open_pages import OpenPages, in_a_loop
from vrbot.serving.audit import verify
from vrbot.serving.console import desk_draft
from vrbot.serving.problems import ConflictError, InvalidInputError, UnavailableError
from vrbot.serving.store import Store


@pytest.fixture
def served() -> Iterator[Served]:
    store = Store.open("sqlite://", create=True)
    with serving(desk_of(store)) as found:
        yield found
    store.close()


def test_a_consultation_is_opened_once_under_an_id(work: DeskAtWork) -> None:
    open_one = work.desk.consultations.open
    opened = open_one(ANN, "en", "case 17", "tab-1")
    events = work.store.head()
    assert open_one(ANN, "en", "case 17", "tab-1") == opened
    assert work.store.head() == events
    with pytest.raises(ConflictError, match="another consultation"):
        open_one(ANN, "en", "case 18", "tab-1")
    with pytest.raises(InvalidInputError):
        open_one(ANN, "en", "case 17", "")
    others = [open_one(BOB, "en", "case 17", "tab-1"), open_one(ANN, "en", "case 17", "tab-2"), open_one(ANN, "en")]
    assert len({opened.id, open_one(ANN, "en").id, *(other.id for other in others)}) == 5
    assert verify(work.store).good


def test_what_was_opened_before_there_were_ids_is_still_vouched_for(database: str, open_store: OpenStore) -> None:
    old = DeskAtWork(open_store(database))
    before = old.opened()
    with old.store.engine.begin() as connection:
        connection.execute(text("DROP TABLE openings"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    old.store.close()
    now = DeskAtWork(open_store(database))
    assert now.desk.consultations.all_of(ANN) == [before]
    assert now.desk.consultations.open(ANN, "en", "", "x") == now.desk.consultations.open(ANN, "en", "", "x")
    assert verify(now.store).good


def test_the_same_judgement_sent_again_is_one_judgement(work: DeskAtWork) -> None:
    ratings = work.desk.ratings
    order = ratings.order(ANN, "study", "item", ["a", "b"], random.Random(1))
    for measure, position, value in [("fluency", 0, 4), ("fluency", 1, 2), ("preference", 0, 1)]:
        ratings.rate(ANN, order, measure, position, value)
    events = work.store.head()
    for measure, position, value in [("fluency", 0, 4), ("fluency", 1, 2), ("preference", 0, 1)]:
        ratings.rate(ANN, order, measure, position, value)
    assert (work.store.head(), len(ratings.export(RAY, "study"))) == (events, 3)


def test_a_judgement_that_was_changed_and_changed_back_counts_as_it_was_last_given(work: DeskAtWork) -> None:
    ratings = work.desk.ratings
    order = ratings.order(ANN, "study", "item", ["a", "b"])
    for measure, position, value in [("quality", 0, 4), ("quality", 0, 2), ("quality", 0, 4)]:
        ratings.rate(ANN, order, measure, position, value)
    assert [each.value for each in ratings.mine(ANN, "study")] == [4]
    for position in (0, 1, 0):
        ratings.rate(ANN, order, "preference", position, 1)
    assert [each.system for each in ratings.export(RAY, "study") if each.measure == "preference"] == ["a", "b", "a"]


def test_requests_over_http_can_be_sent_again(served: Served) -> None:
    body = {"client_consultation_id": "tab-1", "language": "en", "reference": "case 17"}
    first, again = served.post("/consultations", body), served.post("/consultations", body)
    assert (first.status_code, again.status_code, first.content) == (201, 201, again.content)
    assert served.post("/consultations", {**body, "language": "zh"}).status_code == 409
    draft = served.drafted()
    for _ in range(2):
        assert served.post(f"/drafts/{draft['id']}/feedback", {"quality": 4, "fluency": 5}).status_code == 204
    assert len(served.get("/ratings/feedback", "researcher").json()) == 2


def test_a_text_that_was_not_stored_stays_in_its_box(pages: OpenPages, monkeypatch: pytest.MonkeyPatch) -> None:
    consultation = pages.opened()
    pages.drafted(pages.said(consultation, "a cough"))
    scripts: list[str] = []
    keeps: list[Any] = []
    monkeypatch.setattr(Client, "run_javascript", lambda client, code, **_: scripts.append(code))
    monkeypatch.setattr(desk_draft, "composer", lambda about, keep, *rest: keeps.append(keep))
    edit = pages.desk.signoff.edit

    def unreachable(*arguments: object) -> None:
        raise UnavailableError("the database is busy")

    async def work() -> None:
        screen = await pages.screen(consultation)
        with screen.actions.client:
            screen.draft._write()
            monkeypatch.setattr(pages.desk.signoff, "edit", unreachable)
            assert not await keeps[-1]("How long have you had it?", "n1")
            assert screen.draft.writing
            assert not any("forget" in script for script in scripts)
            monkeypatch.setattr(pages.desk.signoff, "edit", edit)
            assert await keeps[-1]("How long have you had it?", "n1")
            assert not screen.draft.writing
            assert any("forget" in script for script in scripts)
            assert screen.shown is not None
            assert screen.shown.view.current is not None
            assert screen.shown.view.current.text == "How long have you had it?"

    in_a_loop(work)
