"""Signals that ask a command to end, handled for a while."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Final

ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, `kill`, and a terminal that is closed."""


@contextmanager
def handled(
    numbers: Iterable[int], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Have a function called for some signals; afterwards they do what they did before."""
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


def interrupted_by_any_signal() -> AbstractContextManager[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C, so that what is running is ended in order."""
    return handled((signal.SIGTERM, signal.SIGHUP), signal.default_int_handler)
