"""Waiting until a command has had its effect, by asking for the status again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from daq.stream.command_client import CommandClient
from daq.stream.errors import CommandRefusedError, CommandTimeoutError
from daq.stream.messages import LoopStatus
from tools.shared.cli import BOARD_FAULT, FAILED, OK, say

_PERIOD_S = 0.05
_SILENCE_MAX_S = 10.0
"""A gateway that is replaced, or a busy computer, is not a reason to leave a motion unwatched."""
_ON = ("ready", "active")


class Wait(NamedTuple):
    """What a command waits for."""

    purpose: str
    is_done: Callable[[LoopStatus], bool]
    is_lost: Callable[[LoopStatus], bool]
    """Whether it cannot happen any more."""
    timeout_s: float
    """How long it may take, besides the length of a trajectory."""


def _is_on(status: LoopStatus) -> bool:
    return status.state in _ON


def _no_joint_in(mode: str, status: LoopStatus) -> bool:
    return all(joint.mode != mode for joint in status.joints)


def _is_idle(status: LoopStatus) -> bool:
    return status.state == "idle"


# A stop in progress may still end in a fault, so none of these ends while it is stopping.
WAITS = {
    "enable": Wait("the robot is ready", _is_on, _is_idle, 30.0),
    "home": Wait(
        "all joints are homed",
        lambda s: (
            _is_on(s) and _no_joint_in("home", s) and all(joint.is_homed for joint in s.joints)
        ),
        lambda s: _is_idle(s) or (_is_on(s) and _no_joint_in("home", s)),
        180.0,
    ),
    "play": Wait(
        "the trajectory is over", lambda s: _is_on(s) and _no_joint_in("play", s), _is_idle, 60.0
    ),
    "mode": Wait("the joints are at rest", lambda s: _is_on(s) and s.is_at_rest, _is_idle, 30.0),
    "disable": Wait("it is idle", _is_idle, lambda _: False, 30.0),
    "stop": Wait("it is idle", _is_idle, lambda _: False, 30.0),
}
"""For the actions of `armature send` that take time."""


def wait_until(
    client: CommandClient,
    action: str,
    *,
    before: LoopStatus | None,
    timeout_s: float | None,
    duration_s: float = 0.0,
) -> tuple[int, str]:
    """Wait for what an accepted action of `WAITS` is for; return exit code and ending in words.

    The status before the action matters for `play`, and so does how long its trajectory takes. A
    time-out of None is the action's own.
    """
    wait = WAITS[action]
    limit_s = wait.timeout_s + duration_s if timeout_s is None else timeout_s
    deadline = time.monotonic() + limit_s
    try:
        while True:
            status = _patient_status(client, deadline)
            if status.state == "fault":
                exit_code = BOARD_FAULT if status.is_fault_of_board else FAILED
                return exit_code, f"fault: {status.reason}"
            if wait.is_done(status):
                if action == "play" and before and status.trajectories == before.trajectories:
                    return FAILED, "the trajectory was left before its end"
                return OK, wait.purpose
            if wait.is_lost(status):
                return FAILED, f"ended early in state {status.state}: {status.reason}"
            if time.monotonic() > deadline:
                return FAILED, f"not within {limit_s:g} s; state {status.state}: {status.reason}"
            time.sleep(_PERIOD_S)
    except KeyboardInterrupt:
        say("armature: no longer waiting; the robot goes on (`armature send stop` stops it)")
        raise


def _patient_status(client: CommandClient, deadline: float) -> LoopStatus:
    """Return the loop's status; while nobody answers, ask again until the deadline.

    Raises:
        CommandTimeoutError, CommandRefusedError: Nobody answered for a long time.
    """
    deadline = min(deadline, time.monotonic() + _SILENCE_MAX_S)
    while True:
        try:
            return client.status()
        except (CommandTimeoutError, CommandRefusedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(_PERIOD_S)
