"""`armature bench …` called in this process, as a test wants it: on the mock, in virtual time."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

from daq.robot import robot_text
from tools.main import main

QUICK = ("--speeds", "5", "--repetitions", "1", "--dwell", "0.5", "--speed-min", "0.3")
"""A sweep of ten plateaus: half a minute of the mock's time."""


class Outcome(NamedTuple):
    """What a command said and how it ended."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        (line,) = self.out.splitlines()
        return json.loads(line)


def armature(*words: str | Path) -> Outcome:
    """Run a command line."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        exit_code = main([str(word) for word in words])
    return Outcome(exit_code, out.getvalue(), err.getvalue())


def friction(
    directory: Path, *words: str | Path, robot: str | Path = "laas4", joint: str = "joint3"
) -> Outcome:
    """Run the bench on the mock in virtual time."""
    where = ("--robot", robot, "--joint", joint, "--link", "mock", "--fast", "--out", directory)
    return armature("bench", "friction", *where, "--json", *words)


def changed_robot(path: Path, changes: dict[str, str], *, joint: str = "joint3") -> Path:
    """The arm's file with other lines for one joint; each replaces the first of its kind."""
    head, mark, tail = robot_text("laas4").partition(f'name = "{joint}"')
    for old, new in changes.items():
        assert old in tail, old
        tail = tail.replace(old, new, 1)
    path.write_text(head + mark + tail)
    return path
