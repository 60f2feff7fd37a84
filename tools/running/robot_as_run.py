"""The robot with what a run changes: the time-out, and on a mock the deadline budget."""

from __future__ import annotations

import msgspec

from daq.errors import ConfigError
from daq.robot.description import DrivenRobot
from tools.shared.cli import say

_COMMAND_TIMEOUT_USUAL_MS = 20
_SKIPPED_MAX_WITHOUT_BUDGET = 1000
"""Periods a second: all of them."""


def with_command_timeout(robot: DrivenRobot, timeout_ms: int | None) -> DrivenRobot:
    """Return the robot with another time-out on all of its boards.

    Raises:
        ConfigError: It is not one that a board can keep.
    """
    if timeout_ms is None:
        return robot
    if not 1 <= timeout_ms <= 255:
        raise ConfigError("--command-timeout-ms", [f"{timeout_ms}: must lie between 1 and 255"])
    boards = tuple(
        msgspec.structs.replace(port, command_timeout_ms=timeout_ms) for port in robot.boards
    )
    return msgspec.structs.replace(robot, boards=boards)


def without_deadline_budget(robot: DrivenRobot) -> DrivenRobot:
    """Return the robot for an ordinary computer, which is now and then busy."""
    safety = msgspec.structs.replace(robot.safety, skipped_max_per_s=_SKIPPED_MAX_WITHOUT_BUDGET)
    return msgspec.structs.replace(robot, safety=safety)


def warn_of_timeout(robot: DrivenRobot) -> None:
    """Say so when real boards would go on for long without a command."""
    longest_ms = max(port.command_timeout_ms for port in robot.boards)
    if longest_ms > _COMMAND_TIMEOUT_USUAL_MS:
        say(
            f"armature: warning: boards go on for {longest_ms} ms after the last command; real "
            f"ones should not for more than {_COMMAND_TIMEOUT_USUAL_MS}"
        )
