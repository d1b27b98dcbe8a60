"""The frame, the list and small screens; the console's own way of seeing a case."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import expect

from tests.console.conftest import OpenPage
from tests.console.serving import Served
from vrbot.serving.api.settings import DEMO_PHYSICIAN
from vrbot.serving.console import words
from vrbot.serving.console.desk_view import Mark, Trail, keyword_chips, pieces, source_marks, view_of
from vrbot.serving.console.overview import listed
from vrbot.serving.console.path_picture import ShownPath, picture
from vrbot.serving.console.samples import seed_samples
from vrbot.serving.console.signin_page import _safe_target

TABLES = sorted(module.name for module in pkgutil.iter_modules(words.__path__))


@pytest.mark.parametrize("module", TABLES)
def test_every_string_is_there_in_both_languages_with_the_same_places(module: str) -> None:
    tables = vars(importlib.import_module(f"vrbot.serving.console.words.{module}"))
    for table in (tables[name] for name in ("WORDS", "RELATIONS") if name in tables):
        assert set(table) == set(words.LANGUAGES)
        assert set(table["zh"]) == set(table["en"])
        for key in table["zh"]:
            places = [sorted(re.findall(r"{(\w+)}", table[language][key])) for language in words.LANGUAGES]
            assert places[0] == places[1], key


def test_a_keyword_tells_after_which_words_it_is_usually_named() -> None:
    """Where its evidence has any: older replies have none."""
    named = [{"name": "cough", "source": "graph"}, {"name": "fever"}, {"name": "rash"}]
    told = [{"name": "cough", "habit_words": [{"text": "for days", "score": 0.4}, {"text": "nig", "score": 0.1}]}]
    split = keyword_chips({"keywords": named, "evidence": {"keywords": [*told, {"name": "rash"}]}})
    assert [chip.note for chip in split.graph] == ["“for days”, “nig”"]
    assert [chip.note for chip in split.conversation] == ["", ""]


marks = st.builds(Mark, st.integers(-3, 40), st.integers(-3, 40), st.sampled_from(("a", "b")))


@given(st.text(max_size=30), st.lists(marks, max_size=6))
def test_pieces_put_together_are_the_text_whatever_is_marked(text: str, found: list[Mark]) -> None:
    assert "".join(piece.text for piece in pieces(text, found)) == text


def test_words_are_found_in_their_order_and_unknown_ones_are_left_out() -> None:
    told: list[dict[str, Any]] = [
        {"text": word, "source": "action", "copies": []} for word in ("flu", "missing", "flu")
    ]
    assert [(mark.start, mark.end) for mark in source_marks("Flu or flu", told)] == [(0, 3), (7, 10)]


@given(st.text(max_size=12))
def test_a_trail_is_what_it_says_or_none(written: str) -> None:
    trail = Trail.parse(written)
    assert Trail.parse(str(trail)) == trail
    assert trail == Trail() or all(part.isdigit() for part in written.split("."))


def test_a_trail_that_no_longer_holds_is_left(console: Served) -> None:
    consultation = console.opened()
    turn = console.said(consultation, "我头痛")
    console.desk.drafting.draft(DEMO_PHYSICIAN, turn.id)
    case = console.desk.consultations.case(DEMO_PHYSICIAN, consultation.id)
    for trail in (Trail(1, (1, 7)), Trail(2, (1, 1)), Trail(9, ())):
        view = view_of(case, trail)
        assert view.before is None
        assert view.current is not None
        assert view.current.version == 1


def test_an_edge_that_paths_share_is_drawn_once_and_the_state_stands_first() -> None:
    paths = [
        ShownPath("c", ("a", "b", "c"), ("r", "s"), 0.4, 0.1),
        ShownPath("b", ("a", "b"), ("r",), 0.5, 0.1),
    ]
    [series] = picture(paths, {}, {"r": "of"})["series"]
    assert {node["name"]: node["value"][0] for node in series["data"]} == {"a": 0, "b": 1, "c": 2}
    assert [(link["source"], link["target"]) for link in series["links"]] == [("a", "b"), ("b", "c")]
    assert series["links"][0]["label"]["formatter"] == "of  0.50"


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_signing_in_leads_to_a_page_of_this_console_only(target: str) -> None:
    assert _safe_target(target) == "/"
    assert _safe_target("/consultations/1") == "/consultations/1"


def test_red_flags_and_whoever_waits_stand_first_in_the_list(console: Served) -> None:
    waits, urgent = console.opened(), console.opened("en")
    console.said(waits, "我头痛")
    console.said(urgent, "I have crushing chest pain and I cannot breathe")
    lines = listed(console.desk.store, DEMO_PHYSICIAN)
    order = [line.consultation.id for line in lines]
    assert order.index(urgent.id) < order.index(waits.id)
    statuses = [(not line.urgent, line.status != "waiting") for line in lines]
    assert statuses == sorted(statuses)


def test_samples_are_not_sown_among_consultations_that_are_there(console: Served) -> None:
    console.opened()
    assert seed_samples(console.desk, DEMO_PHYSICIAN, "zh") == 0


def test_a_consultation_is_opened_by_key_and_read_in_the_other_language(console: Served, open_page: OpenPage) -> None:
    page = open_page(f"{console.address}/", "zh")
    expect(page.locator("h1")).to_have_text("问诊")
    page.click("[data-testid=language]")
    expect(page.locator("h1")).to_have_text("Consultations")
    page.keyboard.press("n")
    page.fill(".q-dialog input", "Room 7")
    page.click("[data-testid=open-consultation]")
    expect(page.locator("h1")).to_have_text("Room 7")
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_an_address_without_a_page_leads_back_to_the_start(console: Served, open_page: OpenPage) -> None:
    page = open_page(f"{console.address}/no/such/page", "en")
    expect(page.locator(".empty-title")).to_have_text("This page does not exist")
    page.click("main .button-primary")
    expect(page.locator("h1")).to_have_text("Consultations")


def test_a_page_that_fails_shows_nothing_of_what_went_wrong(console: Served, open_page: OpenPage) -> None:
    with console.desk.store.engine.begin() as connection:
        text = b"the secret of a patient"
        row = {"id": "broken", "owner": DEMO_PHYSICIAN.id, "language": "xx", "reference": text, "demo": 1}
        connection.exec_driver_sql(
            "INSERT INTO consultations (id, owner, language, reference, demo, opened_at)"
            " VALUES (:id, :owner, :language, :reference, :demo, 0)",
            row,
        )
    page = open_page(f"{console.address}/consultations/broken", "en")
    expect(page.locator(".empty-title")).to_have_text("Something went wrong")
    assert "KeyError" not in page.content()
    with console.desk.store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM consultations WHERE id = 'broken'")


def test_the_theme_follows_the_system_until_somebody_chooses(console: Served, open_page: OpenPage) -> None:
    page = open_page(f"{console.address}/consultations", dark=True)
    expect(page.locator("body.body--dark")).to_have_count(1)
    page.click("[data-testid=theme]")
    expect(page.locator("body.body--light")).to_have_count(1)
    page.reload()
    expect(page.locator("body.body--light")).to_have_count(1)


def test_no_page_is_wider_than_a_telephone(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened("en", "A" * 60)
    console.said(consultation, "W" * 300 + " cough")
    pages = (f"{console.address}/consultations", console.desk_page(consultation), console.patient_page(consultation))
    for address in pages:
        page = open_page(address, "en", narrow=True)
        page.wait_for_timeout(500)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, address


def test_two_long_words_do_not_hide_the_buttons(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened("en")
    console.said(consultation, "say:" + "W" * 400)
    desk = open_page(console.desk_page(consultation), "en", narrow=True)
    accept = desk.locator("[data-testid=accept]")
    accept.scroll_into_view_if_needed()
    expect(accept).to_be_in_viewport()
