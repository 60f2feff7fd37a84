"""Joints that do not follow, or would run into a limit; and what must not begin again."""

from __future__ import annotations

import pytest
from loop_rig import Rig, refused_for

from daq.recording.states import Mode, State
from daq.stream import messages as m


def arm(joint4_rad: float = 0.0) -> Rig:
    rig = Rig("laas4", posture_rad=(0.0, -1.57, 0.0, joint4_rad), calibration_s=0.2)
    return rig.enable().home_by_truth()


def test_a_joint_that_cannot_follow_stops_the_robot() -> None:
    rig = Rig("bench1").enable()
    axis = rig.loop.cycle.control.tracks[0].axis
    rig.send(m.SetMode(mode="velocity", target=(2.0,)))
    # The motor has no torque any more: its current limit on the wire is the smallest there is.
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


def test_gains_that_come_back_find_the_joint_where_it_is() -> None:
    rig = arm()
    rig.send(m.SetMode(mode="hold"))
    rig.step(300)
    rig.send(
        m.SetGains(kp_a_per_rad=(0.0,) * 4, kd_a_s_per_rad=(0.0,) * 4, ki_a_per_rad_s=(0.0,) * 4)
    )
    rig.step(300)
    rig.send(m.SetGains(kp_a_per_rad=(5.0,) * 4, kd_a_s_per_rad=(0.2,) * 4))

    for track in rig.loop.cycle.control.tracks:
        assert track.reference[0] == pytest.approx(track.axis.position_rad, abs=1e-6)


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
    assert rig.commands(0)[-1].isat_a == (9.0, 0.125)
