"""Command lines as tests run them: in this process, or as programs in an environment of ours."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

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


def armature(*words: str | Path, stdin: str | bytes = b"") -> Result:
    """Run `armature …` in this process."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    with (
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")),
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        exit_code = main([str(word) for word in words])
    assert "Traceback" not in err.getvalue()
    return Result(exit_code, out.getvalue(), err.getvalue())


def make_environment(directory: Path) -> dict[str, str]:
    """For programs: `armature` and `python3` are this project's, caches, locks and faults ours."""
    places = {name: directory / name for name in ("bin", "cache", "run", "state")}
    for place in places.values():
        place.mkdir(mode=0o700)
    python = shlex.join(PYTHON)
    for name, command in {"armature": f"{python} -m tools.main", "python3": python}.items():
        program = places["bin"] / name
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{places['bin']}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT),
        "XDG_CACHE_HOME": str(places["cache"]),
        "XDG_RUNTIME_DIR": str(places["run"]),
        "XDG_STATE_HOME": str(places["state"]),
        "COLUMNS": "200",
    }
