"""Parses the text of a robot file into a robot, or one error that lists every mistake. No I/O."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping

from daq.errors import ConfigError
from daq.robot.checks import check_profiles, check_robot
from daq.robot.description import Robot
from daq.robot.reading import read_struct

DOTS_MAX = 5000
"""tomllib's memory grows with the square of a dotted key's length: 1 MB of `a.a.a` takes it all."""


def parse_robot(text: str, source: str, *, profiles: Collection[str] = ()) -> Robot:
    """Read a robot from the text of its file.

    Args:
        text: The text, TOML.
        source: What to call the text in an error: its file, or the recording it was found in.
        profiles: The wire formats that boards may name, for callers that will drive the robot: one
            without boards is then refused. By default any, and none is needed.

    Raises:
        ConfigError: The text is not TOML, or the robot has mistakes; lists all of them.
    """
    dots = text.count(".")
    if dots > DOTS_MAX:
        raise ConfigError(
            source, [f"{dots} dots, expected at most {DOTS_MAX} in a robot file"], code="too-large"
        )
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        end = f"end of document, line {text.count(chr(10)) + 1}"
        problem = f"not TOML: {error}".replace("end of document", end)
        raise ConfigError(source, [problem], code="not-toml") from error
    except RecursionError:
        raise ConfigError(
            source, ["not a robot file: nested too deeply"], code="too-large"
        ) from None
    return build_robot(data, source, profiles=profiles)


def build_robot(
    data: Mapping[str, object], source: str, *, profiles: Collection[str] = ()
) -> Robot:
    """Read a robot from parsed TOML, the file's top-level table; else as `parse_robot`.

    Raises:
        ConfigError: The robot has mistakes; lists all of them.
    """
    robot, problems = read_struct(Robot, data)
    problems += check_robot(robot)
    if profiles:
        problems += check_profiles(robot, profiles)
    if problems:
        raise ConfigError(source, [str(problem) for problem in problems])
    return robot.driven() if robot.is_driven else robot
