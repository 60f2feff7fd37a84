"""Homing in the loop: the true joint angles come out, and the arm hardly moves meanwhile."""

from __future__ import annotations

import math

import numpy as np
import pytest
from loop_rig import Rig, changed_joint, refused_for

from daq.loop.tracks import homing
from daq.motion.homing import TRAVEL_TURNS
from daq.recording.states import Mode, State
from daq.robot import load_robot
from daq.robot.description import Robot
from daq.stream import messages as m
from daq.stream.errors import RefusedError

pytestmark = pytest.mark.chain

COUNT_RAD = math.tau / 4096
HINT_RAD = (0.05, -math.pi / 2 - 0.04, 0.04, -0.03)
"""Off by less than 0.35 of the 0.2 rad between two possible zeros."""


def home(rig: Rig, posture_rad: tuple[float, ...] = HINT_RAD) -> Rig:
    rig.until(lambda: rig.cycle.control.is_at_rest, cycles=1000)  # a weak motor stops slowly
    rig.send(m.Home(posture_rad=posture_rad))
    assert all(track.mode is Mode.HOME for track in rig.tracks)
    rig.until(lambda: rig.cycle.control.homing is None)
    return rig


def position_errors(rig: Rig) -> np.ndarray:
    """At the motor, in encoder counts, against the plant's true joint angles."""
    measured = np.array([axis.position_rad for axis in rig.axes])
    per_joint = np.array([abs(axis.motor_per_joint) for axis in rig.axes])
    return np.abs(measured - rig.mock.plant.joint_position_rad) * per_joint / COUNT_RAD


@pytest.fixture(scope="module")
def homed() -> Rig:
    """With motors that turn the other way, and zeros elsewhere."""
    return home(Rig(turned_around(), calibration_s=0.4).enable().hold(300))


def turned_around() -> Robot:
    robot = load_robot("laas4")
    for joint, offset_rad in ((0, 0.3), (1, -0.2), (3, 0.05)):
        drive = {"direction": -1, "joint_offset_rad": offset_rad}
        robot = changed_joint(robot, joint, drive=drive)
    return robot


def test_the_true_angles_come_out(homed: Rig) -> None:
    assert all(axis.is_homed for axis in homed.axes)
    # An index lies between two replies, 2 mrad apart at the motor, and positions come in counts.
    assert position_errors(homed).max() <= 2.0
    assert homed.state is State.ACTIVE
    assert all(track.mode is Mode.HOLD for track in homed.tracks)


@pytest.mark.parametrize("profile", ["uomodri", "udriver2"])
def test_on_other_boards_as_well(profile: str) -> None:
    rig = home(Rig(turned_around(), profile=profile, calibration_s=0.4).enable().hold(300))
    assert all(axis.is_homed for axis in rig.axes)
    assert position_errors(rig).max() <= 2.0
    assert rig.state is State.ACTIVE


def test_it_says_so(homed: Rig) -> None:
    (event,) = homed.events_of("home")
    assert event.severity == "info" and "joint1 -0.0" in event.text
    assert [joint.is_homed for joint in homed.loop.status().joints] == [True] * 4


def test_the_arm_moves_gently(homed: Rig) -> None:
    speeds_rad_s = np.abs(np.diff(np.array(homed.joint_rad)[150:], axis=0)) * 1e3
    # 2 rad/s at the motor are 0.074 at the joint; the rest is the gravity of a swinging arm.
    assert speeds_rad_s.max() < 0.25
    # Noise of 20 mA, and encoder counts through kd: nothing that moves the arm.
    assert np.abs(np.diff(np.array(homed.measured_a)[700:], axis=0)).max() < 0.6
    # Back where it began.
    moved_rad = np.array(homed.joint_rad[-1]) - homed.joint_rad[700]
    assert np.abs(moved_rad).max() < 0.05


def test_references_go_on_over_the_end(homed: Rig) -> None:
    """The zero moves, the numbers with it, the arm does not: nothing jumps on the wire.

    A joint that stands is held where it is, 3 mrad beside at most, and with the same current.
    """
    homed.step(50)
    for joint in range(4):
        reference = homed.wire(joint, "motor_position_rad", 150)
        speed = homed.wire(joint, "motor_velocity_rad_s", 150)
        assert np.abs(np.diff(reference) - 0.5e-3 * (speed[1:] + speed[:-1])).max() < 0.1


def test_homing_twice_finds_the_same(homed: Rig) -> None:
    before = [axis.motor_offset_rad for axis in homed.axes]
    home(homed)
    after = [axis.motor_offset_rad for axis in homed.axes]
    assert after == pytest.approx(before, abs=3 * COUNT_RAD)
    assert position_errors(homed).max() <= 2.0
    homed.mode("position", 0.1, -1.4, 0.1, 0.1)
    homed.until(lambda: all(track.is_at_rest for track in homed.tracks))
    homed.step(600)
    assert homed.mock.plant.joint_position_rad == pytest.approx([0.1, -1.4, 0.1, 0.1], abs=0.01)


def test_disabling_forgets_it() -> None:
    rig = Rig("laas4").enable().home_by_truth().hold()
    rig.send(m.Disable())
    rig.until(lambda: rig.state is State.IDLE)
    rig.enable().hold()
    assert not any(axis.is_homed for axis in rig.axes)
    with pytest.raises(RefusedError) as refusal:
        rig.mode("position", 0.1, -1.5, 0.1, 0.1)
    assert refusal.value.code == "not-homed"


BEFORE_HOMING: dict[str, tuple[str, tuple[float, ...], tuple[str, ...], str]] = {
    "too far": ("position", (0.36,), ("joint3",), "joint3"),
    "too far down": ("position", (-0.36,), ("joint1",), "joint1"),
    "one of them too far": ("position", (0.1, -1.5, 0.1, 0.1), (), "joint2"),
    "too fast": ("velocity", (0.31,), ("joint4",), "joint4"),
    "too fast down": ("velocity", (0.0, 0.0, -0.4, 0.0), (), "joint3"),
    "a current": ("current", (0.1,), ("joint2",), "joint2"),
    "a torque": ("torque", (0.1,), ("joint2",), "joint2"),
}


def test_what_needs_homing() -> None:
    rig = Rig("laas4").enable().hold()
    for mode, target, joints, named in BEFORE_HOMING.values():
        with pytest.raises(RefusedError) as refusal:
            rig.mode(mode, *target, joints=joints)
        assert refusal.value.code == "not-homed"
        assert refusal.value.message.startswith(f"joint {named}: ")
        assert "`armature send home`" in refusal.value.message
    rows = np.zeros((2, 8))
    rows[:, 1] = -1.5
    rig.send(m.PlayBegin(rows=2))
    rig.send(m.PlayRows(first=0), rows.tobytes())
    with pytest.raises(RefusedError) as refusal:
        rig.send(m.PlayStart())
    assert refusal.value.code == "not-homed"
    assert rig.state is State.ACTIVE
    assert all(track.mode is Mode.HOLD for track in rig.tracks)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_before_homing_a_joint_is_jogged_slowly_and_not_far(sign: float) -> None:
    """Up to 0.35 rad from where it was enabled, at 0.3 rad/s: on the true motion of the arm."""
    rig = Rig("laas4").enable().hold()
    began_rad = rig.mock.plant.joint_position_rad[3]
    enabled_rad = rig.axes[3].enabled_at_rad
    since = rig.now
    rig.mode("position", enabled_rad + 0.3 * sign, joints=["joint4"])
    rig.until(lambda: rig.tracks[3].is_at_rest)
    rig.step(300)
    moved_rad = rig.mock.plant.joint_position_rad[3] - began_rad
    assert moved_rad == pytest.approx(0.3 * sign, abs=0.03)
    rig.mode("velocity", 0.3 * sign, joints=["joint4"])
    rig.until(lambda: rig.tracks[3].mode is Mode.HOLD, cycles=3000)
    rig.step(600)
    (event,) = rig.events_of("limit")
    assert event.source == "joint4" and "0.35 rad" in event.text
    answer = rig.mode("velocity", 0.3 * sign, joints=["joint4"])
    assert abs(answer["target"][0]) < 0.1, "hardly any way is left, and the answer says so"
    rig.step(1000)
    way_rad = np.array(rig.joint_rad)[since:, 3] - began_rad
    assert np.abs(way_rad).max() <= 0.35 + 0.02
    speeds_rad_s = np.abs(way_rad[50:] - way_rad[:-50]) / 0.05
    assert speeds_rad_s.max() <= 0.3 * 1.15
    assert rig.state is State.ACTIVE
    rig.mode("velocity", -0.3 * sign, joints=["joint4"])
    rig.step(500)
    assert sign * (rig.mock.plant.joint_position_rad[3] - began_rad) < 0.3, "back is free"


def test_what_could_not_be_homed_is_said_and_the_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hint in the middle of two possible postures, and an encoder without index."""
    monkeypatch.setattr(homing, "SPEED_RAD_S", 8.0)  # a search both ways takes long
    spacing_rad = math.tau / 27
    rig = Rig("laas4").enable().hold(300)
    rig.outputs[3].encoder._pass_index = lambda _turn: None
    home(rig, (0.0, -math.pi / 2 + 0.5 * spacing_rad, 0.0, 0.0))
    assert [axis.is_homed for axis in rig.axes] == [True, False, True, False]
    events = rig.events_of("home")
    assert [(e.severity, e.source) for e in events] == [("error", "joint2"), ("error", "joint4")]
    wrong_hint, no_index = (event.text for event in events)
    assert f"{-math.pi / 2 + 0.5 * spacing_rad:.4f} rad" in wrong_hint
    assert f"{2 * TRAVEL_TURNS:.2f}" in no_index
    assert rig.state is State.ACTIVE
    for joint in (1, 3):
        name, far_rad = f"joint{joint + 1}", rig.axes[joint].enabled_at_rad + 0.36
        with pytest.raises(RefusedError, match=f"joint {name}: ") as refusal:
            rig.mode("position", far_rad, joints=[name])
        assert refusal.value.code == "not-homed"
    rig.mode("position", 0.5, joints=["joint1"])


def test_a_hint_outside_the_limits_is_refused_at_once() -> None:
    rig = Rig("laas4").enable().hold(100)
    with pytest.raises(RefusedError, match=r"joint1: .* 6\.4 rad, limit 6\.283") as refusal:
        rig.send(m.Home(posture_rad=(6.4, 0.0, 0.0, 0.0)))
    assert (refusal.value.code, refusal.value.reason) == ("out-of-limit", "position-limit")
    assert rig.cycle.control.homing is None


def test_homing_is_refused_while_joints_move() -> None:
    rig = Rig("laas4").enable().hold(100)
    rig.mode("velocity", 0.2, 0.0, 0.0, 0.0)
    rig.step(100)
    with refused_for("not-now", "moving"):
        rig.send(m.Home())
    rig.mode("off")
    rig.step(20)
    with refused_for("not-now", "moving"):
        rig.send(m.Home())


def test_stopping_in_the_middle_leaves_the_old_zeros() -> None:
    rig = Rig("laas4").enable().hold(300)
    rig.send(m.Home())
    rig.step(700)
    rig.send(m.PlayStop())
    rig.step(600)
    assert rig.cycle.control.homing is None
    assert all(track.mode is Mode.HOLD and track.is_at_rest for track in rig.tracks)
    assert not any(axis.is_homed for axis in rig.axes)


def test_on_the_bench_there_is_nothing_to_find() -> None:
    rig = Rig("bench1").enable().hold()
    rig.send(m.Home())
    rig.step(5)
    assert rig.tracks[0].mode is Mode.HOLD
    assert rig.axes[0].is_homed
