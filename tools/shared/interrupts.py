"""Signals that interrupt a command as Ctrl-C does."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager

from daq.system.signals import handled


def interrupted_by_any_signal() -> AbstractContextManager[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C, so that what is running is ended in order."""
    return handled((signal.SIGTERM, signal.SIGHUP), signal.default_int_handler)
