"""The control law of one motor, as the firmwares compute it every 25 µs.

Here each physics step takes the mean of the law over the step, which for all that matters is the
same; a command that begins to act within a step divides it. Position errors are plain differences
of what is commanded and what is reported: across the wrap of positions they are wrong by its width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from firmware_protocol.behaviour import Behaviour, IdleIntegral
from hw_mocks.boards.current_sensor import CurrentSensor
from hw_mocks.boards.encoder import Encoder

SETPOINT = (
    "motor_position_rad",
    "motor_velocity_rad_s",
    "iq_ff_a",
    "kp_a_per_rad",
    "kd_a_s_per_rad",
    "ki_a_per_rad_s",
    "isat_a",
)
"""What a command asks of an output, by the names of the wire's tables."""
Setpoint = tuple[float, ...]


class Winding(NamedTuple):
    """What a motor's winding makes of a voltage.

    Attributes:
        nm_per_a: The torque constant, 0 without a motor.
        coil_ohm: Per phase; without a motor so much that no current flows.
        voltage_max_v: What the bus can drive.
    """

    nm_per_a: float
    coil_ohm: float
    voltage_max_v: float

    def braked_a(self, rotor_rad_s: float) -> float:
        """Return the current through shorted phases: power balance K_i·iq·ω = 3/2·R·iq²."""
        return -self.nm_per_a * rotor_rad_s / 1.5 / self.coil_ohm


class ControlLaw:
    """The law, its setpoint and its integral; what it drives is read by the sensor.

    Attributes:
        is_asking: Whether it asks for a current other than 0, so far as the firmware can tell.
    """

    def __init__(
        self,
        encoder: Encoder,
        sensor: CurrentSensor,
        winding: Winding,
        behaviour: Behaviour,
        idle_integral: IdleIntegral,
        *,
        step_s: float,
    ) -> None:
        self._encoder = encoder
        self._sensor = sensor
        self._electric = (winding.nm_per_a / 1.5, winding.coil_ohm, winding.voltage_max_v)
        self._is_advanced = behaviour.is_reference_advanced
        self._is_idle_integrated = idle_integral is IdleIntegral.RUNS_ON
        self._is_idle_cleared = idle_integral is IdleIntegral.CLEARED
        self._difference_rad = math.pi * (behaviour.position_difference_wraps_turns or math.inf)
        self._sum_max_a = behaviour.current_sum_max_a or math.inf
        self._board_limit_a = min(behaviour.current_max_a or math.inf, self._sum_max_a)
        self._step_s = step_s
        self.is_asking = False
        self._waiting: Setpoint | None = None
        self._delay_s = 0.0
        self.clear()
        self.command((0.0,) * len(SETPOINT))

    def clear(self) -> None:
        """Forget the integral, as whenever the motor is not enabled."""
        self._integral_rad_s = 0.0

    def command(self, setpoint: Setpoint, delay_s: float = 0.0) -> None:
        """Follow a new setpoint, in the order of `SETPOINT`, so long after the last step."""
        if self._waiting is not None:
            self._take(self._waiting)
        if delay_s:
            self._waiting, self._delay_s = setpoint, delay_s
        else:
            self._take(setpoint)

    def drive_a(self, rotor_rad_s: float) -> float:
        """Return the mean current of the coming step."""
        step_s = self._step_s
        if self._waiting is None:
            return self._mean_a(rotor_rad_s, 0.0, step_s)
        delay_s = self._delay_s
        if delay_s >= step_s:
            self._delay_s = delay_s - step_s
            return self._mean_a(rotor_rad_s, 0.0, step_s)
        # The old setpoint with the new count: a count that is seen later in every millisecond than
        # in the rest of it gives the motor a rhythm, and samples taken in that rhythm a bias.
        before_a = self._mean_a(rotor_rad_s, 0.0, delay_s)
        self._take(self._waiting)
        rest_s = step_s - delay_s
        after_a = self._mean_a(rotor_rad_s, delay_s, rest_s)
        return (before_a * delay_s + after_a * rest_s) / step_s

    def _take(self, setpoint: Setpoint) -> None:
        """Follow a setpoint from now on. What does not change meanwhile is worked out here."""
        self._waiting = None
        self._reference_rad, velocity_rad_s, iq_ff_a, kp, kd, ki, isat_a = setpoint
        self._reference_rad_s = velocity_rad_s if self._is_advanced else 0.0
        self._gains = (kp, kd, ki)
        self._steady_a = iq_ff_a + kd * velocity_rad_s
        self._is_integrating = self._is_idle_integrated or ki != 0.0
        if self._is_idle_cleared and not ki:
            self._integral_rad_s = 0.0
        # Isat = 0 means the board's own limit, and no command raises that.
        limit_a = self._board_limit_a
        self._limit_a = isat_a if 0.0 < isat_a < limit_a else limit_a

    def _mean_a(self, rotor_rad_s: float, elapsed_s: float, duration_s: float) -> float:
        """Return the law's mean while the rotor turns on; it begins `elapsed_s` into the step."""
        kp_a_per_rad, kd_a_s_per_rad, ki_a_per_rad_s = self._gains
        encoder = self._encoder
        seen_rad_s = 0.0 if encoder.is_frozen else rotor_rad_s
        drift_rad_s = self._reference_rad_s - seen_rad_s
        error_rad = self._reference_rad - encoder.angle_rad + encoder.base_rad
        highest_rad = self._difference_rad
        if not -highest_rad <= error_rad < highest_rad:
            error_rad = _wrapped(error_rad, highest_rad)
        error_rad += 0.5 * duration_s * drift_rad_s - seen_rad_s * elapsed_s
        self._reference_rad += self._reference_rad_s * duration_s
        current_a = (
            kp_a_per_rad * error_rad
            - kd_a_s_per_rad * encoder.velocity_rad_s
            + ki_a_per_rad_s * self._integral_rad_s
            + self._steady_a
        )
        slope_a_per_s = 0.0
        limit_a = self._limit_a
        if -limit_a <= current_a <= limit_a:
            slope_a_per_s = kp_a_per_rad * drift_rad_s
            if self._is_integrating:
                self._integral_rad_s += error_rad * duration_s
        else:
            if not -self._sum_max_a <= current_a < self._sum_max_a:
                current_a = _wrapped(current_a, self._sum_max_a)
            current_a = max(-limit_a, min(limit_a, current_a))
        # What the bus can drive against the back-emf: v_q = R·iq + K_i·ω/1.5, |v_q| ≤ V/√3.
        emf_v_s, coil_ohm, limit_v = self._electric
        voltage_v = coil_ohm * current_a + emf_v_s * rotor_rad_s
        if not -limit_v <= voltage_v <= limit_v:
            current_a -= (voltage_v - math.copysign(limit_v, voltage_v)) / coil_ohm
            slope_a_per_s = 0.0
        self.is_asking = current_a != 0.0
        self._sensor.read(current_a, slope_a_per_s, duration_s)
        return current_a


def _wrapped(value: float, highest: float) -> float:
    """Return what an integer makes of a value that it cannot hold."""
    return (value + highest) % (2.0 * highest) - highest
