"""The transmission between a rotor and its joint: gear, friction, play and spring.

Everything is referred to the joint side. By the gear's law τ_L = η·τ_M/k_g ([De Facci 2024], 4.7)
a torque at the motor counts η/k_g times there, an inertia or viscous friction η/k_g² times;
equations 4.8 and 4.9 become two masses on either side of one coupling torque.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from daq.robot.description import DrivenJoint, DrivenRobot
from hw_mocks.errors import MockConfigError
from hw_mocks.plants.effects import STRIBECK_VELOCITY_RAD_S, Effects
from hw_mocks.plants.truth import JointTruth

DAMPING_RATIO: Final = 0.05
"""Of the gear's spring: of the rotor while the link is held, or of both when nothing is stated."""
_STIFFEST_RAD: Final = 0.5
"""Phase per step of teeth with play but no spring: as stiff as the steps can follow well."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MockTransmission:
    """One drive's gear and friction, referred to the joint side."""

    motor_turns_per_turn: float
    """Signed: negative when motor and joint turn opposite ways."""
    joint_offset_rad: float
    joint_nm_per_motor_nm: float
    rotor_inertia_kg_m2: float
    rotor_viscous_nm_s_per_rad: float
    rotor_coulomb_nm: float
    joint_viscous_nm_s_per_rad: float
    joint_coulomb_nm: float

    @property
    def viscous_nm_s_per_rad(self) -> float:
        """Of both sides, when they are one mass."""
        return self.rotor_viscous_nm_s_per_rad + self.joint_viscous_nm_s_per_rad

    @property
    def coulomb_nm(self) -> float:
        """Of both sides, when they are one mass."""
        return self.rotor_coulomb_nm + self.joint_coulomb_nm

    def motor_position_rad(self, joint_position_rad: float) -> float:
        """Return where the motor is when the rotor's side of the gear stands at a joint angle."""
        return (joint_position_rad - self.joint_offset_rad) * self.motor_turns_per_turn


def make_transmission(joint: DrivenJoint, truth: JointTruth) -> MockTransmission:
    """Refer one joint's drive to the joint side."""
    drive = joint.drive
    gear = drive.gear_reduction
    torque_gain = drive.gear_efficiency * gear
    inertia_gain = torque_gain * gear
    return MockTransmission(
        motor_turns_per_turn=drive.direction * gear,
        joint_offset_rad=drive.joint_offset_rad,
        joint_nm_per_motor_nm=drive.direction * torque_gain,
        rotor_inertia_kg_m2=inertia_gain * truth.rotor_inertia_kg_m2,
        rotor_viscous_nm_s_per_rad=inertia_gain * truth.viscous_motor_nm_s_per_rad,
        rotor_coulomb_nm=torque_gain * truth.coulomb_motor_nm,
        joint_viscous_nm_s_per_rad=truth.viscous_joint_nm_s_per_rad,
        joint_coulomb_nm=truth.coulomb_joint_nm,
    )


class Coupling:
    """The torque that a gear with play and spring passes from rotor to link (joint side).

    Inside the gap nothing is passed on; teeth in contact push and never pull. Without a gap it is
    an ordinary spring and damper. The gap is the total play.
    """

    def __init__(
        self, *, gap_rad: float, stiffness_nm_per_rad: float, damping_nm_s_per_rad: float
    ) -> None:
        self._half_gap_rad = 0.5 * gap_rad
        self.stiffness_nm_per_rad = stiffness_nm_per_rad
        self.damping_nm_s_per_rad = damping_nm_s_per_rad

    def torque_nm(self, windup_rad: float, windup_rad_s: float) -> float:
        """Return the torque on the link; its opposite acts on the rotor.

        Windup is the rotor's angle less the link's, and the rate of change of the same.
        """
        half_gap_rad = self._half_gap_rad
        damping_nm = self.damping_nm_s_per_rad * windup_rad_s
        if not half_gap_rad:
            return self.stiffness_nm_per_rad * windup_rad + damping_nm
        if windup_rad > half_gap_rad:
            push_nm = self.stiffness_nm_per_rad * (windup_rad - half_gap_rad) + damping_nm
            return push_nm if push_nm > 0.0 else 0.0
        if windup_rad < -half_gap_rad:
            push_nm = self.stiffness_nm_per_rad * (windup_rad + half_gap_rad) + damping_nm
            return push_nm if push_nm < 0.0 else 0.0
        return 0.0


def make_coupling(
    transmission: MockTransmission, effects: Effects, *, reduced_inertia_kg_m2: float, step_s: float
) -> Coupling:
    """Return the coupling of rotor and link, where the gear is not rigid.

    The rotor's inertia turns a stated resonance into a stiffness; the reduced inertia is what rotor
    and link, both free, oppose to winding up the gear.
    """
    if effects.joint_resonance_hz:
        inertia_kg_m2 = transmission.rotor_inertia_kg_m2
        resonance_rad_s = math.tau * effects.joint_resonance_hz
    else:
        inertia_kg_m2, resonance_rad_s = reduced_inertia_kg_m2, _STIFFEST_RAD / step_s
    return Coupling(
        gap_rad=effects.backlash_rad,
        stiffness_nm_per_rad=inertia_kg_m2 * resonance_rad_s**2,
        damping_nm_s_per_rad=2.0 * DAMPING_RATIO * inertia_kg_m2 * resonance_rad_s,
    )


def check_stiffness(robot: DrivenRobot, fastest_rad2_s2: float, step_s: float) -> None:
    """Refuse a gear whose spring is too stiff for the step.

    It is judged by the square of the fastest natural frequency of rotors and links.

    Raises:
        MockConfigError: A step is longer than a sixth of a period: the motion would be wrong.
    """
    highest_rad_s = 1.0 / step_s
    fastest_rad_s = math.sqrt(fastest_rad2_s2)
    if fastest_rad_s > highest_rad_s:
        problem = (
            f"joint_resonance_hz: with these links the gear rings at {fastest_rad_s / math.tau:.0f}"
            f" Hz, beyond the {highest_rad_s / math.tau:.0f} Hz that steps of {step_s * 1e6:.0f} µs"
            " can follow; lower it"
        )
        raise MockConfigError(f"mock of robot {robot.name}", [problem])


def scale_coulomb(stribeck: float, joint_velocity_rad_s: float) -> float:
    """Return the Coulomb friction at a speed, relative to that of fast sliding (Stribeck's curve).

    `stribeck` is the relative extra friction at standstill.
    """
    ratio = joint_velocity_rad_s / STRIBECK_VELOCITY_RAD_S
    return 1.0 + stribeck * math.exp(-ratio * ratio)
