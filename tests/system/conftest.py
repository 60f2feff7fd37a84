"""Whole runs, with real processes in directories of their own; nothing is left of them afterwards.

The machine may be away for longer than a board waits for commands. Boards then stop their motors,
as they should, and the test is done once more; pytest's summary counts that.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import PROJECT, Result, armature

from daq.robot.load import robot_text
from daq.stream.command_client import CommandClient
from daq.stream.errors import StreamError
from daq.stream.messages import LoopStatus

MARK = "ARMATURE_TEST_LAB"
PATIENCE_S = 40.0
"""For what takes a moment on a machine that does nothing else."""
TIMEOUT_MS = "250"
_AWAY = ("command timeout", "periods skipped within a second")
_ATTEMPTS = 3
_LAST_MOMENTS_S = 10.0
# A machine with other users skips periods; what a board does about it is still tested.
_PATIENT_SAFETY = "\n[safety]\nskipped_max_per_s = 1000\n"


class Program:
    """A program in a process of its own, whose output goes into files."""

    def __init__(
        self, command: tuple[str, ...], stem: Path, environment: dict[str, str], **options: Any
    ) -> None:
        self._out, self._err = stem.with_suffix(".out"), stem.with_suffix(".err")
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                command,
                stdout=out,
                stderr=err,
                env=environment,
                start_new_session=True,
                **{"cwd": PROJECT, "stdin": subprocess.DEVNULL, **options},
            )

    @property
    def out(self) -> str:
        """What it printed up to now."""
        return self._out.read_text(errors="replace")

    @property
    def err(self) -> str:
        """What it said up to now."""
        return self._err.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def wait(self, timeout_s: float = PATIENCE_S) -> Result:
        """Its end."""
        self.process.wait(timeout_s)
        assert "Traceback" not in self.err, self.err
        return Result(self.process.returncode, self.out, self.err)

    def end(self, number: int = signal.SIGTERM) -> Result:
        """Its end, asked for."""
        self.process.send_signal(number)
        return self.wait()


class Lab:
    """A robot's directories, and the programs at work there."""

    def __init__(self, environment: dict[str, str]) -> None:
        # Short: the name of a socket has at most 107 bytes.
        self.path = Path(tempfile.mkdtemp(prefix="ar"))
        self.runtime = self.path / "rt"
        self.robot = self.path / "laas4.toml"
        self.robot.write_text(robot_text("laas4") + _PATIENT_SAFETY)
        self.environment = {
            **environment,
            MARK: self.path.name,
            "TMPDIR": str(self.path),
        }
        self._programs: list[Program] = []

    # --- programs ---------------------------------------------------------------------------------

    def start(self, *words: str | Path, **options: Any) -> Program:
        """Start a program."""
        stem = self.path / f"program{len(self._programs)}"
        program = Program(tuple(map(str, words)), stem, self.environment, **options)
        self._programs.append(program)
        return program

    def do(self, *words: str | Path, **options: Any) -> Result:
        """Run `armature VERB …` to its end, in a process of its own."""
        return self.start("armature", *words, **options).wait()

    def ask(self, *words: str | Path) -> Result:
        """Run `armature VERB …` in this process: a verb that only talks to the others."""
        return armature(*self.here(*words))

    def here(self, *words: str | Path) -> tuple[str | Path, ...]:
        """The words of a verb that takes a runtime directory."""
        return (*words, "--runtime", self.runtime)

    def run_words(self, *words: str | Path, robot: str | Path = "") -> tuple[str | Path, ...]:
        """`armature run` on the mock, in real time."""
        timeout = ("--command-timeout-ms", TIMEOUT_MS)
        link = ("--robot", robot or self.robot, "--link", "mock")
        return self.here("armature", "run", *link, *timeout, "--json", *words)

    def mock_words(self, *faults: str) -> tuple[str | Path, ...]:
        """`armature mock exec`, in front of a program that uses SPI devices."""
        options = [word for fault in faults for word in ("--fault", fault)]
        return ("armature", "mock", "exec", "--robot", self.robot, *options, "--")

    def loop_words(self, *words: str | Path) -> tuple[str | Path, ...]:
        """`armature loop` over the emulated devices."""
        timeout = ("--command-timeout-ms", TIMEOUT_MS)
        link = ("--robot", self.robot, "--link", "spi")
        return self.here("armature", "loop", *link, *timeout, "--json", *words)

    def send(self, *words: str | Path) -> Result:
        """`armature send …`."""
        return self.ask("send", *words)

    def accept(self, *words: str | Path) -> Any:
        """`armature send … --json`, which must be accepted; its result.

        What the loop does by itself (`run --enable`) is waited for.
        """
        for _ in range(20):
            result = self.send(*words, "--json")
            if result.exit_code == 0 or result.json["error"]["code"] != "held":
                break
            time.sleep(0.1)
        assert result.exit_code == 0, result
        return result.json["result"]

    # --- what they do -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def client(self) -> Iterator[CommandClient]:
        """A connection to the loop."""
        with CommandClient(f"ipc://{self.runtime}/commands") as client:
            yield client

    def status(self) -> LoopStatus:
        """The loop's, once there is one."""
        found: list[LoopStatus] = []

        def is_there() -> bool:
            if not (self.runtime / "commands").exists():
                return False
            with contextlib.suppress(StreamError), self.client() as client:
                found.append(client.status())
            return bool(found)

        self.wait_for(is_there)
        return found[0]

    def wait_for(self, condition: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
        """Until something is so; not for long once all programs have ended."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            now_s = time.monotonic()
            if now_s > deadline_s:
                pytest.fail(f"waited in vain: {self.said}")
            if not any(program.is_running for program in self._programs):
                deadline_s = min(deadline_s, now_s + _LAST_MOMENTS_S)
            time.sleep(0.02)

    def wait_for_state(self, *states: str) -> LoopStatus:
        """Until the loop is in a state; fails at once when it is in fault."""
        found: list[LoopStatus] = []

        def is_there() -> bool:
            found[:] = [self.status()]
            assert found[0].state != "fault" or "fault" in states, found[0].reason
            return found[0].state in states

        self.wait_for(is_there)
        return found[0]

    def wait_for_cycles(self, more: int) -> LoopStatus:
        """Until the loop has done so many cycles more."""
        wanted = self.status().cycles + more
        self.wait_for(lambda: self.status().cycles >= wanted)
        return self.status()

    @property
    def said(self) -> str:
        """What all programs wrote on stderr."""
        return "\n".join(program.err for program in self._programs)

    @property
    def was_away(self) -> str:
        """How we know that the machine stood still for longer than a board or the loop allows."""
        return next((text for text in _AWAY if text in self.said), "")

    # --- processes --------------------------------------------------------------------------------

    def processes(self) -> dict[int, str]:
        """All processes of this lab, whoever started them, by number: their command lines."""
        found = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and self._is_ours(entry):
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        return found

    def process(self, verb: str) -> int:
        """The one process of a verb that a supervisor started."""
        found: list[int] = []

        def is_there() -> bool:
            wanted = f"tools.main {verb} "
            found[:] = [
                number
                for number, line in self.processes().items()
                if wanted in line and "mock exec" not in line
            ]
            return len(found) == 1

        self.wait_for(is_there)
        return found[0]

    def close(self) -> None:
        """End everything and remove the directory."""
        # Again and again: one of them may just have started another.
        while left := self.processes():
            for number in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        for program in self._programs:
            program.process.wait(PATIENCE_S)
        shutil.rmtree(self.path, ignore_errors=True)

    def _is_ours(self, entry: Path) -> bool:
        is_over = (entry / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        wanted = f"{MARK}={self.path.name}".encode()
        return not is_over and wanted in (entry / "environ").read_bytes().split(b"\0")


@pytest.fixture
def lab(environment: dict[str, str]) -> Lab:
    """A lab, closed by `pytest_pyfunc_call`."""
    return Lab(environment)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Repeats a test with a lab when the machine was away in it; twice at most."""
    lab = pyfuncitem.funcargs.get("lab")
    if lab is None:
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    for left in reversed(range(_ATTEMPTS)):
        try:
            pyfuncitem.obj(**arguments)
        except (Exception, pytest.fail.Exception):
            if not left or not lab.was_away:
                raise
            pyfuncitem.user_properties.append(("repeated", lab.was_away))
        else:
            return True
        finally:
            lab.close()
        arguments["lab"] = lab = Lab(pyfuncitem.funcargs["environment"])
    return True
