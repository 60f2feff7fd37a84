"""Conversion of finished journals, at once or by a process in the background.

The daemon has it done by a process of low priority, one journal at a time, so that receiving never
waits for compression. A journal that could not be converted stays, and is tried again later.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from daq.recorder.conversion import Conversion
from daq.recorder.recovery import recover
from daq.recorder.spools import Spools
from daq.system.runtime_directory import RuntimeDirectory

_NICENESS = 10
_RETRY_FIRST_S, _RETRY_MAX_S = 60.0, 3600.0
_logger = logging.getLogger(__name__)


class Converter(Protocol):
    """What converts journals that are whole."""

    results: list[Conversion]
    """What came of them, in the order in which they were done."""

    @property
    def pending(self) -> int:
        """How many are not done yet."""

    def start(self, journal: Path) -> None:
        """Convert a journal, now or soon; nobody else may be holding it."""

    def poll(self) -> None:
        """Look after what was started; never waits."""


class InlineConverter:
    """Conversion at once, in this process: for runs in virtual time."""

    pending = 0

    def __init__(self) -> None:
        self.results: list[Conversion] = []

    def start(self, journal: Path) -> None:
        """Convert a journal."""
        result = recover(journal, Spools(None))
        if result.problem:
            _logger.error("%s; the journal stays", result.problem)
        _log(result)
        self.results.append(result)

    def poll(self) -> None:
        """Do nothing: nothing is ever left to do."""


def conversion_command(runtime: RuntimeDirectory) -> tuple[str, ...]:
    """Return what converts a journal, whose name is added: `daq.recorder.convert`.

    With -P, because a folder called `daq` where we happen to be is not ours.
    """
    return (sys.executable, "-P", "-m", "daq.recorder.convert", "--runtime", str(runtime.path))


class ProcessConverter:
    """Conversion in processes of low priority.

    Args:
        command: What to run, with the journal as its last argument; prints a `Conversion`.
        now_s: Monotonic clock.
    """

    def __init__(
        self, command: Sequence[str], *, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._command = tuple(command)
        self._now_s = now_s
        self.results: list[Conversion] = []
        self._queue: deque[Path] = deque()
        self._running: tuple[Path, subprocess.Popen[bytes]] | None = None
        self._again: dict[Path, tuple[float, float]] = {}
        """When to try again what failed, and how long to wait after that."""

    @property
    def pending(self) -> int:
        """How many are not done yet."""
        return len(self._queue) + (self._running is not None) + len(self._again)

    def start(self, journal: Path) -> None:
        """Convert a journal when its turn comes."""
        is_running = self._running is not None and self._running[0] == journal
        if journal not in self._queue and not is_running:
            self._queue.append(journal)
        self.poll()

    def poll(self) -> None:
        """See whether the process has ended, and start the next."""
        if self._running is not None:
            if self._running[1].poll() is None:
                return
            self._collect(*self._running)
            self._running = None
        now_s = self._now_s()
        self._queue.extend(
            path
            for path, (at_s, _) in self._again.items()
            if now_s >= at_s and path not in self._queue
        )
        if self._queue:
            self._run(self._queue.popleft())

    def finish(self, tell: Callable[[], None]) -> None:
        """Wait until all are done or have failed; calls `tell` now and then meanwhile."""
        while self._queue or self._running is not None:
            if self._running is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._running[1].wait(timeout=0.2)
            tell()
            self.poll()

    def _run(self, journal: Path) -> None:
        # Away from our terminal: Ctrl-C is for us, and we wait for what has begun.
        try:
            process = subprocess.Popen(
                [*self._command, str(journal)], stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            problem = f"{journal}: the conversion cannot be started: {error.strerror}"
            result = Conversion(journal=str(journal), problem=problem, code="not-started")
            self._note(journal, result)
            return
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
        self._running = journal, process

    def _collect(self, journal: Path, process: subprocess.Popen[bytes]) -> None:
        output, _ = process.communicate()
        try:
            result = msgspec.json.decode(output, type=Conversion)
        except (msgspec.MsgspecError, ValueError):
            problem = f"the conversion ended with exit code {process.returncode}"
            result = Conversion(journal=str(journal), problem=problem, code="ended")
        self._note(journal, result)

    def _note(self, journal: Path, result: Conversion) -> None:
        """Keep what came of a journal, and try again later if it is still there."""
        _, delay_s = self._again.pop(journal, (0.0, _RETRY_FIRST_S))
        if result.problem and not _is_gone(journal):
            if result not in self.results:
                _logger.error("%s; it is tried again, and the journal stays", result.problem)
            self._again[journal] = self._now_s() + delay_s, min(2 * delay_s, _RETRY_MAX_S)
        else:
            _log(result)
        self.results = [old for old in self.results if old.journal != result.journal or old.file]
        self.results.append(result)


def _is_gone(journal: Path) -> bool:
    try:
        journal.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # a bad disk may come back
    return False


def _log(result: Conversion) -> None:
    """Say what became of a journal."""
    if result.file:
        _logger.info(
            "%s: ready, %d samples, %d missing, %.1f MB",
            result.file,
            result.samples,
            result.missing,
            result.size_bytes * 1e-6,
        )
    if result.damaged_bytes:
        _logger.warning("%s: %d bytes were damaged", result.journal, result.damaged_bytes)
