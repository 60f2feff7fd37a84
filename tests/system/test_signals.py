"""Whatever asks a loop to end, or to pause: its motors are stopped first, and it ends.

`run` has its own test for the signals that end programs every day (`test_run.py`).
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acceptance import IS_LONG
from commands import Result

from daq.recording import open_recording
from daq.recording.states import State
from daq.system.signals import SAFE_STOPS
from firmware_protocol.profiles import MODE_BITS, STATUS_BITS

pytestmark = pytest.mark.compiler

IN_MOTION = (signal.SIGQUIT, signal.SIGUSR2)
"""Tried with turning joints under `make test`; all others while they calibrate."""
TURNING_RAD_S = 0.3
"""As fast as joints may be jogged that are not homed."""

IGNORING = ("sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh")
"""As all children of a script in the background do."""


def loop_words(lab: Any) -> tuple[Any, ...]:
    """`armature loop` that brings its own mock; its motors are on while it calibrates."""
    link = ("--robot", lab.robot, "--link", "mock", "--command-timeout-ms", "250")
    return ("armature", *lab.here("loop", *link, "--enable", "--json"))


def check_safe_stop(lab: Any, result: Result, number: signal.Signals) -> None:
    """It ended through the safe stop, and its boards have confirmed that they are off."""
    assert result.exit_code == 0, result.err
    summary = result.json
    ending = "interrupted" if number == signal.SIGINT else "terminated"
    assert (summary["ending"], summary["reason"]) == (ending, number.name)
    assert summary["state"] == "idle"
    for text in (f"→ stopping: {number.name}", "stopping → idle", f"ends: {number.name}"):
        assert text in result.err
    assert "has not confirmed" not in result.err
    assert lab.processes() == {}


@pytest.mark.parametrize(
    "number", SAFE_STOPS if IS_LONG else [each for each in SAFE_STOPS if each not in IN_MOTION]
)
def test_each_of_them_makes_the_safe_stop(lab: Any, number: signal.Signals) -> None:
    """It goes to the robot's process, which passes it on to the loop's."""
    loop = lab.start(*loop_words(lab))
    lab.wait_for_state("calibrating")
    check_safe_stop(lab, loop.end(number), number)


@pytest.mark.acceptance
@pytest.mark.parametrize("number", SAFE_STOPS if IS_LONG else IN_MOTION)
def test_each_of_them_brakes_joints_that_turn(lab: Any, number: signal.Signals) -> None:
    file = lab.path / "r.h5"
    run = lab.start(*lab.run_words("--enable", "--record", file))
    lab.wait_for_state("active")
    speeds = ("--target", str(TURNING_RAD_S), str(TURNING_RAD_S))
    lab.accept("mode", "velocity", "--joint", "joint1", "joint4", *speeds)
    lab.wait_for(lambda: abs(lab.status().joints[0].velocity_rad_s) > 0.8 * TURNING_RAD_S)

    check_safe_stop(lab, run.end(number), number)

    check_braked(file)


def check_braked(file: Path) -> None:
    """Every motor was braked to rest with all boards on, and switched off then; as recorded."""
    with open_recording(file) as recording:
        column = {name: recording[name][:] for name in recording}
    stopping = np.flatnonzero(column["state"] == State.STOPPING)
    # A sample has the command that was decided in the one before.
    told = stopping + 1
    assert (np.diff(stopping) == 1).all()
    took_ns = np.diff(column["t_ns"][stopping[[0, -1]]])
    assert took_ns >= 0.298e9
    for name in ("kp_a_per_rad", "ki_a_per_rad_s", "iq_ff_a", "reference_velocity_rad_s"):
        assert (column[name][told] == 0.0).all(), name
    assert (column["kd_a_s_per_rad"][told] > 0.0).all()
    assert (column["command_mode"][told] & MODE_BITS["ES"]).all()
    speed_rad_s = np.abs(column["joint_velocity_rad_s"][stopping])
    assert (speed_rad_s[0, [0, 3]] > 0.7 * TURNING_RAD_S).all()
    assert speed_rad_s.max() <= 1.2 * TURNING_RAD_S
    assert speed_rad_s[-100:].max() < 0.05
    # Off with the next command, for good; and the boards say so.
    assert not column["command_mode"][told[-1] + 1 :].any()
    is_on = STATUS_BITS["M1E"] | STATUS_BITS["M2E"]
    assert not (column["board_status"][-1] & is_on).any()


def test_ctrl_z_on_a_terminal_suspends_nothing(lab: Any) -> None:
    """A terminal sends it to all processes of the foreground at once."""
    host, terminal = os.openpty()
    with open(host, "r+b", buffering=0) as keyboard:
        words = ("setsid", "--ctty", "--wait", *loop_words(lab))
        loop = lab.start(*words, stdin=terminal)
        os.close(terminal)
        lab.wait_for_state("calibrating")

        keyboard.write(b"\x1a")

        check_safe_stop(lab, loop.wait(), signal.SIGTSTP)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_what_a_background_script_ignores_is_heard(lab: Any, number: signal.Signals) -> None:
    loop = lab.start(*IGNORING, *loop_words(lab))
    lab.wait_for_state("calibrating")
    check_safe_stop(lab, loop.end(number), number)


def test_a_closed_terminal_is_ignored_under_nohup(lab: Any) -> None:
    run = lab.start("nohup", *lab.run_words("--enable"))
    lab.wait_for_state("calibrating")

    for process in lab.processes():
        os.kill(process, signal.SIGHUP)

    status = lab.wait_for_cycles(200)
    assert status.state in ("calibrating", "ready", "active")
    check_safe_stop(lab, run.end(signal.SIGTERM), signal.SIGTERM)


def test_a_signal_to_all_processes_leaves_the_last_words(lab: Any) -> None:
    """As of `systemctl kill`: those who serve the loop end with it, not before."""
    loop = lab.start(*loop_words(lab))
    lab.wait_for_state("calibrating")

    for process in lab.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGUSR1)

    check_safe_stop(lab, loop.wait(), signal.SIGUSR1)
