"""Annotation, blind evaluation, experiments, card and audit in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Response, expect

from tests.console.invented_results import put_experiment
from tests.console.records_world import PAYLOAD, World, running
from tests.console.small_study import put_study
from tests.evaluation.invented_study import SYSTEMS
from vrbot.serving import console
from vrbot.serving.console.table import PAGES

Visit = Callable[..., "Seen"]
pytestmark = pytest.mark.slow


class Seen:
    """A page and all that was sent to it; a script of anybody's that runs, or an error, is a fault."""

    def __init__(self, context: BrowserContext) -> None:
        self.received: list[str] = []
        self.faults: list[str] = []
        self.page: Page = context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._frame))
        self.page.on("response", self._response)
        self.page.on("dialog", self._dialog)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"a script ran: {dialog.message}")
        dialog.dismiss()

    def _frame(self, payload: str | bytes) -> None:
        self.received.append(payload if isinstance(payload, str) else payload.decode("utf-8", "replace"))

    def _response(self, response: Response) -> None:
        kind = response.headers.get("content-type", "")
        if "/_nicegui/" not in response.url and re.search("html|json", kind) and response.status == 200:
            self.received.append(response.text())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    put_study(folder / "study", note=PAYLOAD)
    put_experiment(folder / "experiments" / "latents", "latents")
    with running(folder) as served:
        yield served


@pytest.fixture
def visit(browser: Browser, world: World) -> Iterator[Visit]:
    contexts: list[BrowserContext] = []
    pages: list[Seen] = []

    def open_one(user: str, path: str, language: str = "en") -> Seen:
        contexts.append(browser.new_context(viewport={"width": 1440, "height": 900}))
        contexts[-1].add_cookies(world.cookie(user, language))
        pages.append(Seen(contexts[-1]))
        pages[-1].page.goto(world.address + path)
        return pages[-1]

    yield open_one
    faults = [fault for seen in pages for fault in seen.faults]
    for context in contexts:
        context.close()
    assert faults == []


def _reload_at_turn_two(page: Page) -> None:
    """Waits for the address too: it follows the mark in a message of its own."""
    expect(page.locator("#turn-2")).to_have_attribute("aria-current", "true")
    expect(page).to_have_url(re.compile("turn=2$"))
    page.reload()


def test_a_label_corrected_by_keys_is_still_there_after_a_reload(visit: Visit) -> None:
    page = visit("eve", "/annotation").page
    first = page.get_by_test_id("turn").first
    expect(first.get_by_test_id("category").locator("[aria-pressed=true]")).to_have_text("Diagnosis")
    page.keyboard.press("1")
    expect(page.get_by_test_id("autosave")).to_contain_text("Saved at")
    page.keyboard.press("s")
    expect(page.locator("#turn-1-state")).to_be_focused()
    page.keyboard.type("stomach ache")
    page.keyboard.press("Enter")
    expect(first.get_by_test_id("state")).to_contain_text("stomach ache")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    _reload_at_turn_two(page)
    first = page.get_by_test_id("turn").first
    expect(first.get_by_test_id("state")).to_contain_text("stomach ache")
    expect(first.get_by_test_id("state")).to_contain_text("saved")
    expect(first.get_by_test_id("category").locator("[aria-pressed=true]")).to_have_text("Ask symptoms")
    expect(first.get_by_test_id("keywords")).to_contain_text("saved")
    expect(page.locator("#turn-2")).to_have_attribute("aria-current", "true")
    expect(page.get_by_text(PAYLOAD).first).to_be_visible()
    assert "Li" not in page.inner_text("main").split()


def test_labels_go_out_as_a_file_and_come_in_again(visit: Visit, tmp_path: Path) -> None:
    page = visit("bob", "/annotation", "zh").page
    with page.expect_download() as started:
        page.get_by_test_id("export").click()
    path = tmp_path / "labels.jsonl"
    started.value.save_as(path)
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) == 2
    page.get_by_test_id("import").click()
    page.set_input_files("input[type=file]", path)
    expect(page.get_by_text("已读入 2 段对话")).to_be_visible()


def test_suggested_labels_are_confirmed_or_corrected_and_say_how_sure_the_model_is(visit: Visit) -> None:
    page = visit("bob", "/annotation").page
    page.get_by_test_id("queue-row").filter(has_text="Chinese").click()
    first = page.get_by_test_id("turn").first
    expect(first).to_contain_text("我咳嗽三天了")
    expect(first.get_by_test_id("category").locator("[aria-pressed=true]")).to_have_text("Diagnosis")
    page.keyboard.press("p")
    expect(first.get_by_test_id("category")).to_contain_text("auto-label, 71% sure")
    expect(first.get_by_test_id("category").locator("[aria-pressed=true]")).to_have_text("Ask symptoms")
    expect(first.get_by_test_id("state")).to_contain_text(PAYLOAD)
    first.get_by_test_id("state").locator(".chip-remove").last.click()
    expect(first.get_by_test_id("state")).to_contain_text("saved")
    page.keyboard.press("a")
    _reload_at_turn_two(page)
    first = page.get_by_test_id("turn").first
    expect(first.get_by_test_id("keywords")).to_contain_text("体温")
    for kind in ("state", "category", "keywords"):
        expect(first.get_by_test_id(kind)).to_contain_text("saved")
    expect(first.get_by_test_id("state")).not_to_contain_text(PAYLOAD)
    expect(page.locator("#turn-2").get_by_test_id("state")).to_contain_text("auto-label, 83% sure")


def test_a_rating_is_blind_and_a_reload_in_the_middle_loses_nothing(visit: Visit) -> None:
    seen = visit("eve", "/evaluation")
    page = seen.page
    page.get_by_test_id("begin").click()
    expect(page.get_by_test_id("candidate")).to_have_count(3)
    order = page.locator(".reply-text").all_inner_texts()
    for key in "4325":
        done = page.get_by_test_id("question").locator("[aria-pressed=true]")
        before = done.count()
        page.keyboard.press(key)
        expect(done).to_have_count(before + 1)
    page.reload()
    expect(page.get_by_test_id("progress")).to_contain_text("4 of")
    assert page.locator(".reply-text").all_inner_texts() == order
    given = page.get_by_test_id("question").locator("[aria-pressed=true]").all_inner_texts()
    assert [text.strip() for text in given] == list("4325")
    page.get_by_role("button", name="Preferences").click()
    page.keyboard.press("2")
    expect(page.get_by_test_id("progress")).to_contain_text("5 of")
    page.get_by_role("button", name="Explanations").click()
    page.keyboard.press("1")
    expect(page.get_by_test_id("progress")).to_contain_text("6 of")
    everything = "\n".join([page.content(), *seen.received])
    assert "回复" in everything
    assert [name for name in (*SYSTEMS, "secret", "key.json") if name in everything] == []


def test_agreement_appears_while_people_rate_and_the_raw_export_has_codes_only(visit: Visit, tmp_path: Path) -> None:
    for user in ("bob", "eve"):
        page = visit(user, "/evaluation", "zh").page
        page.locator("[data-testid=begin], [data-testid=candidate]").first.wait_for()
        if page.get_by_test_id("begin").count():
            page.get_by_test_id("begin").click()
            expect(page.get_by_test_id("candidate")).to_have_count(3)
        for screen in (1, 2):
            page.goto(f"{page.url.partition('?')[0]}?screen={screen}")
            expect(page.get_by_test_id("progress")).to_contain_text(f"第 {screen} /")
            for place in range(3):
                row = page.get_by_test_id("question").nth(3 * place)
                row.locator(f"[data-answer='{2 + place}']").click()
                expect(row.locator("[aria-pressed=true]")).to_have_text(str(2 + place))
    researcher = visit("ray", "/evaluation").page
    expect(researcher.get_by_test_id("agreement")).to_contain_text("%", timeout=120_000)
    with researcher.expect_download() as started:
        researcher.get_by_test_id("export").click()
    started.value.save_as(tmp_path / "raw.jsonl")
    content = (tmp_path / "raw.jsonl").read_text("utf-8")
    assert '"asked": "Flu"' in content
    assert not any(system in content for system in SYSTEMS)


def test_the_log_is_verified_a_draft_replayed_and_drafts_stopped(visit: Visit) -> None:
    page = visit("sue", "/audit").page
    page.get_by_test_id("verify").click()
    expect(page.get_by_test_id("verified")).to_contain_text("The log is whole")
    page.get_by_label("Kind").select_option("draft made")
    expect(page.get_by_test_id("event").first).to_contain_text("draft made")
    page.get_by_test_id("event").last.click()
    page.get_by_test_id("replay").click()
    expect(page.get_by_test_id("replayed")).to_contain_text("to the last bit")
    page.get_by_role("link", name="Accounts").click()
    expect(page.get_by_test_id("user")).to_have_count(6)
    page.get_by_role("link", name="Kill switch").click()
    page.get_by_test_id("reason").fill(PAYLOAD)
    page.get_by_test_id("throw").click()
    expect(page.get_by_test_id("switch")).to_contain_text("Drafts are stopped")
    expect(page.get_by_test_id("switch")).to_contain_text(PAYLOAD)
    page.get_by_test_id("reason").fill("checked")
    page.get_by_test_id("throw").click()
    expect(page.get_by_test_id("switch")).to_contain_text("Drafts are allowed")


def test_card_and_experiments_show_foreign_text_as_text(visit: Visit) -> None:
    page = visit("ray", "/model", "zh").page
    expect(page.get_by_role("heading", name="规模")).to_be_visible()
    assert page.inner_text("main").count("alert(") >= 8
    assert page.locator("main img, main script").count() == 0
    page = visit("ray", "/experiments", "zh").page
    expect(page.locator("table").first).to_be_visible(timeout=180_000)
    expect(page.locator(".panel svg")).to_have_count(3)
    expect(page.get_by_text("<b>out</b> of memory")).to_be_visible()


OPEN_TO: dict[str, set[str | None]] = {
    "/": {"ann", "eve", "ray", "sue"},
    "/consultations": {"ann"},
    "/consultations/{consultation}": {"ann"},
    "/annotation": {"ann", "eve"},
    "/evaluation": {"ann", "eve", "ray"},
    "/experiments": {"ann", "eve", "ray", "sue"},
    "/model": {"ann", "eve", "ray", "sue"},
    "/audit": {"sue"},
    "/sign-in": {"ann", "eve", "ray", "sue", None},
    "/patient/{token}": {"ann", "eve", "ray", "sue", None},
}
"""Every page -> to whom it is open: a physician, an annotator, a researcher, an administrator, nobody signed in."""


def test_the_table_names_every_page_and_no_other() -> None:
    registered = {entry.path for entry in PAGES}
    for module in Path(console.__file__).parent.rglob("*.py"):
        registered |= set(re.findall(r'@ui\.page\(\s*"([^"]+)"', module.read_text("utf-8")))
    assert registered == set(OPEN_TO)


@pytest.mark.parametrize("path", OPEN_TO)
def test_a_page_is_closed_to_roles_it_is_not_for(path: str, world: World) -> None:
    address = world.address + path.format(consultation="0" * 32, token="none")
    for user in ("ann", "eve", "ray", "sue", None):
        cookies = {} if user is None else {each["name"]: each["value"] for each in world.cookie(user, "en")}
        answer = httpx.get(address, cookies=cookies, follow_redirects=False, timeout=60)
        if user is None and None not in OPEN_TO[path]:
            assert (answer.status_code, answer.headers["location"][:8]) == (307, "/sign-in"), path
        else:
            closed = "Nothing here for this account" in answer.text
            assert closed == (user not in OPEN_TO[path]), (path, user)
