"""How much current a motor may have: near its heat limit, before homing; and enabling at rest."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from commands import armature
from loop_rig import Rig, refused_for, with_values

from daq.loop.safety.current_limits import DERATING_DEGC
from daq.recording import open_recording
from daq.recording.states import State
from daq.robot import load_robot, robot_text
from daq.stream import messages as m


def heat(rig: Rig, degc: float) -> None:
    rig.links[0].tamper = with_values(rig.profiles[0], 0, winding_temperature_degc=degc)
    rig.step(60)


def test_a_hot_winding_has_less_current_and_says_so() -> None:
    rig = Rig("bench1").enable().hold()
    limit_degc = rig.robot.joints[0].limits.winding_temperature_max_degc
    whole_a = rig.axes[0].isat_a
    heat(rig, limit_degc - 11.0)
    assert rig.axes[0].isat_a == whole_a
    heat(rig, limit_degc - 5.0)
    assert rig.axes[0].isat_a == pytest.approx(0.5 * whole_a, abs=0.2)
    assert rig.wire(0, "isat_a")[-1] == rig.axes[0].isat_a
    assert rig.loop.status().joints[0].current_max_a == rig.axes[0].isat_a
    (warning,) = rig.events_of("heat")
    assert (warning.severity, warning.source) == ("warning", rig.robot.joints[0].name)
    heat(rig, limit_degc - 20.0)
    assert rig.axes[0].isat_a == whole_a


@pytest.mark.chain
def test_what_heat_took_away_is_in_the_recording(tmp_path: Path) -> None:
    """A robot file whose limit is so low that a motor is too warm soon after it holds its joint."""
    robot, file = tmp_path / "laas4.toml", tmp_path / "r.h5"
    limit_degc, table = 32.0, "[joints.limits]\n"
    limit = f"{table}winding_temperature_max_degc = {limit_degc}\n"
    robot.write_text(robot_text("laas4").replace(table, limit))
    words = ("--link", "mock", "--fast", "--enable", "--duration", "6", "--record", file)
    assert armature("run", "--robot", robot, *words).exit_code == 0

    with open_recording(file) as recording:
        isat_a, degc = recording["isat_a"][:], recording["winding_temperature_degc"][:]
        state, events = recording["state"][:], recording.events
    whole_a = np.array([joint.limits.current_max_a for joint in load_robot("laas4").joints])
    is_active = state == State.ACTIVE
    left_a = whole_a * (limit_degc - degc) / DERATING_DEGC
    # 50 times a second, and in steps of the wire.
    allowed_a = np.minimum(left_a, whole_a)[is_active][:-40]
    assert isat_a[is_active][40:] == pytest.approx(allowed_a, abs=0.3)
    assert (isat_a[is_active][-1] < 0.8 * whole_a).all()
    assert isat_a[np.flatnonzero(state == State.STOPPING)[-1]] == pytest.approx(whole_a, abs=0.13)
    told = [(event.severity, event.source) for event in events if event.kind == "heat"]
    assert sorted(told) == [("warning", f"joint{number}") for number in (1, 2, 3, 4)]


def test_a_stop_of_a_hot_motor_has_all_the_current() -> None:
    rig = Rig("bench1").enable().hold()
    whole_a = rig.axes[0].isat_a
    heat(rig, rig.robot.joints[0].limits.winding_temperature_max_degc - 2.0)
    assert rig.axes[0].isat_a < 0.5 * whole_a
    rig.send(m.Stop())
    rig.step(30)
    assert rig.wire(0, "isat_a")[-1] == whole_a


def test_what_holds_a_joint_is_not_taken_from_it() -> None:
    rig = Rig("laas4", posture_rad=(0.2, -1.0, 0.4, 0.6)).enable().home_by_truth().hold(500)
    board, motor = rig.place_of(1)
    limit_degc = rig.robot.joints[1].limits.winding_temperature_max_degc
    rig.links[board].tamper = with_values(
        rig.profiles[board], motor, winding_temperature_degc=limit_degc
    )
    before_rad = rig.joint_rad[-1][1]
    rig.step(1000)
    assert rig.axes[1].isat_a >= abs(rig.axes[1].iq_mean_a)
    assert rig.joint_rad[-1][1] == pytest.approx(before_rad, abs=0.02)
    assert rig.state is State.ACTIVE


def test_a_sensor_that_vanishes_is_a_fault() -> None:
    rig = Rig("bench1").enable().hold()
    rig.links[0].tamper = with_values(rig.profiles[0], 0, winding_temperature_degc=math.nan)
    rig.until(lambda: rig.state is State.STOPPING, cycles=100)
    assert rig.machine.trip_code == "temperature-sensor"


def test_a_motor_may_have_less_current_until_it_is_homed() -> None:
    robot = load_robot("laas4")
    safety = msgspec.structs.replace(robot.safety, unhomed_current_max_a=3.0)
    rig = Rig(msgspec.structs.replace(robot, safety=safety)).enable().hold(60)
    assert [axis.isat_a for axis in rig.axes] == [3.0] * 4
    rig.home_by_truth().step(60)
    assert rig.axes[0].isat_a == 20.0


@pytest.mark.parametrize("profile", ["arm", "udriver2"])
def test_an_arm_that_swings_is_not_enabled(profile: str) -> None:
    rig = Rig("laas4", profile=profile, posture_rad=(0.0, -1.57, 0.0, 0.0))
    rig.step(20)
    rig.mock.plant.data.qvel[1] = 2.0  # somebody has pushed it
    rig.step(120)
    with refused_for("not-now", "moving", "joint2"):
        rig.send(m.Enable())
    rig.mock.plant.data.qvel[:] = 0.0  # and stops it again
    rig.mock.plant.data.qpos[1] = -1.57
    rig.step(200)
    rig.send(m.Enable())


def test_a_trip_after_a_pause_names_the_pause() -> None:
    rig = Rig("bench1").enable().hold()
    rig.mode("velocity", 3.0)
    rig.step(300)
    rig.clock.advance_ns(40_000_000)
    deadline_ns = rig.clock.now_ns()
    rig.cycle.run(deadline_ns, deadline_ns, 40)
    rig.until(lambda: rig.state is State.STOPPING, cycles=200)
    assert rig.machine.trip_code == "error-2"
    assert rig.machine.reason.startswith("the computer paused for 40 ms")
    status = rig.loop.status()
    assert (status.trip_code, status.pause_ms) == ("error-2", 40)
