"""One request to an OpenAI-compatible endpoint, sent again where that can help; no other host is ever contacted.

No proxy is asked and no redirection followed. The key travels in the header only, never in messages or errors.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from vrbot.baselines.llm.settings import EndpointSettings
from vrbot.errors import VRBotError

FIRST_PAUSE = 0.5
LARGEST_ANSWER = 4_000_000
WORTH_ANOTHER_TRY = frozenset((408, 409, 425, 429, *range(500, 600)))
SHOWN = 200
"""So many characters of what the server says stand in an error."""


class EndpointError(VRBotError):
    """The endpoint did not answer as it should; what it answered before is in the cache."""


class _UnansweredError(Exception):
    """A try that failed in a way that may pass; `pause` is what the server asks for, in seconds."""

    def __init__(self, problem: str, pause: float | None = None) -> None:
        super().__init__(problem)
        self.pause = pause


@dataclass(frozen=True)
class Completion:
    """What the endpoint wrote, and why it stopped ("stop", "length", ...)."""

    text: str
    finish_reason: str | None = None


class Endpoint:
    """Asks; safe to use from several threads, for each request has its own connection.

    Once `stopped` is set nothing is sent again, and a pause ends.
    """

    def __init__(
        self, settings: EndpointSettings, key: str | None = None, pause: Callable[[float], object] | None = None
    ) -> None:
        self.settings, self._key, self.stopped = settings, key, threading.Event()
        self._pause = self.stopped.wait if pause is None else pause

    def ask(self, request: Mapping[str, Any]) -> Completion:
        """The completion of a chat request; EndpointError where every try failed, or where no other can help."""
        body = json.dumps(request, ensure_ascii=False).encode()
        for number in range(self.settings.retries + 1):
            try:
                return _completion(self._post(body))
            except _UnansweredError as failed:
                last = failed
            if self.stopped.is_set():
                break
            if number < self.settings.retries:
                wanted = FIRST_PAUSE * 2**number if last.pause is None else last.pause
                self._pause(min(max(wanted, 0.0), self.settings.longest_pause))
        raise EndpointError(
            f"{self.settings.base_url} failed {number + 1} times, the last time with: {last}; run the "
            "same command again to go on, with --llm-set timeout=SECONDS or retries=N if it needs more patience"
        ) from last

    def _post(self, body: bytes) -> bytes:
        deadline = time.monotonic() + self.settings.timeout
        parts = urlsplit(self.settings.base_url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self.settings.timeout)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection.request("POST", f"{parts.path.rstrip('/')}/chat/completions", body, headers)
            response = connection.getresponse()
            content = _read(response, connection, deadline)
        except TimeoutError as error:
            raise _UnansweredError(f"no answer within {self.settings.timeout:g} s") from error
        except (OSError, HTTPException) as error:
            raise _UnansweredError(f"no connection ({error or type(error).__name__})") from error
        finally:
            connection.close()
        self._check(response, content)
        return content

    def _check(self, response: HTTPResponse, content: bytes) -> None:
        if response.status == 200:
            return
        said = f"status {response.status}: {self._shown(content)}"
        if response.status in WORTH_ANOTHER_TRY:
            raise _UnansweredError(said, _seconds(response.headers.get("Retry-After")))
        if 300 <= response.status < 400:
            raise EndpointError(f"{self.settings.base_url} points elsewhere ({said}): give the final address")
        if response.status in (401, 403):
            way_out = f"put a valid key into the environment variable {self.settings.key_variable}"
        else:
            way_out = "check the address and the model's name"
        raise EndpointError(f"{self.settings.base_url} refused the request with {said}; {way_out}")

    def _shown(self, content: bytes) -> str:
        """The beginning of what the server said, its echo of the key left out."""
        said = content.decode("utf-8", "replace")
        return " ".join((said.replace(self._key, "[key]") if self._key else said).split())[:SHOWN]


def _read(response: HTTPResponse, connection: HTTPConnection, deadline: float) -> bytes:
    """The body, all of it before the deadline; a timeout of the socket alone would bear with one byte at a time."""
    content = bytearray()
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(left)
        part = response.read1(65536)
        if not part:
            break
        content += part
        if len(content) > LARGEST_ANSWER:
            raise _UnansweredError(f"an answer of more than {LARGEST_ANSWER:,} bytes")
    if response.length:  # what was announced and never came
        raise _UnansweredError("an answer that breaks off")
    return bytes(content)


def _completion(content: bytes) -> Completion:
    try:
        choice = json.loads(content)["choices"][0]
        text, reason = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise _UnansweredError(f"an answer that is no chat completion ({type(error).__name__}: {error})") from error
    if not isinstance(text, str):
        raise _UnansweredError(f"a chat completion without text (content is {text!r})")
    return Completion(text, reason if isinstance(reason, str) else None)


def _seconds(header: str | None) -> float | None:
    """What `Retry-After` asks for: seconds, or a date; None where it says nothing sensible."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except ValueError:
            return None
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(seconds, 0.0) if seconds < float("inf") else None
