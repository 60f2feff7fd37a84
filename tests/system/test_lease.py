"""Who commands, between real processes: a run that is not disturbed, a script that is killed."""

from __future__ import annotations

import signal
import sys
from typing import Any

import numpy as np
import pytest

from daq.motion.trajectory_file import write_trajectory

pytestmark = pytest.mark.compiler

SCRIPT = """
import sys, time
from daq.stream.command_client import CommandClient
from daq.stream.command_lease import CommandLease
from daq.stream.messages import SetMode

with CommandClient(sys.argv[1]) as robot, CommandLease(robot, "turning"):
    robot.ask(
        SetMode(mode="velocity", joints=("joint1",), target=(0.05,), ends_with_lease=True)
    )
    print("turning", flush=True)
    time.sleep(600)
"""


def test_nobody_interferes_with_a_run(lab: Any) -> None:
    # Longer than this test takes on the busiest machine.
    t_s, rest_rad = np.arange(0.0, 120.0, 0.01), np.array([0.0, -1.57, 0.0, 0.0])
    q_rad = np.tile(rest_rad, (len(t_s), 1))
    trajectory = lab.path / "rest.h5"
    write_trajectory(trajectory, t_s=t_s, q_rad=q_rad, dq_rad_s=np.zeros_like(q_rad))
    run = lab.start(*lab.run_words("--play", trajectory, "--duration", "120"))
    lab.wait_for_state("active")

    refused = lab.send("mode", "off", "--json")

    assert refused.exit_code == 1
    assert refused.json["error"]["code"] == "held"
    assert "the loop itself (--play)" in refused.err and "--take" in refused.err
    assert "the loop itself (--play)" in lab.ask("status").out
    lab.accept("record", "mark", "still playing")
    lab.accept("disable", "--wait")
    assert lab.status().held_by is None
    # Ended from outside, it has not done what it was asked for.
    ended = run.end()
    assert ended.exit_code == 1
    assert "before its end" in ended.err or "homing failed" in ended.err


def test_what_a_killed_script_was_doing_comes_to_hold(lab: Any) -> None:
    lab.start(*lab.mock_words(), *lab.loop_words("--enable"))
    lab.wait_for_state("active")
    lab.wait_for(lambda: lab.status().held_by is None)
    script = lab.start(sys.executable, "-c", SCRIPT, f"ipc://{lab.runtime}/commands")
    lab.wait_for(lambda: "turning" in script.out)
    # For longer than an unrenewed lease lasts.
    status = lab.wait_for_cycles(3000)
    assert status.held_by is not None and status.held_by.name.startswith("turning (")
    assert status.joints[0].mode == "velocity"
    assert lab.send("mode", "hold").exit_code == 1

    script.process.send_signal(signal.SIGKILL)

    lab.wait_for(lambda: lab.status().held_by is None)
    status = lab.status()
    assert (status.state, status.joints[0].mode) == ("active", "hold")
    assert any("lapsed" in event and "comes to hold" in event for event in status.events)
    lab.accept("disable", "--wait")
