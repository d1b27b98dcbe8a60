"""Two hundred texts that would run a script, in patients' words, in names and copied by the model: none runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from tests.console.conftest import OpenPage
from tests.console.payloads import PAYLOADS
from tests.console.serving import Served, served
from vrbot.errors import VRBotError
from vrbot.serving.actors import OPERATOR
from vrbot.serving.api.settings import DEMO_PHYSICIAN
from vrbot.serving.records import Consultation

pytestmark = pytest.mark.slow
AT_ONCE = 20
HALVES = (0, 1)
FOREIGN = """() => [...document.querySelectorAll("body *")].filter((one) =>
  [...one.attributes].some((each) => /^on/i.test(each.name) || /^\\s*javascript:/i.test(each.value))
  || (one.closest("main") && ["IMG", "SCRIPT", "IFRAME", "OBJECT", "EMBED", "STYLE"].includes(one.tagName))
).map((one) => one.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def infested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A desk of its own: nobody else has to look at these."""
    with served(tmp_path_factory.mktemp("infested")) as running:
        yield running


@pytest.fixture(scope="module", params=HALVES)
def talk(request: pytest.FixtureRequest, infested: Served) -> tuple[Consultation, tuple[str, ...]]:
    """A consultation whose patient writes payloads, which the model copies as terms, and whose drafts are approved."""
    desk, consultation = infested.desk, infested.opened("en", reference="half of them")
    payloads = PAYLOADS[request.param :: len(HALVES)]
    for payload in payloads:
        turn = infested.said(consultation, f"{payload} term:{payload}")
        draft = desk.drafting.draft(DEMO_PHYSICIAN, turn.id)
        assert payload in (draft.text or "")
        desk.signoff.approve(DEMO_PHYSICIAN, draft.id, draft.text_sha256 or "", override_reason="a test")
    return consultation, payloads


def texts(page: Page, place: str, at_least: int) -> list[str]:
    """What stands in these elements, once all of them are there; nothing of it is an element."""
    expect(page.locator(place).nth(at_least - 1)).to_be_attached()
    page.wait_for_timeout(500)  # what would run has had its time
    assert page.evaluate(FOREIGN) == []
    return page.locator(place).all_text_contents()


def test_there_are_two_hundred_and_a_page_that_took_them_for_html_would_run_most(browser: Browser) -> None:
    assert len(set(PAYLOADS)) >= 200
    page, ran = browser.new_page(), list[str]()

    def heard(dialog: Dialog) -> None:
        ran.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", heard)
    for start in range(0, len(PAYLOADS), AT_ONCE):
        frames = "".join(f"<iframe id=f{number}></iframe>" for number in range(AT_ONCE))
        page.set_content(frames)
        for number, payload in enumerate(PAYLOADS[start : start + AT_ONCE]):
            page.evaluate("([n, text]) => { document.getElementById('f' + n).srcdoc = text }", [number, payload])
        page.wait_for_timeout(300)
    page.close()
    assert len(ran) >= 100


@pytest.mark.parametrize("half", HALVES)
def test_no_name_of_a_consultation_runs(half: int, infested: Served, open_page: OpenPage) -> None:
    names = PAYLOADS[half :: len(HALVES)]  # a list shows the newest 200
    for name in names:
        infested.opened("en", reference=name)
    found = texts(open_page(f"{infested.address}/consultations", "en"), ".list-title", len(names))
    assert set(found) >= set(names)


def test_no_word_of_a_patient_or_copy_of_the_model_runs_at_the_desk_or_with_the_patient(
    infested: Served, talk: tuple[Consultation, tuple[str, ...]], open_page: OpenPage
) -> None:
    consultation, payloads = talk
    said, copied = {f"{each} term:{each}" for each in payloads}, set(infested.seen_by_patient(consultation))
    assert len(copied) == len(payloads)
    everything = 2 * len(payloads)
    for address in (infested.desk_page(consultation), infested.patient_page(consultation)):
        assert set(texts(open_page(address, "en"), ".say-text", everything)) >= said | copied


def test_no_term_a_model_proposes_as_a_label_runs(
    infested: Served, talk: tuple[Consultation, tuple[str, ...]], open_page: OpenPage
) -> None:
    consultation, payloads = talk
    page = open_page(f"{infested.address}/annotation?dialogue={consultation.id}", "en")
    for kind in ("state", "keywords"):
        chips = texts(page, f"[data-testid={kind}] .label-chip > span:first-child", len(payloads))
        assert set(chips) >= set(payloads)


@pytest.mark.parametrize("start", range(0, len(PAYLOADS), AT_ONCE))
def test_no_draft_chip_or_path_that_holds_them_runs(start: int, infested: Served, open_page: OpenPage) -> None:
    evil = "\n".join(PAYLOADS[start : start + AT_ONCE])
    consultation = infested.opened("en")
    infested.said(consultation, f"term:{evil}")
    desk = open_page(infested.desk_page(consultation), "en")
    expect(desk.locator("[data-testid=paths] svg").first).to_be_visible()
    assert (desk.locator("[data-testid=draft]").text_content() or "").count(evil) == 2
    expect(desk.locator("[data-testid=state] .chip-text").first).to_be_visible()
    assert desk.evaluate(FOREIGN) == []


def test_no_payload_is_a_name_somebody_can_sign_in_with(infested: Served) -> None:
    for payload in PAYLOADS:
        with pytest.raises(VRBotError):
            infested.desk.accounts.add(OPERATOR, payload, "a long password", "physician")
