"""Signals that ask a program to end: which they are, and what programs of ours do about them.

A process whose motors may be on stops them first, whatever asks it to end. What cannot be caught
(KILL, STOP), or says that the process itself is broken (ABRT, SEGV, BUS), is left to the boards:
their time-out stops the motors.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

ENDINGS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, `kill`, and a terminal that is closed: what ends a program without motors in order."""
SAFE_STOPS: Final = (
    *ENDINGS,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGXCPU,
)
"""What would end a program, or suspend it (Ctrl-Z): a loop makes the safe stop, and ends."""


@contextmanager
def handled(
    numbers: Iterable[int], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Have a function called for some signals; afterwards they do what they did before.

    SIGHUP stays ignored where it was, as under `nohup`. The others are heard nevertheless: all
    children of a script in the background ignore SIGINT and SIGQUIT, and can still be asked to end.
    """
    previous = {
        number: signal.signal(number, handler) for number in numbers if not _is_kept_ignored(number)
    }
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


def ignore_safe_stops() -> None:
    """Have this process ignore them all: it ends with the loop that it serves, and not before."""
    for number in SAFE_STOPS:
        signal.signal(number, signal.SIG_IGN)


def _is_kept_ignored(number: int) -> bool:
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
