from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tools.main import main

PROJECT = Path(__file__).parents[2]
PYTHON = (sys.executable, "-W", "error")


class Result(NamedTuple):
    """What a command said and how it ended."""

    exit_code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        (line,) = self.lines
        return json.loads(line)

    @property
    def jsonl(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def armature(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Runs a command line in this process."""

    def run(*words: str, stdin: str | bytes = b"") -> Result:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        capsys.readouterr()
        exit_code = main(words)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Result(exit_code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """For processes: `armature` and `python3` are this project's, caches and locks are ours."""
    programs = tmp_path_factory.mktemp("bin")
    python = shlex.join(PYTHON)
    for name, command in {"armature": f"{python} -m tools.main", "python3": python}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
        "XDG_RUNTIME_DIR": str(tmp_path_factory.mktemp("run")),
        "COLUMNS": "200",
    }


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
