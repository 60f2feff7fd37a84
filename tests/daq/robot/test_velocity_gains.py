"""Gains for a motor that turns nothing but itself."""

from __future__ import annotations

import math
import re

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq.boards.wire_limits import wire_problems
from daq.robot import Gains, Joint, Robot, load_robot, shipped_robots
from daq.robot.velocity_gains import (
    HELD_INTEGRAL_RAD_S,
    INTEGRAL_RAD_S,
    LOOP_RAD_S,
    advice,
    choose_gains,
)

JOINTS = [
    (load_robot(name), joint) for name in shipped_robots() for joint in load_robot(name).joints
]
ROUNDED = 0.06
"""Two digits are off by no more than this."""


def made(joint: Joint, *, rotor_kg_m2: float, load_kg_m2: float | None, reduction: float) -> Joint:
    drive = msgspec.structs.replace(
        joint.drive, rotor_inertia_kg_m2=rotor_kg_m2, gear_reduction=reduction
    )
    return msgspec.structs.replace(joint, drive=drive, load_inertia_kg_m2=load_kg_m2)


@given(
    place=st.sampled_from(JOINTS),
    rotor_kg_m2=st.floats(1e-7, 1e-2),
    load_kg_m2=st.none() | st.floats(0.0, 1.0),
    reduction=st.floats(1.0, 1000.0),
    is_held=st.booleans(),
)
def test_the_loop_has_the_bandwidth_that_was_wanted(
    place: tuple[Robot, Joint],
    rotor_kg_m2: float,
    load_kg_m2: float | None,
    reduction: float,
    is_held: bool,
) -> None:
    """J·s² + K_i·(Kd·s + Kp) = 0: two real poles, one at each bandwidth or close to it."""
    robot, joint = place
    joint = made(joint, rotor_kg_m2=rotor_kg_m2, load_kg_m2=load_kg_m2, reduction=reduction)
    motor = robot.motor_of(joint)

    gains = choose_gains(joint, motor, is_reference_held=is_held)

    inertia_kg_m2 = rotor_kg_m2 + (load_kg_m2 or 0.0) / reduction**2
    k_i = motor.torque_constant_nm_per_a
    poles = np.roots([inertia_kg_m2, k_i * gains.kd_a_s_per_rad, k_i * gains.kp_a_per_rad])
    assert np.isreal(poles).all(), "it would oscillate"
    slow_rad_s, fast_rad_s = sorted(-poles.real)
    integral_rad_s = HELD_INTEGRAL_RAD_S if is_held else INTEGRAL_RAD_S
    assert slow_rad_s + fast_rad_s == pytest.approx(LOOP_RAD_S, rel=ROUNDED)
    assert slow_rad_s * fast_rad_s == pytest.approx(LOOP_RAD_S * integral_rad_s, rel=ROUNDED)
    assert integral_rad_s * (1.0 - ROUNDED) < slow_rad_s < 1.4 * integral_rad_s
    assert gains.ki_a_per_rad_s == 0.0


@given(place=st.sampled_from(JOINTS), is_held=st.booleans())
def test_a_rotor_without_inertia_gets_gains_all_the_same(
    place: tuple[Robot, Joint], is_held: bool
) -> None:
    robot, joint = place
    weightless = made(joint, rotor_kg_m2=0.0, load_kg_m2=None, reduction=31.0)
    gains = choose_gains(weightless, robot.motor_of(joint), is_reference_held=is_held)
    assert gains.kp_a_per_rad > 0.0
    assert gains.kd_a_s_per_rad > 0.0


@pytest.mark.parametrize(("robot", "joint"), JOINTS)
@pytest.mark.parametrize("profile", ["arm", "uomodri", "udriver2"])
def test_every_wire_carries_the_gains_of_every_shipped_joint(
    robot: Robot, joint: Joint, profile: str
) -> None:
    gains = choose_gains(joint, robot.motor_of(joint), is_reference_held=profile != "arm")
    control = msgspec.structs.replace(joint.control, velocity=gains)
    joints = tuple(
        msgspec.structs.replace(other, control=control) if other is joint else other
        for other in robot.joints
    )
    changed = msgspec.structs.replace(robot, joints=joints)
    before = wire_problems(robot, profile=profile)
    assert set(wire_problems(changed, profile=profile)) <= set(before)


def test_a_held_reference_gets_a_slower_integral_and_nothing_else() -> None:
    robot, joint = JOINTS[0]
    motor = robot.motor_of(joint)
    moving = choose_gains(joint, motor, is_reference_held=False)
    held = choose_gains(joint, motor, is_reference_held=True)
    assert held.kd_a_s_per_rad == moving.kd_a_s_per_rad
    ratio = HELD_INTEGRAL_RAD_S / INTEGRAL_RAD_S
    assert ratio < 1.0
    assert held.kp_a_per_rad == pytest.approx(ratio * moving.kp_a_per_rad, rel=2.0 * ROUNDED)


def test_those_of_joint3() -> None:
    """Pinned: Kd = 100 · 1.2e-5 kg·m² / 0.0276 N·m/A, Kp ten times that."""
    arm = load_robot("laas4")
    joint = arm.joints[2]
    gains = choose_gains(joint, arm.motor_of(joint), is_reference_held=False)
    assert gains == Gains(kp_a_per_rad=0.44, kd_a_s_per_rad=0.044)
    assert advice(gains) == "try --kp 0.44 --kd 0.044"


@given(kp=st.floats(1e-5, 5.0), kd=st.floats(1e-5, 5.0))
def test_advice_can_be_typed(kp: float, kd: float) -> None:
    found = re.fullmatch(
        r"try --kp (\S+) --kd (\S+)", advice(Gains(kp_a_per_rad=kp, kd_a_s_per_rad=kd))
    )
    assert found is not None
    assert math.isclose(float(found[1]), kp, rel_tol=1e-5)
    assert math.isclose(float(found[2]), kd, rel_tol=1e-5)
