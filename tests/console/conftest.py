"""A server, and browsers that must not leave this machine, run a script of a patient's, or meet an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect, sync_playwright

from tests.console.serving import Served, served
from tests.real_data import needs_program

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
PATIENCE = 20_000
OpenPage = Callable[..., Page]


@pytest.fixture(scope="package")  # while it is open, its thread cannot run an event loop of anybody else's
def browser() -> Iterator[Browser]:
    """Debian's chromium."""
    program = needs_program("chromium")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(program), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens addresses in browsers of their own: `open_page(address, language="zh", narrow=False, dark=False)`."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def open_one(address: str, language: str = "zh", *, narrow: bool = False, dark: bool = False) -> Page:
        locale = "zh-CN" if language == "zh" else "en-GB"
        scheme = "dark" if dark else "light"
        context = browser.new_context(
            viewport=NARROW if narrow else WIDE,  # type: ignore[arg-type]
            locale=locale,
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
        page.on("dialog", lambda dialog: _no_dialog(dialog, faults))
        page.on("request", lambda request: _stays_here(request.url, faults))
        page.goto(address)
        page.wait_for_selector("main")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert faults == []


def _no_dialog(dialog: Dialog, faults: list[str]) -> None:
    faults.append(f"a script ran: {dialog.message}")
    dialog.dismiss()


def _stays_here(address: str, faults: list[str]) -> None:
    if not address.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
        faults.append(f"the page left the machine: {address}")
