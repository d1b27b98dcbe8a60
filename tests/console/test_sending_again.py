"""A message whose fate is not known is sent again as the same message."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.conftest import OpenPage
from tests.console.serving import Served


def test_a_message_keeps_its_id_until_the_server_has_it(console: Served, open_page: OpenPage) -> None:
    patient = open_page(console.patient_page(console.opened()))
    patient.fill("textarea", "我头痛")
    first, again, other = patient.evaluate(
        """() => {
            const box = document.querySelector("[data-composer] textarea");
            const send = () => vrbot.message(box).id;
            const ids = [send()];
            vrbot.sent("patient", "我头痛", false);
            ids.push(send());
            vrbot.sent("patient", "我头痛", true);
            box.value = "还发烧";
            return [...ids, send()];
        }"""
    )
    assert first == again != other


def test_a_message_that_was_stored_though_its_answer_was_lost_is_stored_once(
    console: Served, open_page: OpenPage
) -> None:
    consultation = console.opened()
    patient = open_page(console.patient_page(consultation))
    patient.fill("textarea", "我头痛")
    name = patient.evaluate(
        """() => {
            const name = vrbot.message(document.querySelector("[data-composer] textarea")).id;
            vrbot.sent("patient", "我头痛", false);
            return name;
        }"""
    )
    console.desk.consultations.receive_from_patient(consultation.id, name, "我头痛")
    patient.press("textarea", "Enter")
    expect(patient.locator("textarea")).to_have_value("")
    expect(patient.locator("[data-testid=line-you]")).to_have_count(1)
