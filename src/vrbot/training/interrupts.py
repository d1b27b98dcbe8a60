"""Ctrl-C and SIGTERM as a wish to stop: the first is granted after the step, the second at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopWish:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> bool:
        return self.asked


@contextmanager
def stop_on_signals(on_first: Callable[[], None] = lambda: None) -> Iterator[StopWish]:
    """Inside the block the first signal sets the wish, and a second one raises KeyboardInterrupt.

    Outside the main thread, where signals cannot be received, the wish is never set.
    """
    wish = StopWish()

    def receive(number: int, frame: FrameType | None) -> None:
        if wish.asked:
            raise KeyboardInterrupt
        wish.asked = True
        on_first()

    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    former = {number: signal.signal(number, receive) for number in _SIGNALS}
    try:
        yield wish
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
