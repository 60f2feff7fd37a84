"""Boards whose law overflows, and boards whose replies are torn between two rewrites."""

from __future__ import annotations

import math
import random

import msgspec
import numpy as np
import pytest
from acceptance import IS_LONG, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_rig import Rig, changed_joint, refused_for
from wire_places import true_rad_s

from daq.boards.wire_limits import sum_problems, wire_problems
from daq.loop.io.axis import Axis
from daq.loop.io.special_axes import SummedAxis, TornAxis
from daq.loop.safety.motion_guard import MotionGuard
from daq.loop.safety.standstill import StandstillGuard
from daq.loop.schedule import Chore
from daq.recording.states import State
from daq.robot import Gains, load_robot, shipped_robots
from daq.stream import messages as m
from firmware_protocol.profiles import PROFILES, UDRIVER2
from hw_mocks.plants.effects import parse_effects

ARM = load_robot("laas4")
BENCH = load_robot("bench1")
SUM_MAX_A = 128.0
UPPER = ~0xFFFF


def test_axes_are_special_only_where_a_board_is() -> None:
    kinds = {
        profile: [type(axis) for axis in Rig("laas4", profile=profile).axes] for profile in PROFILES
    }
    assert kinds == {
        "arm": [Axis] * 4,
        "uomodri": [Axis] * 4,
        "udriver2": [SummedAxis, TornAxis] * 2,
    }


# --- a law that overflows -------------------------------------------------------------------------


@pytest.mark.parametrize("name", shipped_robots())
@pytest.mark.parametrize("profile", PROFILES)
def test_shipped_gains_are_safe_on_every_board(name: str, profile: str) -> None:
    assert wire_problems(load_robot(name), profile=profile) == []


def sum_a(gains: Gains, joint_number: int = 0) -> float:
    """The most that a law can add up to within its limits, by independent arithmetic."""
    joint = ARM.joints[joint_number]
    gear = joint.drive.gear_reduction
    return (
        gains.kp_a_per_rad * ARM.safety.following_error_max_rad * gear
        + gains.kd_a_s_per_rad * joint.limits.velocity_max_rad_s * gear
        + joint.limits.current_max_a
    )


@settings(max_examples=examples(200))
@given(kp=st.floats(0.0, 20.0), kd=st.floats(0.0, 2.0), number=st.integers(0, 3))
def test_gains_are_refused_just_when_their_sum_could_overflow(
    kp: float, kd: float, number: int
) -> None:
    gains = Gains(kp_a_per_rad=kp, kd_a_s_per_rad=kd)
    joint = ARM.joints[number]
    problems = list(sum_problems(gains, ARM.safety, joint, UDRIVER2.behaviour))
    assert len(problems) == (sum_a(gains, number) >= SUM_MAX_A)
    for profile in ("arm", "uomodri"):
        assert not list(sum_problems(gains, ARM.safety, joint, PROFILES[profile].behaviour))
    if not problems:
        return
    # What the message calls safe is.
    name, _, rest = problems[0].partition(": ")
    safe = float(rest.partition("less than ")[2].split()[0])
    others = {"kp_a_per_rad": 0.0} if name == "kd_a_s_per_rad" else {}
    better = msgspec.structs.replace(gains, **others | {name: 0.99 * safe})
    assert not list(sum_problems(better, ARM.safety, joint, UDRIVER2.behaviour))


def test_a_robot_file_with_such_gains_is_refused_with_its_path() -> None:
    safety = msgspec.structs.replace(BENCH.safety, following_error_max_rad=1.0)
    robot = msgspec.structs.replace(BENCH, safety=safety)
    assert wire_problems(robot, profile="uomodri") == []
    (problem,) = wire_problems(robot, profile="udriver2")
    assert problem.startswith("joints[0].control.position.kp_a_per_rad: 5, less than 3.")
    assert "following_error_max_rad = 1" in problem and "128 A" in problem


def test_gains_that_could_overflow_are_refused_while_running() -> None:
    rig = Rig(profile="udriver2").enable().hold()
    with refused_for("out-of-limit", "gain-sum", "joint1", "128 A"):
        rig.send(m.SetGains(kp_a_per_rad=(5.0,), kd_a_s_per_rad=(0.3,)))
    rig.send(m.SetGains(kp_a_per_rad=(5.0,), kd_a_s_per_rad=(0.2,)))
    rig.step(200)
    assert rig.state is State.ACTIVE


@pytest.mark.parametrize("is_guarded", [False, True], ids=["unguarded", "guarded"])
def test_a_blocked_joint_never_makes_the_law_overflow(
    is_guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full speed against an end stop with high gains, even if nobody stops the robot in time."""
    gains = Gains(kp_a_per_rad=5.0, kd_a_s_per_rad=0.2)
    robot = changed_joint(BENCH, 0, control={"velocity": gains})
    rig = Rig(robot, profile="udriver2", effects=parse_effects("default,end_stop_rad=1.0"))
    rig.enable()
    if not is_guarded:
        rig.cycle.schedule[Chore.FOLLOWING] = lambda: None
        monkeypatch.setattr(MotionGuard, "look", lambda *_: None)
        monkeypatch.setattr(StandstillGuard, "look", lambda *_: None)
    rig.mode("velocity", 5.4)
    rig.until(lambda: rig.axes[0].position_rad > 0.99)
    sums, currents = [], []
    for _ in range(600):
        rig.step()
        command, output = rig.commands()[-1], rig.outputs[0]
        error_rad = command.motor_position_rad[0] - output.encoder.position_rad
        error_rad_s = command.motor_velocity_rad_s[0] - output.encoder.velocity_rad_s
        sums.append(
            command.kp_a_per_rad[0] * error_rad
            + command.kd_a_s_per_rad[0] * error_rad_s
            + command.iq_ff_a[0]
        )
        currents.append(output.iq_a)
    assert max(map(abs, sums)) < SUM_MAX_A
    if is_guarded:
        assert rig.machine.trip_code in ("following-error", "encoder-frozen")
        return
    lag_rad = (rig.tracks[0].reference[0] - rig.axes[0].position_rad) * rig.axes[0].motor_per_joint
    assert gains.kp_a_per_rad * lag_rad > SUM_MAX_A
    assert max(sums) > 20.0
    assert min(currents[100:]) > 8.0, "all that there is, and forwards"


# --- torn replies ---------------------------------------------------------------------------------


class TornWire:
    """Replies of an output whose upper half of the position is sometimes a rewrite older."""

    def __init__(self, seed: int) -> None:
        self.axis = Rig("laas4", profile="udriver2").axes[1]
        self.axis.forget_home()
        self._chance = random.Random(seed)
        self._before = 0
        self._filtered_rad_s = 0.0
        self.torn = 0

    def read(self, motor_rad: float, motor_rad_s: float) -> int:
        """What the axis makes of the next reply, less what is true, in the wire's steps."""
        axis = self.axis
        raw = int(motor_rad / axis._lsb_rad)
        self._filtered_rad_s += (1.0 - math.exp(-math.tau * 0.1)) * (
            motor_rad_s - self._filtered_rad_s
        )
        before, self._before = self._before, raw
        sent = raw
        if self._chance.random() < 0.25:
            sent = (before & UPPER) | (raw & 0xFFFF)
            self.torn += sent != raw
        raws = [0] * 20
        raws[axis._position_at] = sent
        raws[axis._velocity_at] = round(
            self._filtered_rad_s / (axis._rad_s_per_raw * axis.motor_per_joint)
        )
        axis.read(tuple(raws))
        return axis._last_raw - raw


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    amplitude_rad=st.floats(0.01, 60.0),
    share=st.floats(0.01, 1.0),
    drift_rad_s=st.floats(-30.0, 30.0),
)
def test_torn_positions_are_put_right(
    seed: int, amplitude_rad: float, share: float, drift_rad_s: float
) -> None:
    """Back and forth as fast as the joint may, or slower; hardly a reply stays torn."""
    wire = TornWire(seed)
    fastest_rad_s = wire.axis.speed_max_rad_s * wire.axis.motor_per_joint - 30.0
    # As hard as planned motions accelerate at most.
    swing_rad_s = min(share * fastest_rad_s / amplitude_rad, math.sqrt(540.0 / amplitude_rad))
    wrong = 0
    for k in range(1500):
        phase = swing_rad_s * k * 1e-3
        angle_rad = amplitude_rad * math.sin(phase) + drift_rad_s * k * 1e-3
        speed_rad_s = amplitude_rad * swing_rad_s * math.cos(phase) + drift_rad_s
        off = wire.read(angle_rad, speed_rad_s)
        wrong += k > 20 and off != 0
    assert wrong <= 2 + 0.02 * wire.torn


def test_a_jump_is_no_tear() -> None:
    wire = TornWire(0)
    for _ in range(10):
        wire.read(0.0, 0.0)
    offs = [wire.read(2.0, 0.0) for _ in range(3)]
    assert offs == [0, 0, 0], "an encoder that jumps is somebody else's business"


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(8 if IS_LONG else 1))
def test_homing_on_torn_replies(seed: int) -> None:
    rig = Rig("laas4", profile="udriver2", seed=seed).enable()
    rig.hold()
    rig.send(m.Home())
    rig.until(lambda: rig.cycle.control.homing is None)
    assert all(axis.is_homed for axis in rig.axes), rig.event_texts("home")
    rig.step(300)
    for axis, true_rad in zip(rig.axes, rig.mock.plant.joint_position_rad, strict=True):
        # Half of what a motor turns in a cycle, and a count, at the joint.
        assert axis.position_rad == pytest.approx(true_rad, abs=4e-3 / axis.motor_per_joint)


def test_positions_of_a_turning_motor_are_not_torn() -> None:
    """At every speed what the axis says is as old as replies are, and no older."""
    rig = Rig("laas4", profile="udriver2").enable().home_by_truth().hold()
    axis, plant = rig.axes[3], rig.mock.plant
    history: list[float] = []
    for speed_rad_s in (0.05, 0.5, 4.0, -4.0):
        rig.mode("velocity", speed_rad_s, joints=("joint4",))
        rig.step(400)
        began = rig.now
        zero_rad = plant.joint_position_rad[3] - axis.position_rad
        errors = []
        for _ in range(500):
            rig.step()
            history.append(plant.joint_position_rad[3])
            errors.append(history[-1] - zero_rad - axis.position_rad)
        wire = np.array([reply.motor_position_rad[1] for reply in rig.replies(1)[began:]])
        speeds = np.diff(wire) / 1e-3 / axis.motor_per_joint
        if abs(speed_rad_s) > 0.1:
            assert np.abs(speeds - speed_rad_s).max() > 0.5, "the wire's are"
        count_rad = math.tau / 4096 / axis.motor_per_joint
        assert np.ptp(errors) < 2.2e-3 * abs(speed_rad_s) + 2 * count_rad
        assert true_rad_s(rig, 3) == pytest.approx(speed_rad_s, rel=0.1, abs=0.02)
    assert rig.state is State.ACTIVE
