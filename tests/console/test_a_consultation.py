"""A whole consultation between two browsers, in both languages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agent.conftest import run as trained_run
from tests.agent.conftest import tiny_corpus
from tests.console.conftest import OpenPage
from tests.console.serving import Served, served
from vrbot.serving.api.settings import DEMO_PHYSICIAN
from vrbot.serving.records import Consultation

__all__ = ["tiny_corpus", "trained_run"]

OPTION = ".finder .button-option"
DRAFT, BEFORE, CHIP = "[data-testid=draft]", "[data-testid=draft-before]", "[data-testid=state] [data-chip]"


@dataclass(frozen=True)
class Talk:
    """What is said, in a language."""

    language: str
    said: str
    dropped: str
    first: str
    then: str


TALKS = (
    Talk("zh", "我咳嗽三天了，还发烧", "发烧", "您有咳嗽、发烧。考虑流感。", "您有咳嗽。考虑流感。"),
    Talk(
        "en",
        "I have had a cough for three days, and a fever",
        "fever",
        "You have cough, fever. It may be influenza.",
        "You have cough. It may be influenza.",
    ),
)


def write_to_physician(page: Page, text: str) -> None:
    page.fill("textarea", text)
    page.press("textarea", "Enter")


def reload_at(page: Page, address: str) -> None:
    """Waits for the address too: it follows what is shown in a message of its own."""
    expect(page).to_have_url(re.compile(address))
    page.reload()


def remove_chip(page: Page, name: str) -> None:
    page.click(f'[data-chip="{name}"] .button-icon')


def add_term(page: Page, name: str, *, typed: str, box: int) -> None:
    """Finds a term in the box behind the plus of the state (0) or of the keywords (1), and takes it."""
    page.click(f".button-add >> nth={box}")
    page.fill(".finder input", typed)
    page.click(f'{OPTION}:has-text("{name}")')


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.language)
def test_a_patient_gets_exactly_the_text_a_physician_approved_after_trying_another_state(
    talk: Talk, console: Served, open_page: OpenPage
) -> None:
    consultation = console.opened(talk.language)
    patient = open_page(console.patient_page(consultation), talk.language)
    desk = open_page(console.desk_page(consultation), talk.language)
    write_to_physician(patient, talk.said)
    expect(patient.locator("[data-testid=line-you]")).to_contain_text(talk.said)
    expect(desk.locator(DRAFT)).to_have_text(talk.first)
    expect(desk.locator(CHIP)).to_have_count(2)
    expect(desk.locator("[data-testid=paths] svg").first).to_be_visible()
    expect(desk.locator("[data-testid=categories] [data-category]")).to_have_count(4)
    desk.click(f'[data-chip="{talk.dropped}"] .chip-name')
    expect(desk.locator(".chat .lit")).to_have_text(talk.dropped)
    remove_chip(desk, talk.dropped)
    expect(desk.locator(DRAFT)).to_have_text(talk.then)
    expect(desk.locator(BEFORE)).to_have_text(talk.first)
    reload_at(desk, "at=")
    expect(desk.locator(DRAFT)).to_have_text(talk.then)
    expect(desk.locator(BEFORE)).to_have_text(talk.first)
    desk.click("[data-testid=save-label]")
    expect(desk.locator("[data-testid=save-label]")).to_be_disabled()
    assert console.seen_by_patient(consultation) == []
    desk.keyboard.press("a")
    expect(patient.locator("[data-testid=line-physician] .say-text")).to_have_text(talk.then)
    assert console.seen_by_patient(consultation) == [talk.then]
    turn = console.desk.consultations.case(DEMO_PHYSICIAN, consultation.id).turns[0]
    kept = console.desk.annotation.labels_of(DEMO_PHYSICIAN, turn.id)["state"].value
    assert talk.dropped not in kept


def test_undo_goes_back_to_the_draft_before_and_category_and_keywords_can_be_tried_too(
    console: Served, open_page: OpenPage
) -> None:
    consultation = console.opened()
    console.said(consultation, "我咳嗽")
    desk = open_page(console.desk_page(consultation))
    expect(desk.locator(DRAFT)).to_have_text("您有咳嗽。考虑流感。")
    desk.click("[data-category=ask_symptoms]")
    expect(desk.locator(DRAFT)).to_have_text("您有咳嗽。有没有流感？")
    add_term(desk, "头痛", typed="头", box=1)
    expect(desk.locator(DRAFT)).to_have_text("您有咳嗽。有没有流感 头痛？")
    desk.keyboard.press("u")
    expect(desk.locator(DRAFT)).to_have_text("您有咳嗽。有没有流感？")
    desk.keyboard.press("u")
    expect(desk.locator(DRAFT)).to_have_text("您有咳嗽。考虑流感。")
    expect(desk.locator(BEFORE)).to_have_count(0)


def test_a_term_that_still_matches_keeps_its_button_while_somebody_types(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    console.said(consultation, "我咳嗽")
    desk = open_page(console.desk_page(consultation))
    desk.click(".button-add >> nth=1")
    option = desk.locator(f'{OPTION}:has-text("头痛")').element_handle()
    desk.fill(".finder input", "头")
    expect(desk.locator(f'{OPTION}:has-text("咳嗽")')).to_have_count(0)
    option.click()
    expect(desk.locator(DRAFT)).to_have_text("您有咳嗽。考虑流感 头痛。")
    desk.click(".button-add >> nth=1")
    desk.fill(".finder input", "没有这个词")
    expect(desk.locator(OPTION)).to_have_count(0)
    expect(desk.locator(".finder .hint")).to_be_visible()


def test_two_screens_of_one_consultation_show_the_same(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    screens = [open_page(console.desk_page(consultation)) for _ in range(2)]
    console.said(consultation, "我头痛")
    for screen in screens:
        expect(screen.locator(DRAFT)).to_have_text("您有头痛。考虑流感。")
    screens[0].keyboard.press("a")
    for screen in screens:
        expect(screen.locator(".card-sent")).to_contain_text("您有头痛。考虑流感。")


def test_a_text_being_written_outlives_a_reload(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    console.said(consultation, "我头痛")
    patient, desk = open_page(console.patient_page(consultation)), open_page(console.desk_page(consultation))
    patient.fill("textarea", "还没写完")
    expect(desk.locator(DRAFT)).to_be_visible()
    desk.keyboard.press("e")
    desk.fill("[data-composer=edit] textarea", "多喝水，")
    patient.reload()
    reload_at(desk, "write=1")
    expect(patient.locator("textarea")).to_have_value("还没写完")
    expect(desk.locator("[data-composer=edit] textarea")).to_have_value("多喝水，")


def test_a_trained_model_answers_and_can_be_steered(trained_run: Path, tmp_path: Path, open_page: OpenPage) -> None:
    with served(tmp_path, trained_run) as console:
        steer_and_approve(console, open_page)


def steer_and_approve(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    console.said(consultation, "我咳嗽三天了，发烧，头痛")
    desk = open_page(console.desk_page(consultation))
    expect(desk.locator("[data-testid=accept]")).to_be_visible()
    add_term(desk, "腹泻", typed="腹泻", box=0)
    expect(desk.locator(BEFORE)).to_be_visible()
    expect(desk.locator('[data-chip="腹泻"]')).to_be_visible()
    shown = desk.locator(DRAFT).text_content()
    desk.keyboard.press("a")
    expect(desk.locator(".card-sent")).to_be_visible()
    assert console.seen_by_patient(consultation) == [shown]


def as_sent(console: Served, consultation: Consultation) -> list[str]:
    return [turn.text for turn in console.desk.consultations.case(DEMO_PHYSICIAN, consultation.id).turns]


def test_enter_that_ends_a_composition_of_chinese_does_not_send(console: Served, open_page: OpenPage) -> None:
    consultation = console.opened()
    patient = open_page(console.patient_page(consultation))
    patient.focus("textarea")
    tools = patient.context.new_cdp_session(patient)
    tools.send("Input.imeSetComposition", {"text": "ke sou", "selectionStart": 6, "selectionEnd": 6})
    patient.evaluate("window.heard = []; document.addEventListener('keydown', (e) => heard.push(e.isComposing), true)")
    enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
    tools.send("Input.dispatchKeyEvent", {"type": "keyDown", **enter})
    tools.send("Input.dispatchKeyEvent", {"type": "keyUp", **enter})
    for settings in ("{isComposing: true}", "{keyCode: 229}"):
        patient.evaluate(
            "(settings) => document.querySelector('textarea').dispatchEvent(new KeyboardEvent('keydown',"
            " {key: 'Enter', bubbles: true, cancelable: true, ...settings}))",
            {"isComposing": True} if "is" in settings else {"keyCode": 229},
        )
    assert patient.evaluate("heard[0]") is True
    patient.wait_for_timeout(300)
    assert as_sent(console, consultation) == []
    tools.send("Input.insertText", {"text": "咳嗽"})
    expect(patient.locator("textarea")).to_have_value("咳嗽")
    patient.press("textarea", "Shift+Enter")
    patient.press("textarea", "Enter")
    expect(patient.locator("[data-testid=line-you]")).to_have_count(1)
    assert [text.strip() for text in as_sent(console, consultation)] == ["咳嗽"]


def test_chinese_is_written_with_a_font_that_has_it(console: Served, open_page: OpenPage) -> None:
    page = open_page(f"{console.address}/consultations")
    pictures = page.evaluate(
        """() => ["咳", "嗽", "\\u{10ffff}"].map((character) => {
            const canvas = document.createElement("canvas");
            const pen = canvas.getContext("2d");
            pen.font = "40px " + getComputedStyle(document.body).fontFamily;
            pen.fillText(character, 5, 50);
            return canvas.toDataURL();
        })"""
    )
    assert len(set(pictures)) == 3  # the box for what no font has would be the same each time
