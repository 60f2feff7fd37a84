"""iq = clamp(Kp·(θref−θ) + Kd·(ωref−ω) + Ki·∫(θref−θ)dt + FF, ±Isat), term by term."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from board_rig import ES, IDLE, ON, Rig

from daq.robot.description import Robot
from firmware_protocol.profiles import PROFILES

LSB_A = 2.0**-10
# The wire's own steps of a reference or gain, behind the largest error used here.
WIRE_A = 1.5 * LSB_A

MakeRig = Callable[..., Rig]


def settled_iq_a(rig: Rig, **fields: float) -> float:
    """The current that a rotor at rest is given, long after the filter."""
    rig.run(10, mode=ON, **fields)
    return float(rig.ask_again(mode=ON, **fields).iq_a[0])


@pytest.fixture
def held(profile: str, rig: MakeRig, held_bench: Robot) -> Rig:
    """A calibrated motor whose rotor friction holds: every term of the law stands still."""
    held = rig(profile, held_bench, effects=IDLE)
    held.calibrate()
    held.run(50, mode=ON)
    return held


@pytest.mark.parametrize("ff", [0.5, -0.5, 3.0, 0.0])
def test_without_gains_the_current_is_the_feed_forward(held: Rig, ff: float) -> None:
    # Positions and velocities mean nothing then.
    fields = {"motor_position_rad": 100.0, "motor_velocity_rad_s": -200.0}
    assert settled_iq_a(held, iq_ff_a=ff, **fields) == pytest.approx(ff, abs=LSB_A)


@pytest.mark.parametrize("error_rad", [0.5, -0.5, 1.25])
def test_kp_acts_on_the_position_error(held: Rig, error_rad: float) -> None:
    position = held.ask_again(mode=ON).motor_position_rad[0]
    iq_a = settled_iq_a(held, motor_position_rad=position + error_rad, kp_a_per_rad=2.0)
    assert iq_a == pytest.approx(2.0 * error_rad, abs=WIRE_A)


@pytest.mark.parametrize("velocity", [100.0, -100.0])
def test_kd_acts_on_the_velocity_error(held: Rig, velocity: float) -> None:
    iq_a = settled_iq_a(held, motor_velocity_rad_s=velocity, kd_a_s_per_rad=0.03)
    assert iq_a == pytest.approx(0.03 * velocity, abs=0.01)


def test_the_terms_add_up(held: Rig) -> None:
    fields = {
        "motor_position_rad": held.ask_again(mode=ON).motor_position_rad[0] + 0.5,
        "kp_a_per_rad": 2.0,
        "iq_ff_a": 0.75,
        "kd_a_s_per_rad": 0.02,
    }
    assert settled_iq_a(held, **fields) == pytest.approx(1.75, abs=WIRE_A)


def test_kd_brakes_a_turning_rotor(profile: str, rig: MakeRig, free_bench: Robot) -> None:
    turning = rig(profile, free_bench, effects=IDLE)
    turning.calibrate()
    turning.run(100, mode=ON, iq_ff_a=0.2)
    turning.run(20, mode=ON)
    before = turning.ask_again(mode=ON).motor_velocity_rad_s[0]
    turning.run(100, mode=ON)
    assert turning.ask_again(mode=ON).motor_velocity_rad_s[0] == pytest.approx(before, rel=0.01)
    turning.run(3, mode=ON, kd_a_s_per_rad=0.005)
    reply = turning.ask_again(mode=ON, kd_a_s_per_rad=0.005)
    assert reply.iq_a[0] == pytest.approx(-0.005 * reply.motor_velocity_rad_s[0], rel=0.05)


def test_only_arm_has_an_integrator(integrating: Rig) -> None:
    for name, profile in PROFILES.items():
        names = [field.name for field in profile.command.fields]
        assert ("ki_a_per_rad_s" in names) == (name == "arm")
    assert integrated_rad_s(integrating) == pytest.approx(0.0, abs=RESOLUTION_RAD_S)
    integrating.run(200, mode=ON, ki_a_per_rad_s=4.0, **ahead(integrating, 2.0))
    assert integrated_rad_s(integrating) == pytest.approx(2.0 * 0.2, rel=0.02)
    # The other way it takes the same back.
    integrating.run(200, mode=ON, ki_a_per_rad_s=4.0, **ahead(integrating, -2.0))
    assert integrated_rad_s(integrating) == pytest.approx(0.0, abs=0.01)


def test_the_integrator_holds_while_the_output_is_clamped(integrating: Rig) -> None:
    integrating.run(50, mode=ON, ki_a_per_rad_s=4.0, **ahead(integrating, 2.0))
    kept = integrated_rad_s(integrating)
    assert kept == pytest.approx(0.1, rel=0.05)
    # Clamped by the feed-forward: the error goes on, the integral does not.
    fields = {"ki_a_per_rad_s": 4.0, "iq_ff_a": 2.0, "isat_a": 2.0} | ahead(integrating, 2.0)
    integrating.run(300, mode=ON, **fields)
    assert integrating.ask_again(mode=ON, **fields).iq_a[0] == pytest.approx(2.0, abs=LSB_A)
    assert integrated_rad_s(integrating) == pytest.approx(kept, abs=0.01)


def test_a_clamped_integrator_does_not_wind_up(integrating: Rig) -> None:
    fields = {"ki_a_per_rad_s": 5.0, "isat_a": 1.0}
    integrating.run(1000, mode=ON, **fields, **ahead(integrating, 3.0))
    # It ended where the clamp began.
    assert integrated_rad_s(integrating) == pytest.approx(1.0 / 5.0, rel=0.03)


def test_an_integral_that_nobody_uses_is_forgotten(integrating: Rig) -> None:
    """All gains zero is pure current control, whatever was integrated before."""
    integrating.run(100, mode=ON, ki_a_per_rad_s=4.0, **ahead(integrating, 2.0))
    integrating.run(10, mode=ON, iq_ff_a=0.5)
    assert integrating.ask_again(mode=ON, iq_ff_a=0.5).iq_a[0] == pytest.approx(0.5, abs=LSB_A)
    assert integrated_rad_s(integrating) == pytest.approx(0.0, abs=RESOLUTION_RAD_S)


@pytest.mark.parametrize("how", ["EM1 dropped", "ES dropped", "an error"])
def test_the_integrator_is_cleared_when_the_motor_is_not_enabled(
    integrating: Rig, how: str
) -> None:
    integrating.run(100, mode=ON, ki_a_per_rad_s=4.0, **ahead(integrating, 2.0))
    assert integrated_rad_s(integrating) > 0.1
    if how == "EM1 dropped":
        integrating.run(1, mode=ES, ki_a_per_rad_s=4.0)
    else:
        if how == "an error":
            integrating.board.latch(7)
        integrating.run(1)
        integrating.run(80, mode=ON, ki_a_per_rad_s=0.5)
    assert integrated_rad_s(integrating) == pytest.approx(0.0, abs=0.03)


@pytest.fixture
def integrating(rig: MakeRig, held_bench: Robot) -> Rig:
    """A held rotor on the board that integrates."""
    held = rig("arm", held_bench, effects=IDLE)
    held.calibrate()
    held.run(50, mode=ON)
    return held


RESOLUTION_RAD_S = 2.0 * LSB_A


def ahead(rig: Rig, error_rad: float) -> dict[str, float]:
    """A reference that far from where the rotor stands."""
    reply = rig.board.transfer(bytes(rig.profile.frame_size))
    return {"motor_position_rad": rig.decode(reply).motor_position_rad[0] + error_rad}


def integrated_rad_s(rig: Rig) -> float:
    """The integral, looked at with Ki = 1 and no error."""
    rig.run(3, mode=ON, ki_a_per_rad_s=1.0, **ahead(rig, 0.0))
    return float(rig.ask_again(mode=ON, ki_a_per_rad_s=1.0, **ahead(rig, 0.0)).iq_a[0])


def test_kp_on_the_integrated_reference_is_the_integral_gain_of_a_velocity_loop(
    profile: str, rig: MakeRig
) -> None:
    """Velocity PI: the speed is reached exactly although friction asks for a lasting current."""
    turning = rig(profile, effects=IDLE)
    turning.calibrate()
    wrap = turning.profile.behaviour.position_wrap_turns * math.tau
    reference, speeds = 0.0, []
    for cycle in range(1500):
        reference = (reference + 60.0e-3 + wrap) % (2.0 * wrap) - wrap
        reply = turning.send(
            mode=ON,
            motor_position_rad=reference,
            motor_velocity_rad_s=60.0,
            kp_a_per_rad=0.2,
            kd_a_s_per_rad=0.01,
        )
        turning.wait()
        if cycle >= 1000:
            speeds.append(reply.motor_velocity_rad_s[0])
    assert np.mean(speeds) == pytest.approx(60.0, rel=2e-3)
    # Kd alone leaves the error that friction needs: 0.14 A / 0.01 A·s/rad.
    for _ in range(1500):
        reply = turning.send(mode=ON, motor_velocity_rad_s=60.0, kd_a_s_per_rad=0.01)
        turning.wait()
    assert reply.motor_velocity_rad_s[0] == pytest.approx(60.0 - 14.7, abs=1.0)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_position_error_takes_the_short_way_across_the_wrap(held: Rig, side: float) -> None:
    """From 0, a reference just inside the far end is a little more than half the range away."""
    wrap_turns = held.profile.behaviour.position_wrap_turns
    spin_to(held, side * (wrap_turns - 0.25))
    position = held.ask_again(mode=ON).motor_position_rad[0]
    beyond = -side * (wrap_turns - 0.25) * math.tau
    short = beyond - position + side * 2.0 * wrap_turns * math.tau
    assert 0.0 < side * short < math.tau
    kp = 0.3
    iq_a = settled_iq_a(held, motor_position_rad=beyond, kp_a_per_rad=kp)
    assert iq_a == pytest.approx(kp * short, abs=2e-3)


def spin_to(rig: Rig, turns: float) -> None:
    """Lead the rotor there, slower and slower."""
    target = turns * math.tau
    reference = 0.0
    while abs(target - reference) > 0.01:
        reference += math.copysign(min(0.5, 0.03 * abs(target - reference)), target - reference)
        rig.send(mode=ON, motor_position_rad=reference, kp_a_per_rad=3.0, kd_a_s_per_rad=0.03)
        rig.wait()
    rig.run(50, mode=ON)


def test_friction_really_holds_below_breakaway(profile: str, rig: MakeRig) -> None:
    """The whole chain, effects and all: a current below breakaway never moves the rotor."""
    still = rig(profile)
    still.calibrate()
    still.run(100, mode=ON)
    before = still.ask_again(mode=ON).motor_position_rad[0]
    positions = {
        reply.motor_position_rad[0]
        for sign in (1.0, -1.0)
        for reply in still.run(1000, mode=ON, iq_ff_a=sign * 0.09)
    }
    assert positions == {before}
    assert still.robot.plant.motor_velocity_rad_s[0] == 0.0
    # Above breakaway (0.143 A, cogging aside) it does.
    still.run(200, mode=ON, iq_ff_a=0.25)
    assert still.robot.plant.motor_velocity_rad_s[0] > 10.0
