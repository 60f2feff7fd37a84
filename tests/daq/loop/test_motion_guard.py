"""Joints that do not follow, or would run into a limit; and what must not begin again."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from loop_rig import Rig, for_cycles, refused_for, silent
from stop_cases import POSTURES, Case, start
from true_motion import TrueMotion

from daq.loop.io.axis import Axis
from daq.recording.states import Mode, State
from daq.stream import messages as m


def arm(joint4_rad: float = 0.0) -> Rig:
    rig = Rig("laas4", posture_rad=(0.0, -1.57, 0.0, joint4_rad), calibration_s=0.2)
    return rig.enable().home_by_truth()


def test_a_joint_that_cannot_follow_stops_the_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig("bench1").enable()
    axis = rig.loop.cycle.control.tracks[0].axis
    rig.send(m.SetMode(mode="velocity", target=(2.0,)))
    # The motor has no torque any more: its current limit on the wire is the smallest there is.
    monkeypatch.setattr(Axis, "limit_current", lambda *_: None)
    rig.loop.cycle.units[0].command[14] = 1
    rig.until(lambda: rig.state is State.STOPPING, cycles=3000)

    assert rig.machine.trip_code == "following-error"
    assert "joint joint1:" in rig.machine.reason
    assert "limit 0.5 rad" in rig.machine.reason
    assert abs(axis.position_rad) < 10.0
    rig.step(80)
    assert rig.event_texts("limit") == [rig.machine.reason]


@pytest.mark.parametrize(("speed", "start_rad"), [(1.0, 5.0), (-4.0, 0.0)])
def test_a_constant_speed_ends_before_the_limit(speed: float, start_rad: float) -> None:
    rig = arm(start_rad)
    joint = rig.robot.joints[3].limits
    rig.send(m.SetMode(mode="hold"))
    rig.send(m.SetMode(mode="velocity", joints=("joint4",), target=(speed,)))
    track = rig.loop.cycle.control.tracks[3]
    rig.until(lambda: track.mode is Mode.HOLD, cycles=12_000)
    rig.step(600)

    assert rig.state is State.ACTIVE
    assert joint.position_min_rad < track.axis.position_rad < joint.position_max_rad
    assert abs(track.axis.position_rad) > joint.position_max_rad - 2.0
    assert [(e.severity, e.source) for e in rig.events_of("limit")] == [("info", "joint4")]


@pytest.mark.parametrize("amperes", [0.8, 1.2, -1.2])
def test_a_joint_that_is_pushed_is_held_before_its_limit(amperes: float) -> None:
    rig = arm(math.copysign(5.0, amperes)).hold()
    motion, limit_rad = TrueMotion(rig), rig.robot.joints[3].limits.position_max_rad
    rig.mode("current", amperes, joints=["joint4"])
    rig.until(lambda: rig.tracks[3].mode is Mode.HOLD, cycles=5000)
    rig.step(1500)

    assert rig.state is State.ACTIVE
    assert np.abs(motion.position_rad()[:, 3]).max() < limit_rad
    assert np.abs(motion.velocity_rad_s()[-400:, 3]).max() < 0.02
    assert rig.event_texts("limit") == ["joint joint4: stopped before its limit"]


def test_a_joint_that_something_makes_faster_than_planned_is_held() -> None:
    rig = arm().hold()
    rig.mode("velocity", 4.4, joints=["joint1"])
    rig.until(lambda: rig.axes[0].velocity_rad_s > 4.3, cycles=3000)
    plant, inner = rig.mock.plant, rig.mock.step

    def push() -> None:
        plant.data.qvel[0] = 4.92
        inner()

    rig.mock.step = push  # type: ignore[method-assign]
    rig.until(lambda: bool(rig.events_of("limit")), cycles=50)
    rig.mock.step = inner  # type: ignore[method-assign]
    rig.step(1500)

    (event,) = rig.events_of("limit")
    assert (event.severity, event.source) == ("info", "joint1")
    assert "speed limit" in event.text
    assert (rig.state, rig.tracks[0].mode) == (State.ACTIVE, Mode.HOLD)


def test_a_joint_that_is_kept_from_its_reference_stops_the_robot_soon() -> None:
    """Somebody has pushed it away, and it does not come back."""
    rig = arm().hold()
    axis, data, inner = rig.axes[0], rig.mock.plant.data, rig.mock.step
    away_rad, jitter = 0.0, itertools.cycle([0.0, 0.002])

    def push() -> None:
        nonlocal away_rad
        away_rad = min(away_rad + 0.00025, axis.error_max_rad + 0.03)
        inner()
        data.qpos[0], data.qvel[0] = away_rad + next(jitter), 0.0

    rig.mock.step = push  # type: ignore[method-assign]
    rig.until(lambda: axis.position_rad > axis.error_max_rad, cycles=1000)
    assert axis.position_rad < axis.following_max_rad
    began_ns = rig.clock.now_ns()
    rig.until(lambda: rig.state is State.STOPPING, cycles=2000)

    assert rig.machine.trip_code == "following-error"
    assert 0.25 < 1e-9 * (rig.clock.now_ns() - began_ns) < 1.1


@pytest.mark.parametrize("mode", ["hold", "velocity"])
@pytest.mark.parametrize("cycles", [75, 97])
def test_a_joint_that_is_driven_is_not_thrown_back_by_its_last_reference(
    cycles: int, mode: str
) -> None:
    """Gains fade for 100 ms: what is asked of it meanwhile does not begin where it was held."""
    rig = arm().hold()
    motion = TrueMotion(rig)
    rig.mode("current", 7.0, joints=["joint1"])
    rig.step(cycles)
    left_rad = rig.axes[0].position_rad
    rig.mode(mode, *[0.0] * (mode == "velocity"), joints=["joint1"])
    rig.step(2000)

    assert rig.state is State.ACTIVE, rig.machine.reason
    assert left_rad > 0.03
    assert motion.velocity_rad_s()[:, 0].min() > -1.5  # by the gains that fade
    assert motion.position_rad()[-1, 0] > left_rad - 0.01


@pytest.mark.parametrize("speed", [50.0, 4.6, -4.6])
def test_a_speed_beyond_the_limit_is_refused_wherever_the_joint_is(speed: float) -> None:
    """It was slowed down to what there is room for, and then accepted."""
    for start_rad in (0.0, 5.9, -5.9):
        rig = arm(start_rad)
        rig.send(m.SetMode(mode="hold"))
        with refused_for("out-of-limit", "speed-limit", "joint4", f"{speed:.4g} rad/s", "4.5"):
            rig.send(m.SetMode(mode="velocity", joints=("joint4",), target=(speed,)))
        assert rig.tracks[3].mode is Mode.HOLD


def test_the_answer_tells_the_speed_that_there_is_room_for() -> None:
    rig = arm(5.5)
    rig.send(m.SetMode(mode="hold"))
    rig.step(100)
    answer = rig.send(m.SetMode(mode="velocity", joints=("joint4",), target=(4.0,)))
    (target,) = answer["target"]
    assert 0.1 < target < 4.0
    rig.until(lambda: rig.tracks[3].mode is Mode.HOLD, cycles=3000)
    rig.step(600)
    assert rig.state is State.ACTIVE
    assert max(row[3] for row in rig.joint_rad) < rig.robot.joints[3].limits.position_max_rad
    highest = rig.wire(3, "motor_velocity_rad_s").max() / abs(rig.axes[3].motor_per_joint)
    assert highest == pytest.approx(target, abs=0.01)


@pytest.mark.parametrize("command", [m.Disable(), m.SetMode(mode="hold")], ids=["disable", "hold"])
def test_asking_again_does_not_keep_the_robot_moving(command: m.AnyCommand) -> None:
    rig = Rig("bench1").enable()
    rig.send(m.SetMode(mode="velocity", target=(5.0,)))
    rig.step(500)
    control = rig.loop.cycle.control
    for _ in range(100):
        if rig.state is not State.ACTIVE or control.is_at_rest:
            break
        rig.send(command)
        rig.step(5)
    assert rig.state is not State.ACTIVE or control.is_at_rest


@pytest.mark.parametrize("mode", ["hold", "velocity", "position", "off"])
def test_all_gains_zero_is_refused_and_mode_off_is_named(mode: str) -> None:
    rig = arm()
    here = [axis.position_rad for axis in rig.axes]
    targets = {"velocity": [0.0] * 4, "position": here}
    rig.send(m.SetMode(mode=mode, target=tuple(targets.get(mode, ()))))
    rig.step(300)
    none = dict.fromkeys(("kp_a_per_rad", "kd_a_s_per_rad", "ki_a_per_rad_s"), (0.0,))
    with refused_for("out-of-limit", "all-gains-zero", "joint2", "`mode off`"):
        rig.send(m.SetGains(joints=("joint2",), **none))
    # Nor one after the other.
    rig.send(m.SetGains(joints=("joint2",), ki_a_per_rad_s=(0.0,)))
    rig.step(200)
    rig.send(m.SetGains(joints=("joint2",), kp_a_per_rad=(0.0,)))
    rig.step(200)
    with refused_for("out-of-limit", "all-gains-zero", "joint2"):
        rig.send(m.SetGains(joints=("joint2",), kd_a_s_per_rad=(0.0,)))
    assert rig.state in (State.READY, State.ACTIVE)


def test_enable_waits_until_the_boards_are_off() -> None:
    rig = Rig("bench1").enable()
    rig.send(m.Stop())
    rig.until(lambda: rig.state is State.IDLE)

    with refused_for("not-now", "still-on"):
        rig.send(m.Enable())
    rig.step(3)
    rig.send(m.Enable())
    assert rig.state is State.CALIBRATING


def test_a_zero_that_is_known_is_not_moved_by_a_wrong_hint() -> None:
    rig = arm()
    rig.send(m.SetMode(mode="hold"))
    rig.step(500)
    here = [track.axis.position_rad for track in rig.loop.cycle.control.tracks]

    with refused_for("out-of-limit", "homed-elsewhere"):
        rig.send(m.Home(posture_rad=(here[0] + 0.608, *here[1:])))


def test_an_output_without_a_motor_gets_no_current() -> None:
    rig = Rig("bench1").enable()
    assert rig.commands(0)[-1].isat_a == (8.75, 0.125)


def test_a_joint_without_gains_is_not_held() -> None:
    rig = Rig("bench1").enable()
    rig.mode("current", 0.0)
    zero = dict.fromkeys(("kp_a_per_rad", "kd_a_s_per_rad", "ki_a_per_rad_s"), (0.0,))
    rig.send(m.SetGains(**zero))
    for command in (m.SetMode(mode="hold"), m.SetMode(mode="position", target=(0.5,)), m.Home()):
        with refused_for("not-now", "all-gains-zero", "joint1"):
            rig.send(command)
    rig.send(m.SetGains(kp_a_per_rad=(1.0,), kd_a_s_per_rad=(0.02,)))
    rig.mode("hold")


@pytest.mark.parametrize("mode", ["current", "torque"])
def test_nobody_is_driven_on_of_whom_nothing_is_heard(mode: str) -> None:
    """A bug: in the 20 cycles until the robot stops joint3 went from 2.6 to 7.6 rad/s, limit 5."""
    rig, motion = start(Case(mode, 2, "hanging", 2.5, "silent", "arm"))
    before = motion.now - 1
    rig.links[1].tamper = silent
    rig.until(lambda: rig.state is not State.ACTIVE, cycles=30)
    speed_rad_s = np.abs(motion.velocity_rad_s(before)[:, 2])

    assert rig.machine.trip_code == "silent"
    assert speed_rad_s.max() < speed_rad_s[0] + 0.5


def test_what_was_restrained_is_driven_again_when_it_is_heard() -> None:
    rig, _ = start(Case("current", 0, "hanging", 1.0, "silent", "arm"))
    given_a = rig.wire(0, "iq_ff_a")[-1]
    rig.links[0].tamper = for_cycles(4, silent)
    rig.step(8)
    iq_ff_a = rig.wire(0, "iq_ff_a")[-8:]

    assert given_a > 5.0
    assert iq_ff_a.min() < 0.2  # a step of the way to the current that it shall have
    assert iq_ff_a[-1] >= given_a


def test_what_a_current_holds_up_is_held_unheard() -> None:
    """At most by what the model says that it weighs."""
    rig = Rig("laas4", posture_rad=POSTURES["hanging"]).enable().home_by_truth().hold(100)
    rig.mode("position", 0.0, -0.4, 0.0, 0.0)
    rig.until(lambda: rig.cycle.control.is_at_rest)
    rig.step(400)
    motion = TrueMotion(rig)
    rig.mode("current", rig.axes[1].iq_mean_a, joints=["joint2"])
    rig.step(200)
    rig.links[0].tamper = for_cycles(15, silent)
    rig.step(15)

    assert rig.state is State.ACTIVE
    assert np.abs(motion.velocity_rad_s()[:, 1]).max() < 0.15


@pytest.mark.parametrize("mode", ["off", "hold"])
def test_nothing_is_left_of_a_restraint_in_another_mode(mode: str) -> None:
    """A bug: what had been taken away drove joint1 backwards, to 6 rad/s."""
    rig, motion = start(Case("current", 0, "hanging", 2.0, "silent", "arm"))
    rig.links[0].tamper = for_cycles(6, silent)
    rig.step(4)
    rig.mode(mode)
    first = rig.now
    rig.step(600)

    assert rig.wire(0, "iq_ff_a", first).min() > -0.1
    assert motion.velocity_rad_s()[:, 0].min() > -1.5  # by the gains that fade
    assert not rig.machine.trip_code


@pytest.mark.parametrize("lost", [3, 7, 10, 15])
def test_a_burst_of_lost_replies_is_no_dead_encoder(lost: int) -> None:
    """A bug: the first reply after it had no count, whatever the joint had turned meanwhile."""
    rig, _ = start(Case("current", 3, "hanging", 2.5, "silent", "arm"))
    rig.links[1].tamper = for_cycles(lost, silent)
    rig.step(lost + 20)

    assert rig.machine.trip_code == ""


def test_disable_leaves_a_sinking_joint_what_holds_it() -> None:
    """A bug: its current was taken away, and it fell at 0.8 rad/s."""
    rig = Rig("laas4", posture_rad=POSTURES["hanging"]).enable().home_by_truth().hold(100)
    rig.mode("position", 0.0, 0.0, 0.0, 0.0)
    rig.until(lambda: rig.cycle.control.is_at_rest)
    rig.step(400)
    motion, axis = TrueMotion(rig), rig.axes[1]
    rig.mode("current", 0.85 * axis.iq_mean_a, joints=["joint2"])
    rig.until(lambda: axis.velocity_rad_s < -0.1, cycles=1000)
    rig.send(m.Disable())
    rig.until(lambda: rig.state is State.STOPPING, cycles=1000)

    assert np.abs(motion.velocity_rad_s()[:, 1]).max() < 0.3
