"""A server of the whole app in a process of its own, as in life; the test has the same database before it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.console.scripted import Scripted
from tests.real_data import REPOSITORY
from vrbot.safety.switch import KillSwitch
from vrbot.serving.api.settings import DEMO_PHYSICIAN, AppSettings
from vrbot.serving.patient_links import patient_token
from vrbot.serving.records import Consultation, Turn
from vrbot.serving.responder import Responder, responder_of
from vrbot.serving.rules_desk import RulesDesk
from vrbot.serving.service import Desk
from vrbot.serving.store import Store

SECRET = "s" * 40
SETUP_CODE = "open sesame"
READY_SECONDS = 60


@dataclass(frozen=True, eq=False)
class Served:
    """A running server, and a desk of the test's own over the same database."""

    address: str
    desk: Desk
    switch: KillSwitch

    def opened(self, language: str = "zh", reference: str = "") -> Consultation:
        """A new consultation of the demo physician's."""
        return self.desk.consultations.open(DEMO_PHYSICIAN, language, reference)

    def said(self, consultation: Consultation, text: str) -> Turn:
        """What a patient says."""
        name = self.desk.store.new_id()
        return self.desk.consultations.receive(DEMO_PHYSICIAN, consultation.id, name, text)

    def desk_page(self, consultation: Consultation) -> str:
        return f"{self.address}/consultations/{consultation.id}"

    def patient_page(self, consultation: Consultation) -> str:
        return f"{self.address}/patient/{patient_token(SECRET, consultation.id)}"

    def seen_by_patient(self, consultation: Consultation) -> list[str]:
        """The replies a patient can read."""
        return [line.text for line in self.desk.patient_view(consultation.id) if line.author == "physician"]


@contextmanager
def served(folder: Path, model: Path | None = None, *, sign_in: bool = False) -> Iterator[Served]:
    """A demonstration (or with sign-in) over the scripted responder, or over a model, on a port nobody else has."""
    desk, switch = _desk(folder, Scripted(), demo=not sign_in)
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port = int(trial.getsockname()[1])
    arguments = [str(folder), str(port), "closed" if sign_in else "open", *([] if model is None else [str(model)])]
    server = subprocess.Popen([sys.executable, "-m", "tests.console.serving", *arguments], cwd=REPOSITORY)
    try:
        _wait_for(f"http://127.0.0.1:{port}", server)
        yield Served(f"http://127.0.0.1:{port}", desk, switch)
    finally:
        server.terminate()
        server.wait(timeout=READY_SECONDS)
        desk.store.close()


def _desk(folder: Path, responder: Responder, *, demo: bool) -> tuple[Desk, KillSwitch]:
    switch = KillSwitch(folder / "switch.json")
    store = Store.open(folder / "desk.sqlite", create=True)
    return Desk(store, RulesDesk(switch), responder, demo=demo), switch


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    waited_until = time.monotonic() + READY_SECONDS
    while server.poll() is None and time.monotonic() < waited_until:
        try:
            urllib.request.urlopen(f"{address}/livez", timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the server at {address} did not start")


def main(folder: str, port: str, door: str, model: str | None = None) -> None:
    """Serves until it is told to end."""
    import uvicorn

    from vrbot.serving.app import create_app

    demo = door == "open"
    desk, _ = _desk(Path(folder), Scripted() if model is None else responder_of(Path(model)), demo=demo)
    settings = AppSettings(
        open_demo=demo, secret=SECRET, setup_code=SETUP_CODE, requests_per_minute=1_000_000, drain_pause=0.0
    )
    uvicorn.run(create_app(desk, settings), host="127.0.0.1", port=int(port), log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
