"""`arm` advances its position reference between frames; the 34-byte boards hold it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from board_rig import IDLE, ON, Rig

from daq.robot.description import Robot

FILTER_S = 1.0 / (2.0 * math.pi * 1000.0)
MakeRig = Callable[..., Rig]


def test_between_frames_only_arm_moves_the_reference_on(
    profile: str, rig: MakeRig, held_bench: Robot
) -> None:
    held = rig(profile, held_bench, effects=IDLE)
    held.calibrate()
    held.run(50, mode=ON)
    position = held.ask_again(mode=ON).motor_position_rad[0]
    fields = {"motor_position_rad": position, "motor_velocity_rad_s": 20.0, "kp_a_per_rad": 4.0}
    held.wait(1)
    held.board.transfer(held.frame(mode=ON, **fields))
    held.wait(30)
    iq_a = held.ask_again(mode=ON, **fields).iq_a[0]
    advanced_a = 4.0 * 20.0 * (30e-3 - FILTER_S)
    assert iq_a == pytest.approx(advanced_a if profile == "arm" else 0.0, abs=0.01)
    # Each frame sets it anew.
    held.wait(1)
    iq_a = held.ask_again(mode=ON, **fields).iq_a[0]
    advanced_a = 4.0 * 20.0 * (1e-3 - FILTER_S)
    assert iq_a == pytest.approx(advanced_a if profile == "arm" else 0.0, abs=0.01)


def bias_s(rig: Rig, kp: float, velocity: float) -> tuple[float, float]:
    """How much too low sampled iq is, over Kp·ω; and by how much of b_eq that is."""
    drive = rig.robot.robot.joints[0].drive
    nm_per_a = rig.robot.robot.motor_of(rig.robot.robot.joints[0]).torque_constant_nm_per_a
    rig.calibrate()
    wrap = rig.profile.behaviour.position_wrap_turns * math.tau
    reference, sampled = 0.0, []
    for cycle in range(2000):
        reference = (reference + velocity * 1e-3 + wrap) % (2.0 * wrap) - wrap
        reply = rig.send(
            mode=ON,
            motor_position_rad=reference,
            motor_velocity_rad_s=velocity,
            kp_a_per_rad=kp,
            kd_a_s_per_rad=0.01,
        )
        rig.wait()
        if cycle >= 700:
            sampled.append(reply.iq_a[0])
    viscous_nm = drive.friction.viscous_motor_nm_s_per_rad * velocity
    coulomb_nm = drive.friction.coulomb_joint_nm / drive.gear_reduction
    true_a = (viscous_nm + math.copysign(coulomb_nm, velocity)) / nm_per_a
    too_low_a = true_a - float(np.mean(sampled))
    return too_low_a / (kp * velocity), too_low_a * nm_per_a / viscous_nm


@pytest.mark.parametrize("velocity", [155.0, -155.0, 80.0])
def test_iq_of_a_held_reference_is_biased_by_a_third_of_a_frame(
    rig: MakeRig, velocity: float
) -> None:
    """The mean of a sawtooth less its end, behind a filter: c = T/2 − 1/(2π·1 kHz) = 0.34 ms."""
    c_s, _ = bias_s(rig("uomodri", effects=IDLE), 0.5, velocity)
    assert c_s == pytest.approx(0.343e-3, rel=0.05)


def test_the_published_size_of_the_bias(rig: MakeRig) -> None:
    _, share = bias_s(rig("uomodri", effects=IDLE), 0.02, 155.0)
    assert share == pytest.approx(0.08, abs=0.015)
    _, share = bias_s(rig("uomodri", effects=IDLE), 0.5, 155.0)
    assert share == pytest.approx(1.95, abs=0.05)


def test_iq_of_an_advanced_reference_is_not_biased(rig: MakeRig) -> None:
    c_s, share = bias_s(rig("arm", effects=IDLE), 0.5, 155.0)
    assert abs(c_s) < 5e-6
    assert abs(share) < 0.03
