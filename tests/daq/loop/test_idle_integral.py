"""What a board's integral does while Ki = 0 is not known: with each reading all goes well."""

from __future__ import annotations

import functools
from collections.abc import Callable

import loop_rig
import numpy as np
import pytest
from acceptance import IS_LONG
from loop_rig import Rig, refused_for
from wire_places import push, put_on_wire, true_rad_s

from daq.recording.states import State
from daq.stream import messages as m
from firmware_protocol.behaviour import IdleIntegral
from firmware_protocol.profiles import ARM
from hw_mocks.mock_robot import MockRobot

readings = pytest.mark.parametrize("reading", ARM.behaviour.idle_integrals)


@pytest.fixture
def make_rig(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rig]:
    def make(reading: IdleIntegral, robot: str = "bench1") -> Rig:
        mock = functools.partial(MockRobot, idle_integral=reading)
        monkeypatch.setattr(loop_rig, "MockRobot", mock)
        return Rig(robot, calibration_s=0.2).enable()

    return make


def after_velocity(rig: Rig) -> None:
    rig.hold()
    rig.mode("velocity", 1.0)
    rig.step(1500)


def after_a_long_way_without_gains(rig: Rig) -> None:
    rig.mode("current", 0.0)
    for _ in range(3):
        push(rig, 4.0)
        rig.step(600)


def after_waiting_far_from_the_reference(rig: Rig) -> None:
    put_on_wire(rig, 20.0)
    rig.step(1500)


def after_the_wrap(rig: Rig) -> None:
    put_on_wire(rig, 127.0)
    push(rig, 4.0)
    rig.step(1000)
    put_on_wire(rig, -100.0)


def after_torque(rig: Rig) -> None:
    rig.hold()
    rig.mode("torque", 0.05)
    rig.step(1500)


def after_gains_without_ki(rig: Rig) -> None:
    rig.hold()
    rig.send(m.SetGains(ki_a_per_rad_s=(0.0,)))
    rig.mode("position", rig.axes[0].position_rad + 2.0)
    rig.step(2000)
    with refused_for("not-now", "integral", "joint1", "Ki", "0 to 5"):
        rig.send(m.SetGains(ki_a_per_rad_s=(5.0,)))


@readings
@pytest.mark.parametrize(
    "before",
    [
        after_velocity,
        after_a_long_way_without_gains,
        after_waiting_far_from_the_reference,
        after_the_wrap,
        after_torque,
        after_gains_without_ki,
    ],
)
def test_a_joint_that_is_held_again_stays_where_it_is(
    make_rig: Callable[..., Rig], before: Callable[[Rig], None], reading: IdleIntegral
) -> None:
    rig = make_rig(reading)
    before(rig)
    rig.mode("hold")
    rig.until(lambda: rig.tracks[0].is_at_rest)
    began = rig.now
    speeds = []
    for _ in range(800):
        rig.step()
        speeds.append(abs(true_rad_s(rig)))
    assert rig.state is State.ACTIVE, rig.machine.reason
    assert max(speeds[200:]) < 0.05
    assert max(speeds) < 0.5
    assert np.abs(rig.iq_a[began:]).max() < 1.0, "of 9 A; friction takes 0.14 A"


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "reading", ARM.behaviour.idle_integrals if IS_LONG else [IdleIntegral.RUNS_ON]
)
def test_ki_works_from_the_first_hold_on_while_nothing_interrupts_it(
    make_rig: Callable[..., Rig], reading: IdleIntegral
) -> None:
    rig = make_rig(reading, "laas4")
    rig.step(500)
    rig.home_by_truth().hold(200)
    rig.mode("position", 0.1, joints=["joint1"])
    rig.step(500)
    assert [rig.wire(joint, "ki_a_per_rad_s")[-1] for joint in range(4)] == pytest.approx(
        [5.0] * 4, abs=0.01
    )
    assert not rig.events_of("integral")


def test_a_joint_that_goes_without_ki_says_so(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(IdleIntegral.CLEARED)
    after_velocity(rig)
    rig.mode("hold")
    rig.step(300)
    assert rig.wire(0, "ki_a_per_rad_s")[-1] == 0.0
    (event,) = rig.events_of("integral")
    assert (event.severity, event.source) == ("warning", "joint1")
    rig.send(m.Disable())
    rig.until(lambda: rig.state is State.IDLE)
    rig.step(20)
    rig.enable().hold()
    assert rig.wire(0, "ki_a_per_rad_s")[-1] > 4.9
    assert len(rig.events_of("integral")) == 1


@readings
def test_ki_rises_from_0_only_just_after_enabling(
    make_rig: Callable[..., Rig], reading: IdleIntegral
) -> None:
    rig = make_rig(reading)
    rig.send(m.SetGains(ki_a_per_rad_s=(0.0,)))
    rig.send(m.SetGains(ki_a_per_rad_s=(4.0,)))
    rig.hold()
    assert rig.wire(0, "ki_a_per_rad_s")[-1] == pytest.approx(4.0, abs=0.01)
    rig.send(m.SetGains(ki_a_per_rad_s=(0.0,)))
    rig.step(200)
    with refused_for("not-now", "integral", "joint1"):
        rig.send(m.SetGains(ki_a_per_rad_s=(0.1,)))
    rig.send(m.Disable())
    rig.until(lambda: rig.state is State.IDLE)
    rig.step(20)
    rig.enable()
    rig.send(m.SetGains(ki_a_per_rad_s=(4.0,)))
    rig.hold()
    assert rig.wire(0, "ki_a_per_rad_s")[-1] == pytest.approx(4.0, abs=0.01), "the way out"


def test_a_higher_ki_does_not_multiply_what_the_integral_holds() -> None:
    """The arm is held against gravity by an integral that a small Ki has made."""
    rig = Rig("laas4", posture_rad=(0.2, -1.0, 0.4, 0.6), calibration_s=0.4).enable()
    rig.send(m.SetGains(joints=("joint2",), ki_a_per_rad_s=(1.0,)))
    rig.hold(4000)
    held_a = rig.iq_a[-1][1]
    assert abs(held_a) > 1.0
    began, held_rad = rig.now, rig.joint_rad[-1][1]
    with refused_for("not-now", "integral", "joint2", "1 to 5", "disable"):
        rig.send(m.SetGains(joints=("joint2",), ki_a_per_rad_s=(5.0,)))
    rig.step(1000)
    assert rig.wire(1, "ki_a_per_rad_s")[-1] == pytest.approx(1.0, abs=0.01)
    # Up and down where the feed-forward can take what the integral gives too much or too little.
    for ki in (1.3, 0.5, 0.0):
        rig.send(m.SetGains(joints=("joint2",), ki_a_per_rad_s=(ki,)))
        rig.step(1000)
        assert rig.wire(1, "ki_a_per_rad_s")[-1] == pytest.approx(ki, abs=0.01)
    currents = np.array(rig.iq_a)[began:, 1]
    assert np.abs(currents - held_a).max() < 0.3 * abs(held_a)
    assert np.abs(np.array(rig.joint_rad)[began:, 1] - held_rad).max() < 0.02
    assert not rig.events_of("integral"), "nothing was left out in silence"
