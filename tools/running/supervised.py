"""A run in real time: loop and recorder as processes of their own, supervised from here.

On the mock this process is the robot: its boards stand behind emulated SPI devices, which the loop
opens with the real spidev. The loop ends first, then the recorder; a recorder that dies is started
again, and the loop goes on.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType

import msgspec

from daq.recorder.journal import journal_of
from daq.system.runtime_directory import RuntimeDirectory, runtime_directory
from daq.system.signals import SAFE_STOPS, handled
from hw_mocks.faults.script import FaultKind
from tools.running.emulation import EmulatedBoards, emulated_boards
from tools.running.events import EventPipe, Listener
from tools.running.mock_options import make_mock
from tools.running.options import MockOptions, RunOptions
from tools.running.processes import Process
from tools.shared.cli import FAILED, INTERRUPTED, OK, USAGE, say

_START_MAX_S = 30.0
_FINISH_MAX_S = 600.0
_OUTPUT_MAX_S = 5.0
_RESTARTS_MAX = 100
_LOOK_EVERY_S = 0.02


def run_supervised(
    options: RunOptions,
    mock_options: MockOptions,
    target: Path | None,
    listener: Listener | None = None,
) -> tuple[dict[str, object], int]:
    """Run in real time and return what to print, and the exit code.

    Everything is recorded in `target`, if there is one. The loop's events go to `listener`, by
    default to stderr as lines.
    """
    runtime = runtime_directory(options.runtime, is_made=True)
    options = replace(options, runtime=runtime.path, ends_on_fault=True)
    with ExitStack() as stack:
        boards = EmulatedBoards(os.environ, _wait)
        if options.is_on_mock:
            mock, script = make_mock(mock_options, impossible=[FaultKind.UNPLUG, FaultKind.SKIP])
            boards = stack.enter_context(emulated_boards(mock, script))
            options = options.on_emulated_devices()
        pipe = None if listener is None else EventPipe(listener)
        if pipe is not None:
            stack.callback(pipe.close)
        supervision = _Supervision(options, runtime, target, boards.environment, pipe)
        stack.enter_context(supervision)
        boards.serve(supervision.is_over)
        return supervision.result()


class _Supervision:
    """The two processes."""

    def __init__(
        self,
        options: RunOptions,
        runtime: RuntimeDirectory,
        target: Path | None,
        environment: Mapping[str, str],
        events: EventPipe | None,
    ) -> None:
        self._runtime = runtime
        self._target = None if target is None else target.absolute()
        self._events = events
        self._recorder: Process | None = None
        self._looked_s = 0.0
        self._restarts = 0
        self._loop_exit: int | None = None
        self._asked_to_end_by = 0
        self._has_started = False
        # Before anything is started: a signal must not leave it without us.
        self._signals = ExitStack()
        self._signals.enter_context(handled(SAFE_STOPS, self._end))
        if self._target is not None:
            words = ["record", "--out", str(self._target.parent), "--file", str(self._target)]
            # What earlier runs left is not part of this one.
            words += ["--since-ns", str(time.time_ns()), "--runtime", str(runtime.path)]
            self._recorder = Process(words, os.environ)
            options = replace(options, recording=self._target.stem)
        if events is None:
            self._loop = Process(options.to_argv("--json"), environment)
        else:
            words = options.to_argv("--json", f"--events-to={events.far_end}")
            self._loop = Process(words, environment, inherits=[events.far_end])
            events.release_far_end()
        self._has_started = True
        if self._asked_to_end_by:
            self._loop.end(self._asked_to_end_by)

    def __enter__(self) -> _Supervision:
        return self

    def __exit__(self, *_error: object) -> None:
        for process in (self._loop, self._recorder):
            if process is not None:
                process.kill()
        self._signals.close()

    def is_over(self) -> bool:
        """Whether both have ended; looks after them meanwhile."""
        now_s = time.monotonic()
        if now_s < self._looked_s + _LOOK_EVERY_S:
            return False
        self._looked_s = now_s
        if self._events is not None:
            self._events.listen()
        if self._loop_exit is None:
            self._loop_exit = self._loop.exit_code
            self._look_after_recorder()
            return self._loop_exit is not None
        return True

    def result(self) -> tuple[dict[str, object], int]:
        """Return what both say, once the loop has ended."""
        try:
            out = self._loop.output(_OUTPUT_MAX_S)
        except subprocess.TimeoutExpired:
            out = b""  # a process that it left behind has its output open
        if self._events is not None:
            self._events.listen()
        summary: dict[str, object] = msgspec.json.decode(out) if out else {}
        exit_code = self._loop_exit if self._loop_exit is not None else FAILED
        if exit_code < 0:
            exit_code = INTERRUPTED if self._asked_to_end_by else FAILED
            say(f"armature: the loop ended by {self._loop.ending}")
        if self._recorder is None or self._target is None:
            return summary, exit_code
        try:
            self._finish_recording(self._recorder, self._target, has_run=bool(summary))
        except subprocess.TimeoutExpired:
            say("armature: the recorder does not end; `armature recover` finishes its work")
            return summary, FAILED
        if not self._target.exists():
            journal = journal_of(self._target)
            what = f"{journal} is not finished: `armature recover` will" * journal.exists()
            say(f"armature: {what or 'nothing was recorded'}")
            return summary, exit_code or FAILED
        return summary | _facts(self._target), exit_code

    def _finish_recording(self, recorder: Process, target: Path, *, has_run: bool) -> None:
        """Let the recorder make the file; if it dies over it, somebody else makes it."""
        self._end_recorder(recorder)
        journal = journal_of(target)
        deadline_s = time.monotonic() + _FINISH_MAX_S
        while recorder.was_killed and not target.exists() and time.monotonic() < deadline_s:
            if journal.exists():
                # A process of the dead recorder may be at it, and be the one that makes the file.
                self._recover(journal)
            elif has_run:
                recorder.start_again()
                self._end_recorder(recorder)
            else:
                return
        if journal.exists() and not target.exists() and not recorder.was_killed:
            # It was started again so late that it never heard of the loop.
            self._recover(journal)

    def _recover(self, journal: Path) -> None:
        words = ["recover", str(journal), "--json", "--runtime", str(self._runtime.path)]
        Process(words, os.environ).output(_FINISH_MAX_S)

    def _end_recorder(self, recorder: Process) -> None:
        """Ask the recorder to end, once it can hear that, and wait for it."""
        lock, pid = self._runtime.path / "recorder.lock", str(recorder.pid)
        deadline_s = time.monotonic() + _START_MAX_S
        while recorder.exit_code is None and time.monotonic() < deadline_s:
            if not self._runtime.path.exists():
                break  # somebody removed it, and the lock with it
            is_at_work = lock.exists() and lock.read_text() == pid
            time.sleep(_LOOK_EVERY_S)
            if is_at_work:
                break
        recorder.end()
        recorder.output(_FINISH_MAX_S)

    def _look_after_recorder(self) -> None:
        recorder = self._recorder
        if recorder is None or recorder.exit_code in (None, OK):
            return
        if recorder.exit_code == USAGE:
            # It has said why it cannot work here, and would say it again.
            self._loop.end()
        elif self._restarts < _RESTARTS_MAX:
            self._restarts += 1
            say(f"armature: the recorder ended by {recorder.ending}; it is started again")
            recorder.start_again()

    def _end(self, number: int, _frame: FrameType | None) -> None:
        self._asked_to_end_by = number
        if self._has_started:  # else it is ended as soon as it has
            self._loop.end(number)


def _facts(file: Path) -> dict[str, object]:
    """Return what the summary says of the recording: what is in it."""
    from daq.recording import open_recording

    with open_recording(file) as recording:
        missing = sum(gap.count for gap in recording.gaps)
        return {"file": str(file), "samples": recording.sample_count, "missing": missing}


def _wait(is_over: Callable[[], bool]) -> None:
    while not is_over():
        time.sleep(_LOOK_EVERY_S)
