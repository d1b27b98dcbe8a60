"""A stand-in for an OpenAI-compatible endpoint on this machine: answers by a script, remembers all it heard."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Heard:
    """One request as it came over the wire."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Said:
    """One answer; `body` goes out as it stands, `waits` is waited for before it does."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    waits: threading.Event | None = None
    announced_length: int | None = None
    drip: float = 0.0  # seconds between one byte and the next


Script = Callable[[Heard, int], Said]
"""From a request and its number (from 0) to an answer."""


def completion(text: str | None) -> bytes:
    """A chat completion with this text."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"object": "chat.completion", "choices": [choice]}, ensure_ascii=False).encode()


def echo(heard: Heard, _: int) -> Said:
    """Repeats the last thing the patient said: every question gets its own answer, always the same."""
    return Said(body=completion(f"您说{heard.body['messages'][-1]['content']}，有没有发烧？"))


class StandIn:
    """A server in this process; `script` may be exchanged between requests."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.script: Script = echo
        self.at_once = self.most_at_once = 0
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def run(self) -> None:
        self._server.serve_forever(poll_interval=0.01)

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _begin(self, heard: Heard) -> int:
        with self._lock:
            self.heard.append(heard)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            return len(self.heard) - 1

    def _end(self) -> None:
        with self._lock:
            self.at_once -= 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle(self) -> None:
                # printing a traceback parses code, as numpy does headers, and Python 3.11.7 fails where two threads do
                with suppress(ConnectionError):  # whoever asked was killed
                    super().handle()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                heard = Heard(self.path, dict(self.headers), body)
                number = stand_in._begin(heard)
                try:
                    said = stand_in.script(heard, number)
                    if said.waits is not None:
                        said.waits.wait(30)
                finally:
                    stand_in._end()
                self._answer(said)

            def _answer(self, said: Said) -> None:
                length = len(said.body) if said.announced_length is None else said.announced_length
                try:
                    self.send_response(said.status)
                    for name, value in {**said.headers, "Content-Length": str(length)}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    for part in [said.body] if not said.drip else [bytes([one]) for one in said.body]:
                        self.wfile.write(part)
                        stand_in.closing.wait(said.drip)
                except OSError:  # whoever asked has gone
                    pass
                self.close_connection = said.announced_length is not None

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@contextmanager
def standing_in() -> Iterator[StandIn]:
    """A stand-in that answers while the block runs."""
    server = StandIn()
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()
