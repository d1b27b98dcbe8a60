"""The layer around everything: who may ask at all, how much, how fast, and which headers every answer carries."""

from __future__ import annotations

import asyncio
import logging
import time
from urllib.parse import urlsplit

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vrbot.serving.api.answers import answer_to_fault, answer_with
from vrbot.serving.api.drain import Drain
from vrbot.serving.api.meters import Meters
from vrbot.serving.api.settings import LOOPBACK_NAMES
from vrbot.serving.api.signin import COOKIE, Gate

log = logging.getLogger(__name__)

API = ("/api/", "/v1/")
HEALTH = ("/livez", "/readyz", "/metrics")
COSTLY = ("/api/v1/sign-in", "/api/v1/setup")
READING = ("GET", "HEAD", "OPTIONS")
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
API_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
# The console's framework compiles templates in the browser and starts with a script in the page.
PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
ONE_YEAR = "max-age=31536000; includeSubDomains"
NO_SUCH_ROUTE = "other"


class Front:
    """ASGI all around the app; nothing behind it sees a request that it refuses."""

    def __init__(self, app: ASGIApp, gate: Gate, drain: Drain, meters: Meters) -> None:
        self._app, self._gate, self._drain, self._meters = app, gate, drain, meters
        settings = gate.settings
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._limit = RateLimitItemPerMinute(settings.requests_per_minute)
        self._costly_limit = RateLimitItemPerMinute(settings.sign_ins_per_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["gate"] = self._gate
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self._http(scope, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._foreign_name(scope) or _comes_from_elsewhere(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = time.perf_counter(), 500
        started = False

        async def send_dressed(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                self._dress(scope["path"], MutableHeaders(scope=message))
            await send(message)

        self._meters.under_way.inc()
        try:
            with self._drain.counting(scope["path"]):
                await self._answer(scope, receive, send_dressed)
        except Exception as error:  # it must not reach the server, which would log what it was about
            answer = answer_to_fault(error, scope["path"])
            if not started:
                await answer(scope, receive, send_dressed)
        finally:
            self._meters.under_way.dec()
            self._note(scope, status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal is not None:
            await answer_with(*refusal, scope["path"])(scope, receive, send)
            return
        if scope["method"] in READING or not scope["path"].startswith(API):
            await self._app(scope, receive, send)
            return
        body = await self._read(receive)
        if isinstance(body, tuple):
            await answer_with(*body, scope["path"])(scope, receive, send)
            return
        await self._app(scope, _again(body, receive), send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason, if the request is not to be answered."""
        headers, path = Headers(scope=scope), scope["path"]
        if path in HEALTH:
            return None
        if self._foreign_name(scope):
            return 421, "an open demonstration answers to loopback names only: use http://127.0.0.1"
        if self._drain.begun:
            return 503, "the server is shutting down: try again, which is safe"
        if scope["method"] not in READING and (reason := _forged(headers)):
            return 403, reason
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self._gate.settings.max_body_bytes:
            return 413, self._too_large()
        who = (scope.get("client") or ("unknown",))[0]
        if not self._limiter.hit(self._limit, "all", who):
            return 429, "too many requests from this address: wait a moment"
        if path in COSTLY and not self._limiter.hit(self._costly_limit, "costly", who):
            return 429, "too many attempts to sign in from this address: wait a minute"
        return None

    async def _read(self, receive: Receive) -> bytes | tuple[int, str]:
        """The whole body; or why not."""
        content = bytearray()
        try:
            async with asyncio.timeout(self._gate.settings.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return 400, "the connection ended before the request did"
                    content += message.get("body", b"")
                    if len(content) > self._gate.settings.max_body_bytes:
                        return 413, self._too_large()
                    if not message.get("more_body", False):
                        return bytes(content)
        except TimeoutError:
            return 408, f"the request was not complete within {self._gate.settings.body_seconds:g} seconds"

    def _too_large(self) -> str:
        return f"a request may have {self._gate.settings.max_body_bytes:,} bytes: send it in parts"

    def _foreign_name(self, scope: Scope) -> bool:
        """In an open demonstration, a page elsewhere whose name leads here must not be let in."""
        if not self._gate.settings.open_demo:
            return False
        name = Headers(scope=scope).get("host", "")
        return (name if name.endswith("]") else name.rpartition(":")[0] or name) not in LOOPBACK_NAMES

    def _dress(self, path: str, headers: MutableHeaders) -> None:
        for name, value in ALWAYS.items():
            headers[name] = value
        of_api = path.startswith(API) or path in HEALTH
        headers["Content-Security-Policy"] = API_POLICY if of_api else PAGE_POLICY
        if of_api:
            headers["Cache-Control"] = "no-store"
        if self._gate.settings.https:
            headers["Strict-Transport-Security"] = ONE_YEAR
        if self._drain.begun:
            headers["Connection"] = "close"

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        """Counts and logs the route, not the address: that may hold a patient's link."""
        route = getattr(scope.get("route"), "path", None)
        name = route if isinstance(route, str) and route.startswith((*API, *HEALTH)) else NO_SUCH_ROUTE
        method = scope["method"] if scope["method"] in (*READING, "POST", "PUT", "PATCH", "DELETE") else "other"
        self._meters.requests.labels(method, name, str(status)).inc()
        self._meters.seconds.labels(name).observe(seconds)
        log.info("%s %s %d %.0f ms", method, name, status, 1000 * seconds)


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read once more."""
    given = False

    async def once_more() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once_more


def _forged(headers: Headers) -> str | None:
    """Why a request that changes something may have been made by another site in the user's name; None if it was not.

    A token in a header is sent by nobody but its owner. A cookie goes along by itself, so the browser must say that
    the page is ours.
    """
    if headers.get("authorization", "").lower().startswith("bearer "):
        return None
    if _comes_from_elsewhere(headers):
        return "the request comes from another site: use the console, or send Authorization: Bearer TOKEN"
    proved = "origin" in headers or "sec-fetch-site" in headers
    if f"{COOKIE}=" in headers.get("cookie", "") and not proved:
        return "a cookie alone does not show which page asked: send Origin too, or Authorization: Bearer TOKEN"
    return None


def _comes_from_elsewhere(headers: Headers) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host", "")
