"""The torque of a motor on its rotor, as it follows from the quadrature current.

    τ = K_i·iq / √(1 + c·(iq/I_max)²) · (1 + r·cos(6pθ + φ_r)) + τ_c·sin(6pθ + φ_c)

The iron saturates: c is such that K_i has lost `torque_constant_drop` at I_max, and torque never
falls with rising current. The torque ripples with the sixth harmonic of the electrical angle (p
pole pairs), and the rotor cogs with the same period: the common multiple of the poles and slots of
a three-phase motor is 6p or a multiple of it. Nothing here knows of friction or inertia.
"""

from __future__ import annotations

from math import cos, pi, sin, sqrt

import numpy as np

from daq.robot import DrivenRobot, Motor
from hw_mocks.plants.effects import Effects


class Actuator:
    """One motor's torque, averaged over the step that follows: harmonics too fast for it fade.

    The generator is the source of the phases of ripple and cogging.
    """

    def __init__(
        self, motor: Motor, effects: Effects, generator: np.random.Generator, *, step_s: float
    ) -> None:
        self._nm_per_a = motor.torque_constant_nm_per_a
        remaining = 1.0 - effects.torque_constant_drop
        self._saturation_per_a2 = (remaining**-2 - 1.0) / motor.current_max_a**2
        self._order = 6.0 * motor.pole_pairs
        self._half_step_order_s = 0.5 * step_s * self._order
        self._ripple = effects.torque_ripple
        self._cogging_nm = effects.cogging_nm
        self._is_even = not (effects.torque_ripple or effects.cogging_nm)
        self._ripple_phase_rad, self._cogging_phase_rad = generator.uniform(
            0.0, 2.0 * pi, size=2
        ).tolist()

    def torque_nm(self, iq_a: float, position_rad: float, velocity_rad_s: float) -> float:
        """Return the torque on the rotor, by the true current and the motor's motion."""
        torque_nm = self._nm_per_a * iq_a
        if self._saturation_per_a2:
            torque_nm /= sqrt(1.0 + self._saturation_per_a2 * iq_a * iq_a)
        if self._is_even:
            return torque_nm
        half_turn_rad = self._half_step_order_s * velocity_rad_s
        fading = sin(half_turn_rad) / half_turn_rad if half_turn_rad else 1.0
        angle_rad = self._order * position_rad + half_turn_rad
        ripple = self._ripple * fading * cos(angle_rad + self._ripple_phase_rad)
        cogging_nm = self._cogging_nm * fading * sin(angle_rad + self._cogging_phase_rad)
        return torque_nm * (1.0 + ripple) + cogging_nm


def make_actuators(
    robot: DrivenRobot, effects: Effects, generator: np.random.Generator, *, step_s: float = 250e-6
) -> list[Actuator]:
    """Return one actuator per joint, in the robot's joint order."""
    return [
        Actuator(robot.motor_of(joint), effects, generator, step_s=step_s) for joint in robot.joints
    ]
