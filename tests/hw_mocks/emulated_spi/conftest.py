from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hw_mocks.emulated_spi.shim import shim_environment

DEVICES = ("/dev/spidev0.0", "/dev/spidev0.1")
COMPILERS = ("cc", "gcc", "clang")
PROJECT = Path(__file__).parents[3]

PREAMBLE = """
import contextlib, ctypes, errno, fcntl, os, stat, struct, subprocess, sys, threading, time
import spidev

def open_spi(chip_select=0):
    spi = spidev.SpiDev()
    spi.open(0, chip_select)
    return spi

def inverted(data):
    return [byte ^ 0xFF for byte in data]

def settings(spi, **kwargs):
    return struct.unpack(">IBI", bytes(spi.xfer2([0xE3] * 9, *kwargs.values())))

def previous(spi):
    answer = bytes(spi.xfer2([0xE4] * 2050))
    return answer[2 : 2 + int.from_bytes(answer[:2], "big")]

def number(spi, sent=0, speed_hz=1_000_000):
    return int.from_bytes(spi.xfer2(sent.to_bytes(12, "big"), speed_hz), "big")

def heard(spi):
    return struct.unpack(">QQ", bytes(spi.xfer2([0xE5] * 16)))

def error_of(function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        return error.errno
    return 0
"""


def _python(code: str) -> tuple[str, ...]:
    # Python 3.12 warns of fork() beside threads, which is just what one test is about.
    options = ("-W", "error", "-W", "ignore::DeprecationWarning")
    return (sys.executable, *options, "-c", PREAMBLE + textwrap.dedent(code))


class BoardProcess:
    """A board in a process of its own, and ways to run programs that see its devices."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.directory = directory
        self.environment = environment
        plain = {**os.environ, "PYTHONPATH": str(PROJECT)}
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("board_process.py"), directory, *DEVICES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=plain,
        )
        assert self._read_line() == "ready"

    def _read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def order(self, order: str, device: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{order} {device}\n")
        self.process.stdin.flush()
        assert self._read_line() == "done"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    @staticmethod
    def nudge(program: subprocess.Popen[str]) -> None:
        """Let a program go on that waits for a line."""
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()

    def start(self, *command: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment
        )

    def start_python(self, code: str) -> subprocess.Popen[str]:
        return self.start(*_python(code))

    def run(self, *command: str | Path) -> str:
        """Run a program that must succeed and say nothing on stderr; return its stdout."""
        result = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, timeout=30, check=False
        )
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    def run_python(self, code: str) -> str:
        return self.run(*_python(code))


@pytest.fixture(scope="session")
def shim_cache(made_once: Callable[..., Path]) -> Path:
    def build(cache: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(cache))
            shim_environment(cache, {})

    return made_once("shim", build)


@pytest.fixture
def compile_c(tmp_path: Path) -> Callable[..., Path]:
    """Compile a C text with extra flags, warnings being errors; return the result."""

    def compile_text(text: str, *flags: str) -> Path:
        compiler = next(path for name in COMPILERS if (path := shutil.which(name)))
        source = tmp_path / "source.c"
        source.write_text(text)
        output = tmp_path / f"output{len(list(tmp_path.iterdir()))}"
        warnings = ("-Wall", "-Wextra", "-Werror")
        subprocess.run([compiler, *warnings, *flags, "-o", str(output), str(source)], check=True)
        return output

    return compile_text


@pytest.fixture
def short_directory() -> Iterator[Path]:
    """A private directory whose path is short enough for sockets, which pytest's may not be."""
    with tempfile.TemporaryDirectory(prefix="spi-") as directory:
        yield Path(directory)


@pytest.fixture
def board(
    short_directory: Path, shim_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BoardProcess]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(shim_cache))
    process = BoardProcess(short_directory, shim_environment(short_directory, os.environ))
    yield process
    process.close()
