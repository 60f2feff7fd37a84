"""How far long work is: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STEP_S = 0.25


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float, float | None], None]]:
    """Show a bar on stderr if that is a terminal.

    What it yields is called with how much is done and, where it is known, how much there is.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # Without a thread of its own: the caller may need the processor.
    with Progress(console=Console(stderr=True), auto_refresh=False, transient=True) as progress:
        task = progress.add_task(label, total=None)
        due_s = 0.0

        def advance(done: float, total: float | None) -> None:
            nonlocal due_s
            if (now_s := time.monotonic()) >= due_s:
                due_s = now_s + _STEP_S
                progress.update(task, completed=done, total=total, refresh=True)

        yield advance


@contextmanager
def progress_steps(label: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr which step is being done, if that is a terminal.

    What it yields is called with the name of each step that begins.
    """
    if not sys.stderr.isatty():
        yield lambda _step: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda step: progress.update(task, description=f"{label}: {step}")


@contextmanager
def progress_of_time(label: str, duration_s: float) -> Iterator[None]:
    """Show how much of a time has passed, if stderr is a terminal.

    A process of its own draws: work with deadlines of a millisecond has no time for it.
    """
    if not sys.stderr.isatty():
        yield
        return
    until_closed, to_close = os.pipe()
    child = os.fork()
    if not child:
        os.close(to_close)
        _draw_until_closed(until_closed, label, duration_s)
        os._exit(0)
    os.close(until_closed)
    try:
        yield
    finally:
        os.close(to_close)
        os.waitpid(child, 0)


def _draw_until_closed(descriptor: int, label: str, duration_s: float) -> None:
    """Draw until the other end of a pipe is closed, also by a process that was killed."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # it ends with the other one
    began_s = time.monotonic()
    with progress_bar(label) as advance:
        while not select.select([descriptor], [], [], _STEP_S)[0]:
            advance(time.monotonic() - began_s, duration_s)
