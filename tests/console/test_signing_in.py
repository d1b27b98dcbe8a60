"""Outside a demonstration nobody sees a page before signing in, and then only those of their role."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.console.conftest import OpenPage
from tests.console.serving import SETUP_CODE, served
from vrbot.serving.actors import OPERATOR

PASSWORD = "a long password"


def fill_in(page: Page, **values: str) -> None:
    for name, value in values.items():
        page.fill(f"form [name={name}]", value)
    page.click("form button")


def test_the_first_account_is_made_with_the_code_and_each_role_finds_its_own_pages(
    tmp_path: Path, open_page: OpenPage
) -> None:
    with served(tmp_path, sign_in=True) as console:
        page = open_page(f"{console.address}/consultations", "en")
        fill_in(page, code="a guess", name="root", password=PASSWORD)
        expect(page.locator(".field-error")).to_be_visible()
        fill_in(page, code=SETUP_CODE, name="root", password=PASSWORD)
        expect(page.locator("h1")).to_have_text("Sign in")
        console.desk.accounts.add(OPERATOR, "ann", PASSWORD, "physician")
        page.goto(f"{console.address}/consultations")
        fill_in(page, name="ann", password="another password")
        expect(page.locator(".field-error")).to_contain_text("do not belong together")
        fill_in(page, name="ann", password=PASSWORD)
        expect(page.locator("h1")).to_have_text("Consultations")
        assert page.url == f"{console.address}/consultations"
        assert "/audit" not in page.content()
        page.goto(f"{console.address}/audit")
        expect(page.locator(".empty-title")).to_have_text("Nothing here for this account")
        page.click("[data-testid=account]")
        page.click("text=Sign out")
        expect(page.locator("h1")).to_have_text("Sign in")
        page.goto(f"{console.address}/consultations")
        expect(page.locator("h1")).to_have_text("Sign in")


def test_a_page_that_was_left_open_goes_to_sign_in_when_the_account_is_shut(
    tmp_path: Path, open_page: OpenPage
) -> None:
    with served(tmp_path, sign_in=True) as console:
        console.desk.accounts.add(OPERATOR, "ann", PASSWORD, "physician")
        page = open_page(f"{console.address}/consultations", "en")
        fill_in(page, name="ann", password=PASSWORD)
        expect(page.locator("h1")).to_have_text("Consultations")
        console.desk.accounts.set_disabled(OPERATOR, "ann")
        expect(page.locator("h1")).to_have_text("Sign in")
        assert page.url == f"{console.address}/sign-in?next=/consultations"
