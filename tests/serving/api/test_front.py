"""The layer around the app: sign-in, forged requests, headers, limits, and what is logged."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.serving.api.served import HERE, PASSWORD, Served, desk_of, serving
from vrbot.errors import ConfigError
from vrbot.serving.accounts import MICROSECONDS
from vrbot.serving.api.settings import AppSettings
from vrbot.serving.api.signin import COOKIE
from vrbot.serving.app import create_app
from vrbot.serving.store import Store

CANARY = "canary-7f3a"


@pytest.fixture
def store() -> Any:
    found = Store.open("sqlite://", create=True)
    yield found
    found.close()


def cookie_call(served: Served, **headers: str) -> int:
    """A write with ann's cookie."""
    cookies = {**headers, "Cookie": f"{COOKIE}={served.tokens['ann']}"}
    return served.client.post("/api/v1/consultations", json={"language": "en"}, headers=cookies).status_code


def test_sign_in_gives_a_token_and_a_cookie_that_scripts_cannot_read(served: Served) -> None:
    answer = served.post("/sign-in", {"name": "ann", "password": PASSWORD}, who=None)
    cookie = answer.headers["set-cookie"]
    assert all(mark in cookie for mark in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age="))
    served.tokens["again"] = answer.json()["token"]
    assert served.get("/me", who="again").json()["role"] == "physician"
    assert served.post("/sign-out", who="again").status_code == 204
    assert served.get("/me", who="again").status_code == 401
    wrong = served.post("/sign-in", {"name": "ann", "password": "wrong password"}, who=None)
    assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, 'Bearer realm="vrbot"')


def test_a_sign_in_expires(store: Store) -> None:
    with serving(desk_of(store)) as served:
        assert served.get("/me").status_code == 200
        now = store.clock()
        store.clock = lambda: now + 3601 * MICROSECONDS
        assert served.get("/me").status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": HERE}, 201),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": HERE + ".evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Origin": HERE}, 403),
    ],
)
def test_a_write_by_cookie_must_come_from_our_own_page(headers: dict[str, str], status: int, served: Served) -> None:
    assert cookie_call(served, **headers) == status


def test_a_form_of_another_site_cannot_write_in_an_open_demonstration_either(store: Store) -> None:
    with serving(desk_of(store, demo=True), open_demo=True) as served:
        assert served.post("/consultations", {}, who=None).status_code == 201
        foreign = served.client.post("/api/v1/consultations", json={}, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        named = served.client.get("/api/v1/consultations", headers={"Host": "evil.example:8080"})
        assert named.status_code == 421
        assert served.client.get("/api/v1/consultations", headers={"Host": "localhost:8080"}).status_code == 200


def test_only_a_demonstration_does_without_sign_in(store: Store) -> None:
    with pytest.raises(ConfigError, match="demonstration"):
        create_app(desk_of(store), AppSettings(open_demo=True, console=False))


def test_the_first_administrator_is_made_once_and_only_with_the_code(store: Store) -> None:
    desk = desk_of(store)
    from fastapi.testclient import TestClient

    app = create_app(desk, AppSettings(console=False, setup_code="one-time"))
    with TestClient(app, base_url=HERE) as client:
        asked = {"name": "root", "password": PASSWORD}
        assert client.post("/api/v1/setup", json={**asked, "code": "guess"}).status_code == 403
        made = client.post("/api/v1/setup", json={**asked, "code": "one-time"})
        assert (made.status_code, made.json()["role"]) == (201, "admin")
        again = client.post("/api/v1/setup", json={"name": "eve", "password": PASSWORD, "code": "one-time"})
        assert again.status_code == 409


@pytest.mark.parametrize("path", ["/api/v1/me", "/v1/models", "/livez", "/api/v1/nothing", "/nothing"])
def test_every_answer_carries_strict_headers(path: str, served: Served) -> None:
    headers = served.call("GET", path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "server" not in headers
    if path != "/nothing":
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"].startswith("default-src 'none'")


def test_https_asks_browsers_to_stay_and_keeps_the_cookie_to_it(store: Store) -> None:
    with serving(desk_of(store), https=True) as served:
        answer = served.post("/sign-in", {"name": "ann", "password": PASSWORD}, who=None)
        assert "Secure" in answer.headers["set-cookie"]
        assert "max-age" in answer.headers["strict-transport-security"]


def test_a_body_that_is_too_large_is_refused_with_or_without_its_length(store: Store) -> None:
    with serving(desk_of(store), max_body_bytes=1000) as served:
        path, headers = "/api/v1/consultations", {"Authorization": f"Bearer {served.tokens['ann']}"}
        large = b'{"reference": "' + b"x" * 2000 + b'"}'
        assert served.client.post(path, content=large, headers=headers).status_code == 413
        pieces = served.client.post(path, content=iter([large]), headers=headers)
        assert pieces.status_code == 413
        assert pieces.json()["status"] == 413


def test_too_many_requests_and_too_many_sign_ins_are_told_to_wait(store: Store) -> None:
    with serving(desk_of(store), sign_ins_per_minute=3, requests_per_minute=20) as served:
        wrong = {"name": "ann", "password": "wrong password"}
        statuses = [served.post("/sign-in", wrong, who=None).status_code for _ in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        answers = [served.get("/me") for _ in range(25)]
        assert {answer.status_code for answer in answers} == {200, 429}
        assert answers[-1].headers["retry-after"] == "1"
        assert served.client.get("/livez").status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"language": ' + b"9" * 10_000 + b"}", 400),
        (b'{"language": "fr"}', 422),
        (b'{"surprise": 1}', 422),
        (b'{"reference": "\\ud800"}', 422),
        (b"\xff\xfe", 400),
        (b"null", 422),
    ],
)
def test_what_cannot_be_read_is_one_line_and_is_not_repeated(body: bytes, status: int, served: Served) -> None:
    answer = served.call("POST", "/api/v1/consultations", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert "\n" not in answer.json()["detail"]
    assert "surprise" not in answer.json()["detail"] or status == 422
    assert len(answer.content) < 1500


def test_no_log_no_metric_and_no_error_repeats_what_was_said(
    served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="vrbot")  # a server in this process may have quietened it
    consultation = served.opened()
    key = served.get(f"/consultations/{consultation}/patient-link").json()["key"]
    answers = []
    for text in (f"{CANARY} cough", f"{CANARY} crash", f"{CANARY} broken"):
        turn = served.said(consultation, text, text.replace(" ", "-").replace(CANARY, "c"))
        served.post(f"/turns/{turn['id']}/drafts")
        served.post("/patient/" + key + "/turns", {"client_turn_id": text[-4:], "text": text}, who=None)
        answers.append(served.post(f"/consultations/{consultation}/turns", {"client_turn_id": [text], "text": text}))
        chat = {"messages": [{"role": "user", "content": text}]}
        served.call("POST", "/v1/chat/completions", json=chat)
        answers.append(served.call("POST", "/v1/chat/completions", json={"messages": [{"role": text}]}))

    def fails(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError(CANARY)

    monkeypatch.setattr(served.desk.consultations, "all_of", fails)
    fault = served.get("/consultations")
    assert fault.status_code == 500
    answers.append(fault)
    assert "ZeroDivisionError" in caplog.text
    assert "POST /api/v1/patient/{key}/turns" in caplog.text
    own = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith(("vrbot", "uvicorn")))
    for text in (own, served.client.get("/metrics").text, *(answer.text for answer in answers)):
        assert CANARY not in text
        assert key not in text


def test_readiness_waits_for_the_first_turn_and_says_what_is_missing(store: Store) -> None:
    from tests.serving.fakes import PlainRules, quick_accounts
    from vrbot.serving.service import Desk

    desk = Desk(store, PlainRules(), None)
    desk.accounts = quick_accounts(store)
    with serving(desk) as served:
        answer = served.client.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["checks"]["first turn"] == "no model is loaded"
        assert answer.json()["checks"]["database"] == "good"
        assert served.client.get("/livez").status_code == 200
