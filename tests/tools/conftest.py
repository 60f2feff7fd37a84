from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import PROJECT, Result, armature


@pytest.fixture(name="armature")
def armature_here() -> Callable[..., Result]:
    """Runs a command line in this process."""
    return armature


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a program in a process of its own; it is gone when the test is over."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*command: str | Path, **options: Any) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            command,
            text=True,
            # Away from our terminal, and together with whatever it starts.
            start_new_session=True,
            **{**pipes, "env": environment, "cwd": PROJECT, **options},
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def run(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., Result]:
    """Runs a program to its end."""

    def run_to_end(*command: str | Path, stdin: str | None = None, **options: Any) -> Result:
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        process = start(*command, **options)
        out, err = process.communicate(stdin, timeout=60)
        assert "Traceback" not in (err or "")
        return Result(process.returncode, out, err)

    return run_to_end


@pytest.fixture(scope="session")
def vectors() -> list[dict[str, Any]]:
    text = (PROJECT / "tests" / "vectors" / "profiles.json").read_text()
    frames: list[dict[str, Any]] = json.loads(text)
    return frames
