"""`armature run` on the mock in real time, as others start it: processes, looked at from here.

Everything it leaves lies in a directory of its own, which goes with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq.robot.load import robot_text

ARMATURE = (sys.executable, "-m", "tools.main")
# A machine with other users is away now and then: no reason to end what is being measured.
_PATIENT_SAFETY = "\n[safety]\nskipped_max_per_s = 1000\n"
_COMMAND_TIMEOUT_MS = 250
_BEGIN_MAX_S = 60.0
_END_MAX_S = 30.0
_LOOK_EVERY_S = 0.02


class RunFailedError(Exception):
    """Why there is nothing to measure: what the run said."""


@dataclass(frozen=True, slots=True)
class RealRun:
    """A run that has been started.

    Attributes:
        file: Its recording, once it is over.
        runtime: Its runtime directory.
    """

    file: Path
    runtime: Path
    _process: subprocess.Popen[bytes]
    _log: Path

    def loop_pid(self) -> int:
        """The loop's process, as soon as it is at work.

        Raises:
            RunFailedError: It never is.
        """
        return self._pid_in("lock")

    def recorder_pid(self) -> int:
        """The recorder's process, as soon as it is at work.

        Raises:
            RunFailedError: It never is.
        """
        return self._pid_in("recorder.lock")

    def result(self) -> dict[str, Any]:
        """What the run prints, once it is over.

        Raises:
            RunFailedError: It was no success.
        """
        out, _ = self._process.communicate()
        result: dict[str, Any] = json.loads(out or "{}")
        if self._process.returncode:
            raise self._failure(result.get("reason"))
        return result

    def _pid_in(self, name: str) -> int:
        until_s = time.monotonic() + _BEGIN_MAX_S
        while time.monotonic() < until_s and self._process.poll() is None:
            try:
                return int((self.runtime / name).read_text())
            except (FileNotFoundError, ValueError):
                time.sleep(_LOOK_EVERY_S)
        raise self._failure()

    def _failure(self, reason: str | None = None) -> RunFailedError:
        lines = self._log.read_text(errors="replace").splitlines() or ["it said nothing"]
        return RunFailedError(f"the run failed: {(reason or lines[-1])[:200]}")


@contextmanager
def real_run(duration_s: float, *words: str) -> Iterator[RealRun]:
    """A recorded run of the laas4 mock; it is ended when the block is left.

    Args:
        duration_s: How long the loop runs.
        words: Further options.
    """
    # A short path: the name of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        parts = "laas4.toml", "run.h5", "runtime", "log"
        robot, file, runtime, log = (Path(name, part) for part in parts)
        robot.write_text(robot_text("laas4") + _PATIENT_SAFETY)
        command = [*ARMATURE, "run", "--robot", str(robot), "--link", "mock", "--json", *words]
        command += ["--command-timeout-ms", str(_COMMAND_TIMEOUT_MS)]
        command += ["--duration", f"{duration_s:g}", "--record", str(file)]
        command += ["--runtime", str(runtime)]
        with log.open("wb") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        try:
            yield RealRun(file, runtime, process, log)
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process in the way it is meant to be, or at last by force; its children end with it."""
    if process.poll() is None:
        process.terminate()
    try:
        process.communicate(timeout=_END_MAX_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def cpu_s(pid: int) -> float:
    """Processor time that a process has used, with all of its threads but not its children."""
    # The name in parentheses may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid: int) -> int:
    """Memory of a process, mapped files too; exact, unlike `VmRSS`, which lags by processor."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1])
    raise RunFailedError(f"process {pid} has no memory")
