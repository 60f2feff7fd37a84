"""`armature bench …` as a test wants it: in this process, on the mock, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    draws: bool = False,
) -> Result:
    """Run the bench on the mock in virtual time; drawing takes a third of it."""
    where = ("--robot", robot, "--joint", joint, "--link", "mock", "--fast", "--out", directory)
    with ExitStack() as stack:
        if not draws:
            stack.enter_context(without_matplotlib())
        return armature("bench", "friction", *where, "--json", *words)


@contextmanager
def without_matplotlib() -> Iterator[None]:
    """Let the bench find what a computer without the extra `report` has."""

    def find(name: str) -> object:
        return None if name == "matplotlib" else find_spec(name)

    with patch("tools.bench.analyse.find_spec", find):
        yield


def changed_robot(path: Path, changes: dict[str, str], *, joint: str = "joint3") -> Path:
    """The arm's file with other lines for one joint; each replaces the first of its kind."""
    head, mark, tail = robot_text("laas4").partition(f'name = "{joint}"')
    for old, new in changes.items():
        assert old in tail, old
        tail = tail.replace(old, new, 1)
    path.write_text(head + mark + tail)
    return path
