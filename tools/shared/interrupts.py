"""Signals that ask a command to end, treated as one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupted_by_any_signal() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C, so that what is running is ended in order."""
    endings = (signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, signal.default_int_handler) for number in endings}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
