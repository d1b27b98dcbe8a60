"""Nothing reaches a patient but what was approved on the screen, to the letter; dangers are shown first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from tests.console.conftest import OpenPage
from tests.console.serving import Served
from vrbot.serving.actors import Actor
from vrbot.serving.api.settings import DEMO_PHYSICIAN
from vrbot.serving.patient_links import patient_token

DRAFT = "[data-testid=draft]"
PAYLOADS = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(2)</script>",
    "<svg/onload=alert(3)>",
    "{{constructor.constructor('alert(4)')()}}",
    "${alert(5)}`+alert(6)+`",
    "</textarea><iframe srcdoc='<script>parent.alert(7)</script>'>",
    "[x](javascript:alert(8)) **bold**",
    '"><button data-key="a" autofocus onfocus=alert(9)>x</button>',
)


@pytest.fixture
def drafts_stopped(console: Served) -> Iterator[None]:
    console.switch.switch_on("the model is being examined", "sue", datetime(2026, 1, 1, tzinfo=UTC))
    yield
    console.switch.switch_off("it is well", "sue", datetime(2026, 1, 1, tzinfo=UTC))


def test_what_people_and_models_write_is_shown_as_text(console: Served, open_page: OpenPage) -> None:
    payload = " ".join(PAYLOADS)
    consultation = console.opened("en", reference=payload)
    console.said(consultation, f"{payload} say:{payload}")
    desk = open_page(console.desk_page(consultation), "en")
    expect(desk.locator("h1")).to_have_text(payload)
    expect(desk.locator(DRAFT)).to_have_text(payload)
    expect(desk.locator(".chat .say-text")).to_have_text(f"{payload} say:{payload}")
    desk.keyboard.press("a")
    patient = open_page(console.patient_page(consultation), "en")
    expect(patient.locator("[data-testid=line-physician] .say-text")).to_have_text(payload)
    assert console.seen_by_patient(consultation) == [payload]
    listed = open_page(f"{console.address}/consultations", "en")
    expect(listed.locator(".list-title").first).to_be_visible()
    assert payload in listed.locator(".list-title").all_text_contents()


def test_terms_a_model_invents_are_drawn_as_text(console: Served, open_page: OpenPage) -> None:
    evil = "<img src=x onerror=alert(1)>"
    consultation = console.opened("en")
    console.said(consultation, f"term:{evil}")
    desk = open_page(console.desk_page(consultation), "en")
    expect(desk.locator("[data-testid=paths] svg").first).to_be_visible()
    expect(desk.locator("[data-testid=state] .chip-text").first).to_have_text(evil)


def test_an_edited_text_is_sent_only_after_it_was_approved_in_its_turn(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    console.said(consultation, "我头痛")
    desk = open_page(console.desk_page(consultation))
    expect(desk.locator(DRAFT)).to_be_visible()
    desk.keyboard.press("e")
    box = desk.locator("[data-composer=edit] textarea")
    expect(box).to_have_value("您有头痛。考虑流感。")
    box.fill("头痛多久了？")
    box.press("Control+Enter")
    expect(desk.locator(DRAFT)).to_have_text("头痛多久了？")
    assert console.seen_by_patient(consultation) == []
    desk.keyboard.press("a")
    expect(desk.locator(".card-sent")).to_contain_text("头痛多久了？")
    assert console.seen_by_patient(consultation) == ["头痛多久了？"]


def test_a_rejected_draft_is_gone_and_the_physician_writes(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    console.said(consultation, "我头痛")
    desk = open_page(console.desk_page(consultation))
    expect(desk.locator(DRAFT)).to_be_visible()
    desk.keyboard.press("r")
    expect(desk.locator(DRAFT)).to_have_count(0)
    desk.keyboard.press("e")
    desk.fill("[data-composer=edit] textarea", "请来医院。")
    desk.press("[data-composer=edit] textarea", "Control+Enter")
    expect(desk.locator(DRAFT)).to_have_text("请来医院。")
    desk.keyboard.press("a")
    expect(desk.locator(".card-sent")).to_be_visible()
    assert console.seen_by_patient(consultation) == ["请来医院。"]


def test_a_text_that_was_changed_on_the_screen_is_not_approved(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    console.said(consultation, "我头痛")
    desk = open_page(console.desk_page(consultation))
    expect(desk.locator(DRAFT)).to_be_visible()
    desk.evaluate("document.querySelector('[data-testid=draft]').firstElementChild.textContent = 'You have no'")
    desk.keyboard.press("a")
    expect(desk.locator(".q-notification")).to_be_visible()
    assert console.seen_by_patient(consultation) == []


def test_a_check_that_says_stop_asks_for_a_reason(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened("en")
    turn = console.said(consultation, "I am allergic to penicillin and have a fever")
    console.desk.drafting.write(DEMO_PHYSICIAN, turn.id, "Take amoxicillin.")
    desk = open_page(console.desk_page(consultation), "en")
    expect(desk.locator("[data-testid=checks] .check-of-stop").first).to_be_visible()
    desk.keyboard.press("a")
    desk.click("[data-testid=override]")
    expect(desk.locator(".q-dialog .field-error")).to_be_visible()
    assert console.seen_by_patient(consultation) == []
    desk.fill(".q-dialog textarea", "tolerated it twice")
    desk.click("[data-testid=override]")
    expect(desk.locator(".card-sent")).to_be_visible()
    assert console.seen_by_patient(consultation) == ["Take amoxicillin."]
    decided = console.desk.consultations.case(DEMO_PHYSICIAN, consultation.id).decisions[-1]
    assert decided.reason == "tolerated it twice"


def test_a_red_flag_stands_above_everything_and_is_told_to_the_patient(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    console.said(consultation, "我胸口压榨样疼痛半个小时了，还出冷汗")
    desk = open_page(console.desk_page(consultation))
    banner, card = desk.locator("[data-testid=banner]"), desk.locator(".card").first
    expect(banner).to_be_visible()
    above, below = banner.bounding_box(), card.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"]
    patient = open_page(console.patient_page(consultation))
    expect(patient.locator(".notice-stop")).to_contain_text("120")


@pytest.mark.usefixtures("drafts_stopped")
def test_with_drafts_switched_off_the_console_says_so_and_the_physician_can_still_answer(
    console: Served, open_page: OpenPage
) -> None:
    consultation = console.opened("en")
    console.said(consultation, "I have a headache")
    desk = open_page(console.desk_page(consultation), "en")
    expect(desk.locator(".pill-off")).to_be_visible()
    expect(desk.locator(".desk-draft .empty-body")).to_contain_text("the model is being examined")
    desk.keyboard.press("e")
    desk.fill("[data-composer=edit] textarea", "Since when?")
    desk.press("[data-composer=edit] textarea", "Control+Enter")
    expect(desk.locator(DRAFT)).to_have_text("Since when?")
    desk.keyboard.press("a")
    expect(desk.locator(".card-sent")).to_contain_text("Since when?")


def test_a_model_that_fails_leaves_a_way_on(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened("en")
    console.said(consultation, "crash")
    desk = open_page(console.desk_page(consultation), "en")
    expect(desk.locator(".desk-draft .empty-title")).to_have_text("There is no draft")
    expect(desk.get_by_role("button", name="Write it yourself")).to_be_visible()


def test_doubt_is_shown_with_its_reason(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened("en")
    console.said(consultation, "I am unsure, a headache")
    desk = open_page(console.desk_page(consultation), "en")
    expect(desk.locator("[data-testid=abstain]")).to_contain_text("no kind of action stands out")


def test_the_consultation_of_another_physician_looks_like_none(console: Served, open_page: OpenPage) -> None:
    other = console.desk.consultations.open(Actor("bob", "physician"), "en")
    desk = open_page(console.desk_page(other), "en")
    expect(desk.locator(".empty-title")).to_have_text("This consultation is not here")


def test_a_patients_link_nobody_signed_opens_nothing(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    console.said(consultation, "我头痛")
    forged = open_page(f"{console.address}/patient/{patient_token('another secret', consultation.id)}")
    expect(forged.locator(".empty")).to_be_visible()
    expect(forged.locator("textarea")).to_have_count(0)
    assert "头痛" not in forged.content()
