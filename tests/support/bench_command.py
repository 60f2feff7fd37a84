"""`armature bench …` as a test wants it: in this process, on the mock, in virtual time."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

from commands import Result, armature

from daq.robot import robot_text

QUICK = ("--speeds", "5", "--repetitions", "1", "--dwell", "0.5", "--speed-min", "0.3")
"""A sweep of ten plateaus: half a minute of the mock's time."""


def friction(
    directory: Path,
    *words: str | Path,
    robot: str | Path = "laas4",
    joint: str = "joint3",
    draws: bool = True,
) -> Result:
    """Run the bench on the mock in virtual time; if it need not draw, without Matplotlib."""
    where = ("--robot", robot, "--joint", joint, "--link", "mock", "--fast", "--out", directory)
    with contextlib.nullcontext() if draws else patch("tools.bench.analyse.find_spec", _no_drawing):
        return armature("bench", "friction", *where, "--json", *words)


def _no_drawing(name: str) -> object:
    return None if name == "matplotlib" else find_spec(name)


def changed_robot(path: Path, changes: dict[str, str], *, joint: str = "joint3") -> Path:
    """The arm's file with other lines for one joint; each replaces the first of its kind."""
    head, mark, tail = robot_text("laas4").partition(f'name = "{joint}"')
    for old, new in changes.items():
        assert old in tail, old
        tail = tail.replace(old, new, 1)
    path.write_text(head + mark + tail)
    return path
