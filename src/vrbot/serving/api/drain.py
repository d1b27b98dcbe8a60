"""Shutting down without losing anybody: what is under way ends, what comes new is told to come back."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

log = logging.getLogger(__name__)

STEP_SECONDS = 0.02
NOT_WAITED_FOR = ("/livez", "/readyz", "/metrics")


class Drain:
    """Stands between the signal and the server: the server hears of it once nothing is under way, or time is up.

    Until then, and for a short pause at least, new requests are answered (503), which a closed door could not do.
    """

    def __init__(self, seconds: float, pause: float) -> None:
        self._seconds, self._pause = seconds, pause
        self.begun = False
        self._under_way = 0
        self._former: dict[int, Any] = {}

    @contextmanager
    def counting(self, path: str) -> Iterator[None]:
        """A request is under way inside the block."""
        counted = not self.begun and path not in NOT_WAITED_FOR
        self._under_way += counted
        try:
            yield
        finally:
            self._under_way -= counted

    def install(self) -> None:
        """Takes the place of the server's own handlers; does nothing outside the main thread, where none can be."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            former = signal.getsignal(number)
            if not callable(former):
                continue
            self._former[number] = former
            signal.signal(number, lambda number, frame: self._heard(loop, number, frame))

    def uninstall(self) -> None:
        """Gives the server its handlers back."""
        for number, former in self._former.items():
            signal.signal(number, former)
        self._former.clear()

    def _heard(self, loop: asyncio.AbstractEventLoop, number: int, frame: FrameType | None) -> None:
        if self.begun:
            if number == signal.SIGINT and number in self._former:  # a second Ctrl-C does not wait
                self._former[number](number, frame)
            return
        self.begun = True
        loop.call_soon_threadsafe(lambda: loop.create_task(self._wait_and_pass_on(number)))

    async def _wait_and_pass_on(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        log.warning("shutting down: %d requests are under way", self._under_way)
        began = loop.time()
        while loop.time() < began + self._pause or (self._under_way and loop.time() < began + self._seconds):
            await asyncio.sleep(STEP_SECONDS)
        if former := self._former.get(number):
            former(number, None)
