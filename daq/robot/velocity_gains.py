"""Gains of a velocity PI for a motor that turns nothing but itself, from its inertia. Pure."""

from __future__ import annotations

from daq.robot.description import DrivenJoint
from daq.robot.driving import Gains, Motor

LOOP_RAD_S, INTEGRAL_RAD_S = 100.0, 10.0
"""Bandwidth of the velocity loop, and of its integral part."""
HELD_INTEGRAL_RAD_S = 4.0
"""The latter where the board holds its reference between frames: there Kp biases iq by Kp·ω·c."""


def choose_gains(joint: DrivenJoint, motor: Motor, *, is_reference_held: bool) -> Gains:
    """Choose gains that follow constant speeds calmly, rounded to two digits."""
    drive = joint.drive
    load_kg_m2 = (joint.load_inertia_kg_m2 or 0.0) / drive.gear_reduction**2
    inertia_kg_m2 = max(drive.rotor_inertia_kg_m2 + load_kg_m2, 1e-7)
    kd = LOOP_RAD_S * inertia_kg_m2 / motor.torque_constant_nm_per_a
    kp = kd * (HELD_INTEGRAL_RAD_S if is_reference_held else INTEGRAL_RAD_S)
    return Gains(kp_a_per_rad=float(f"{kp:.2g}"), kd_a_s_per_rad=float(f"{kd:.2g}"))


def advice(gains: Gains) -> str:
    """Return what to try when the gains are wrong."""
    return f"try --kp {gains.kp_a_per_rad:g} --kd {gains.kd_a_s_per_rad:g}"
