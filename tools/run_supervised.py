"""A run in real time: loop and recorder as processes of their own, looked after from here.

On the mock this process is the robot: its boards stand behind emulated SPI devices, which the loop
opens with the real spidev. The loop ends first, then the recorder; a recorder that dies is started
again, and the loop does not care.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from daq.links.address import LinkKind, parse_link
from daq.recorder.journal import journal_of
from daq.runtime_directory import RuntimeDirectory, runtime_directory
from hw_mocks.emulated_spi.shim import shim_environment
from hw_mocks.faults import FaultKind
from hw_mocks.realtime import take_precedence
from hw_mocks.spi_boards import SpiBoards
from tools.cli import FAILED, INTERRUPTED, OK, USAGE, say
from tools.mock_options import make_mock
from tools.processes import Process
from tools.run_progress import run_progress

_MOCK_TIMEOUT_MS = 100
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_START_MAX_S = 30.0
_FINISH_MAX_S = 600.0
_RESTARTS_MAX = 100
_LOOK_EVERY_S = 0.02


def run_supervised(arguments: argparse.Namespace) -> tuple[dict[str, object], int]:
    """Run in real time.

    Returns:
        What to print, and the exit code.
    """
    runtime = runtime_directory(arguments.runtime, is_made=True)
    is_mock = parse_link(arguments.link).kind is LinkKind.MOCK
    with ExitStack() as stack:
        environment: Mapping[str, str] = os.environ
        serve: Callable[[Callable[[], bool]], None] = _wait
        if is_mock:
            mock, script = make_mock(arguments, impossible=[FaultKind.UNPLUG])
            # A short path: the name of a socket has at most 107 bytes.
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="armature-")))
            boards = stack.enter_context(closing(SpiBoards(mock, script, directory)))
            environment = shim_environment(directory, os.environ)
            serve = boards.run
        supervision = stack.enter_context(_Supervision(arguments, runtime, environment))
        if is_mock:
            take_precedence()
        with run_progress(arguments.duration) as advance:
            serve(lambda: supervision.is_over(advance))
        return supervision.result()


class _Supervision:
    """The two processes."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        runtime: RuntimeDirectory,
        environment: Mapping[str, str],
    ) -> None:
        self._runtime = runtime
        self._target: Path | None = arguments.record and arguments.record.absolute()
        self._recorder: Process | None = None
        if self._target is not None:
            words = ["record", "--out", str(self._target.parent), "--file", str(self._target)]
            self._recorder = Process([*words, "--runtime", str(runtime.path)], os.environ)
        self._loop = Process(_loop_words(arguments, runtime), environment)
        self._started_s = time.monotonic()
        self._looked_s = 0.0
        self._restarts = 0
        self._previous: dict[int, Any] = {}
        self._loop_exit: int | None = None
        self._is_asked_to_end = False

    def __enter__(self) -> _Supervision:
        self._previous = {number: signal.signal(number, self._end) for number in _ENDINGS}
        return self

    def __exit__(self, *_error: object) -> None:
        for process in (self._loop, self._recorder):
            if process is not None:
                process.kill()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def is_over(self, advance: Callable[[float], None]) -> bool:
        """Whether both have ended; looks after them meanwhile."""
        now_s = time.monotonic()
        if now_s < self._looked_s + _LOOK_EVERY_S:
            return False
        self._looked_s = now_s
        advance(now_s - self._started_s)
        if self._loop_exit is None:
            self._loop_exit = self._loop.exit_code
            self._look_after_recorder()
            return self._loop_exit is not None
        return True

    def result(self) -> tuple[dict[str, object], int]:
        """What both say, once the loop has ended."""
        out = self._loop.output()
        summary: dict[str, object] = msgspec.json.decode(out) if out else {}
        exit_code = self._loop_exit if self._loop_exit is not None else FAILED
        if exit_code < 0:
            exit_code = INTERRUPTED if self._is_asked_to_end else FAILED
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
                words = ["recover", str(journal), "--json", "--runtime", str(self._runtime.path)]
                Process(words, os.environ).output(_FINISH_MAX_S)
            elif has_run:
                recorder.start_again()
                self._end_recorder(recorder)
            else:
                return

    def _end_recorder(self, recorder: Process) -> None:
        """Ask the recorder to end, once it can hear that, and wait for it."""
        lock, pid = self._runtime.path / "recorder.lock", str(recorder.pid)
        deadline_s = time.monotonic() + _START_MAX_S
        while recorder.exit_code is None and time.monotonic() < deadline_s:
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
        self._is_asked_to_end = True
        self._loop.end(number)


def _facts(file: Path) -> dict[str, object]:
    """What the summary says of the recording: what is in it."""
    from daq.recording import open_recording  # noqa: PLC0415 - HDF5, and only at the end

    with open_recording(file) as recording:
        missing = sum(gap.count for gap in recording.gaps)
        return {"file": str(file), "samples": recording.sample_count, "missing": missing}


def _loop_words(arguments: argparse.Namespace, runtime: RuntimeDirectory) -> list[str]:
    is_mock = parse_link(arguments.link).kind is LinkKind.MOCK
    timeout_ms = arguments.command_timeout_ms
    if timeout_ms is None and is_mock:
        timeout_ms = _MOCK_TIMEOUT_MS
    link = arguments.link.replace("mock", "spi") if is_mock else arguments.link
    words = ["loop", "--robot", arguments.robot, "--link", link, "--json", "--on-fault", "exit"]
    words += ["--runtime", str(runtime.path)]
    values = {
        "--profile": arguments.profile,
        "--duration": arguments.duration,
        "--command-timeout-ms": timeout_ms,
        "--play": arguments.play,
        "--keys": arguments.keys,
        "--plotjuggler": arguments.plotjuggler,
        "--record": None if arguments.record is None else arguments.record.stem,
    }
    for option, value in values.items():
        words += [] if value is None else [option, str(value)]
    for option in ("arm", "enable", "home"):
        words += [f"--{option}"] if getattr(arguments, option) else []
    for address in arguments.bind:
        words += ["--bind", address]
    return words


def _wait(is_over: Callable[[], bool]) -> None:
    while not is_over():
        time.sleep(_LOOK_EVERY_S)
