"""A desk behind its app, with somebody of every role signed in, and apps on real ports."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.serving.fakes import Parrot, PlainRules, quick_accounts
from vrbot.serving.actors import OPERATOR, ROLES
from vrbot.serving.app import AppSettings, create_app
from vrbot.serving.service import Desk
from vrbot.serving.store import Store

PASSWORD = "a long password"
HERE = "http://127.0.0.1"
V1 = "/api/v1"
PATIENCE = 60.0


def desk_of(store: Store, parrot: Any = None, *, demo: bool = False) -> Desk:
    """A desk whose passwords cost next to nothing to check."""
    desk = Desk(store, PlainRules(), parrot or Parrot(), demo=demo)
    desk.accounts = quick_accounts(store)
    return desk


def settings_of(**changes: Any) -> AppSettings:
    """Settings for tests: no console, and limits nobody meets by chance."""
    usual: dict[str, Any] = {"console": False, "requests_per_minute": 10**6, "sign_ins_per_minute": 10**6}
    return AppSettings(**{**usual, "drain_pause": 0.1, **changes})


class Served:
    """An app and clients for each role; `ann` and `bob` are physicians."""

    def __init__(self, client: TestClient, desk: Desk) -> None:
        self.client, self.desk = client, desk
        self.tokens: dict[str, str] = {}

    def sign_in(self, name: str, role: str) -> str:
        self.desk.accounts.add(OPERATOR, name, PASSWORD, role)
        self.tokens[name] = self.desk.accounts.sign_in(name, PASSWORD).token
        return self.tokens[name]

    def call(self, method: str, path: str, who: str | None = "ann", **more: Any) -> Any:
        headers = {**more.pop("headers", {})}
        if who is not None:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        self.client.cookies.clear()
        return self.client.request(method, path, headers=headers, **more)

    def post(self, path: str, body: Any = None, who: str | None = "ann") -> Any:
        return self.call("POST", V1 + path, who, json={} if body is None else body)

    def get(self, path: str, who: str | None = "ann") -> Any:
        return self.call("GET", V1 + path, who)

    def opened(self) -> str:
        return str(self.post("/consultations", {"language": "en"}).json()["id"])

    def said(self, consultation: str, text: str, name: str = "t1") -> dict[str, Any]:
        body = {"client_turn_id": name, "text": text}
        return dict(self.post(f"/consultations/{consultation}/turns", body).json())

    def drafted(self, text: str = "a cough") -> dict[str, Any]:
        turn = self.said(self.opened(), text)
        return dict(self.post(f"/turns/{turn['id']}/drafts").json())


@contextmanager
def serving(desk: Desk, **changes: Any) -> Iterator[Served]:
    """An app in this process, called without a port."""
    with TestClient(create_app(desk, settings_of(**changes)), base_url=HERE) as client:
        served = Served(client, desk)
        for role in ROLES:
            served.sign_in(role, role)
        served.sign_in("ann", "physician")
        served.sign_in("bob", "physician")
        yield served


@contextmanager
def on_a_port(app: FastAPI) -> Iterator[str]:
    """The app on a loopback port, in a thread of its own."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            wait_for(lambda: server.started)
            yield f"{HERE}:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


def wait_for(what: Any) -> None:
    """Until it is true; AssertionError if that takes too long."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)
