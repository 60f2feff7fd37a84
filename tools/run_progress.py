"""How far a run is: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STEP_S = 0.25


@contextmanager
def run_progress(duration_s: float | None) -> Iterator[Callable[[float], None]]:
    """A bar on stderr if that is a terminal; yields what takes the seconds that have passed."""
    if not sys.stderr.isatty():
        yield lambda _elapsed_s: None
        return
    from rich.console import Console  # noqa: PLC0415 - only terminals need it
    from rich.progress import Progress  # noqa: PLC0415

    # No thread of its own: whoever calls may have better things to do with the processor.
    with Progress(console=Console(stderr=True), auto_refresh=False, transient=True) as progress:
        task = progress.add_task("running", total=duration_s)
        shown_s = 0.0

        def advance(elapsed_s: float) -> None:
            nonlocal shown_s
            if elapsed_s >= shown_s + _STEP_S:
                shown_s = elapsed_s
                progress.update(task, completed=elapsed_s, refresh=True)

        yield advance
