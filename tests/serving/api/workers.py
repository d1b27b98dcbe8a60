"""`vrbot serve` as processes of its own, with rules and a model that do as they are told: nothing heavy to load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from fastapi import FastAPI

from tests.serving.api.served import PATIENCE, desk_of, settings_of, wait_for
from tests.serving.fakes import Parrot
from vrbot.serving.app import create_app
from vrbot.serving.running import Plan, bound, serve
from vrbot.serving.safety_desk import Conversation
from vrbot.serving.store import Store

REPOSITORY = Path(__file__).resolve().parents[3]


class WaitingParrot(Parrot):
    """Answers only while the file of its gate is there."""

    def respond(self, conversation: Conversation) -> Any:
        gate = os.environ.get("PARROT_GATE")
        while gate is not None and not Path(gate).exists():
            time.sleep(0.01)
        return super().respond(conversation)


def fake_app(plan: Plan) -> FastAPI:
    """The app of a plan without its model."""
    return create_app(desk_of(Store.open(plan.database, create=True), WaitingParrot(), demo=True), plan.settings)


def main() -> None:
    database, workers = sys.argv[1], int(sys.argv[2])
    settings = settings_of(open_demo=True, secret="s" * 32, queue_length=8, draft_seconds=300, drain_seconds=300)
    plan = Plan(Path("none"), database, settings, workers=workers, port=0)
    listening = bound("127.0.0.1", 0)
    print(listening.getsockname()[1], flush=True)
    serve(plan, listening, fake_app)


class Workers:
    """A running server and its processes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.address = f"http://127.0.0.1:{int(process.stdout.readline())}"
        wait_for(self.is_ready)

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.address}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def children(self) -> list[int]:
        """The processes that answer."""
        found = psutil.Process(self.process.pid).children()
        return [child.pid for child in found if "resource_tracker" not in " ".join(child.cmdline())]

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)


@contextmanager
def running(database: str, workers: int = 1, **environment: str) -> Iterator[Workers]:
    """A server from its first process to its last."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.serving.api.workers", database, str(workers)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, **environment},
    )
    try:
        yield Workers(process)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


if __name__ == "__main__":
    main()
