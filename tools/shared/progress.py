"""How far long work is: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

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
