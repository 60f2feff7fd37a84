"""Whatever asks a loop to end, or to pause: its motors are stopped first, and it ends.

`run` has its own test for the signals that end programs every day (`test_run.py`).
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

import pytest
from commands import Result

from daq.system.signals import SAFE_STOPS

pytestmark = pytest.mark.compiler

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


@pytest.mark.parametrize("number", SAFE_STOPS)
def test_each_of_them_makes_the_safe_stop(lab: Any, number: signal.Signals) -> None:
    """It goes to the robot's process, which passes it on to the loop's."""
    loop = lab.start(*loop_words(lab))
    lab.wait_for_state("calibrating")
    check_safe_stop(lab, loop.end(number), number)


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
