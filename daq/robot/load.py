"""Finds and reads robot files: those of the package by name, any other by its path."""

from __future__ import annotations

from collections.abc import Collection
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from daq.errors import ConfigError
from daq.robot.description import Robot
from daq.robot.parse import parse_robot
from daq.robot.reading import show, suggest

__all__ = ["load_robot", "parse_robot", "robot_text", "shipped_robots"]

FILE_SIZE_MAX = 1_000_000
SUFFIX = ".toml"


def load_robot(name_or_path: str, *, profiles: Collection[str] = ()) -> Robot:
    """Read a robot by a shipped robot's name such as "laas4", or by the path of a .toml file.

    `profiles` as for `parse_robot`.

    Raises:
        ConfigError: There is no such robot, its file cannot be read, or it has mistakes; lists all.
    """
    return parse_robot(robot_text(name_or_path), name_or_path, profiles=profiles)


def robot_text(name_or_path: str) -> str:
    """Return the text of a robot file, by name or path, exactly as it stands.

    Raises:
        ConfigError: There is no such robot, or its file cannot be read.
    """
    path = _find(name_or_path)
    try:
        with path.open("rb") as file:
            data = file.read(FILE_SIZE_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(name_or_path, [f"cannot be read: {reason}"], code="unreadable") from error
    if len(data) > FILE_SIZE_MAX:
        problem = f"more than {FILE_SIZE_MAX} bytes, expected a robot file of a few kilobytes"
        raise ConfigError(name_or_path, [problem], code="too-large")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"not UTF-8: byte 0x{data[error.start]:02x} (at line {line})"
        raise ConfigError(name_or_path, [problem], code="not-utf-8") from error


def shipped_robots() -> tuple[str, ...]:
    """Return the names of the robots that come with the package, sorted."""
    return tuple(sorted(_shipped()))


def _find(name_or_path: str) -> Traversable:
    if "/" in name_or_path or name_or_path.endswith(SUFFIX):
        return Path(name_or_path)
    shipped = _shipped()
    if name_or_path not in shipped:
        meant = suggest(name_or_path, sorted(shipped))
        hint = f"did you mean {meant}?" if meant else "or the path of a .toml file"
        expected = f"expected one of {', '.join(sorted(shipped))} ({hint})"
        problem = f"{show(name_or_path)} is not a shipped robot, {expected}"
        raise ConfigError("robot", [problem], code="no-such-robot")
    return shipped[name_or_path]


def _shipped() -> dict[str, Traversable]:
    files = resources.files("daq.robot").joinpath("robots").iterdir()
    return {file.name.removesuffix(SUFFIX): file for file in files if file.name.endswith(SUFFIX)}
