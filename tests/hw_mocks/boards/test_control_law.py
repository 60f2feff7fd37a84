"""iq = clamp(Kp·(θref−θ) + Kd·(ωref−ω) + Ki·∫(θref−θ)dt + FF, ±Isat): the terms without memory."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from board_rig import IDLE, ON, Rig

from daq.robot.description import Robot

LSB_A = 2.0**-10
# The wire's own steps of a reference or gain, behind the largest error used here.
WIRE_A = 2.0 * LSB_A

MakeRig = Callable[..., Rig]


def settled_iq_a(rig: Rig, **fields: float) -> float:
    """The current that a rotor at rest is given, long after the filter."""
    rig.run(5, mode=ON, **fields)
    return float(rig.ask_again(mode=ON, **fields).iq_a[0])


def test_without_gains_the_current_is_the_feed_forward(held: Rig) -> None:
    # Positions and velocities mean nothing then.
    fields = {"motor_position_rad": 100.0, "motor_velocity_rad_s": -200.0}
    for ff in (0.5, -0.5, 3.0, 0.0):
        assert settled_iq_a(held, iq_ff_a=ff, **fields) == pytest.approx(ff, abs=LSB_A)


def test_kp_kd_and_ff_act_on_their_errors_and_add_up(held: Rig) -> None:
    position = held.ask_again(mode=ON).motor_position_rad[0]
    for error_rad in (0.5, -0.5, 1.25):
        iq_a = settled_iq_a(held, motor_position_rad=position + error_rad, kp_a_per_rad=2.0)
        assert iq_a == pytest.approx(2.0 * error_rad, abs=WIRE_A)
    for velocity in (100.0, -100.0):
        iq_a = settled_iq_a(held, motor_velocity_rad_s=velocity, kd_a_s_per_rad=0.03)
        assert iq_a == pytest.approx(0.03 * velocity, abs=0.01)
    fields = {
        "motor_position_rad": position + 0.5,
        "kp_a_per_rad": 2.0,
        "motor_velocity_rad_s": 20.0,
        "kd_a_s_per_rad": 0.02,
        "iq_ff_a": 0.75,
    }
    if held.profile.behaviour.is_reference_advanced:
        fields["motor_velocity_rad_s"] = 0.0
        fields["iq_ff_a"] += 0.4
    assert settled_iq_a(held, **fields) == pytest.approx(2.15, abs=0.01)


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


def test_kp_on_the_integrated_reference_is_the_integral_gain_of_a_velocity_loop(
    profile: str, rig: MakeRig
) -> None:
    """Velocity PI: the speed is reached exactly although friction asks for a lasting current."""
    turning = rig(profile, effects=IDLE)
    turning.calibrate()
    reference, speeds = 0.0, []
    for cycle in range(1500):
        reference += 60.0e-3
        turning.send(
            mode=ON,
            motor_position_rad=reference,
            motor_velocity_rad_s=60.0,
            kp_a_per_rad=0.2,
            kd_a_s_per_rad=0.01,
        )
        turning.wait()
        if cycle >= 1000:
            speeds.append(turning.robot.plant.motor_velocity_rad_s[0])
    assert reference < turning.profile.behaviour.position_wrap_turns * math.tau
    assert np.mean(speeds) == pytest.approx(60.0, rel=2e-3)
    # Kd alone leaves the error that friction needs: 0.14 A / 0.01 A·s/rad.
    turning.run(1000, mode=ON, motor_velocity_rad_s=60.0, kd_a_s_per_rad=0.01)
    assert turning.robot.plant.motor_velocity_rad_s[0] == pytest.approx(60.0 - 14.7, abs=1.0)


def test_friction_really_holds_below_breakaway(profile: str, rig: MakeRig) -> None:
    """The whole chain, effects and all: a current below breakaway never moves the rotor."""
    still = rig(profile)
    still.calibrate()
    still.run(100, mode=ON)
    before = still.ask_again(mode=ON).motor_position_rad[0]
    positions = {
        reply.motor_position_rad[0]
        for sign in (1.0, -1.0)
        for reply in still.run(500, mode=ON, iq_ff_a=sign * 0.09)
    }
    assert positions == {before}
    assert still.robot.plant.motor_velocity_rad_s[0] == 0.0
    # Above breakaway (0.143 A, cogging aside) it does.
    still.run(200, mode=ON, iq_ff_a=0.25)
    assert still.robot.plant.motor_velocity_rad_s[0] > 10.0
