"""One output of a mock board: control law, encoder, calibration and heat of one motor.

What PROTOCOL.md says of a board, per motor. A board looks at its encoder every 25 µs; here each
physics step takes the mean of the law over the step, which for all that matters is the same.
Nothing here knows bytes or the watchdog (`board`), nor what the motor turns (`plant`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

import numpy as np

from daq.robot.description import Drive, Motor
from firmware_protocol.profiles import Behaviour, OnWatchdog
from hw_mocks.actuator import Actuator
from hw_mocks.effects import Effects

_TURN_RAD = 2.0 * math.pi
_VELOCITY_FILTER_HZ = 100.0
_CURRENT_FILTER_HZ = 1000.0
_CALIBRATION_TRAVEL_RAD = _TURN_RAD / 12.0
_AMBIENT_DEGC = 25.0
# A simple winding: heats with copper loss, cools to ambient. Our choice, plausible for the motors.
_THERMAL_CAPACITY_J_PER_K = 30.0
_THERMAL_RESISTANCE_K_PER_W = 2.5
_CRITICAL_TEMPERATURE_DEGC = 110.0


MEASUREMENTS = (
    "motor_position_rad",
    "motor_velocity_rad_s",
    "iq_a",
    "motor_torque_nm",
    "input_power_w",
    "winding_temperature_degc",
    "coil_resistance_ohm",
)
"""What an output measures, by the names of the wire's tables."""


class MotorState(Enum):
    """What an output does."""

    IDLE = auto()
    CALIBRATING = auto()
    RUNNING = auto()
    STOPPED = auto()
    """Disabled by dropping EMx; still calibrated."""
    SAFE = auto()
    """After an error: braked or coasting."""


class Setpoint(NamedTuple):
    """What the last valid command asks of this motor, in SI units."""

    motor_position_rad: float = 0.0
    motor_velocity_rad_s: float = 0.0
    iq_ff_a: float = 0.0
    kp_a_per_rad: float = 0.0
    kd_a_s_per_rad: float = 0.0
    ki_a_per_rad_s: float = 0.0
    isat_a: float = 0.0


@dataclass(slots=True)
class Connection:
    """What hangs on the output: a motor with its encoder, and how the board drives it."""

    joint_index: int
    motor: Motor
    drive: Drive
    actuator: Actuator
    index_angle_rad: float
    """Motor angle of the encoder's index pulse."""


class MotorOutput:
    """One of the two outputs of a board.

    Attributes:
        state: What it does now.
        iq_a: The true current, on average over the last step.
        winding_degc: Temperature of the winding.
        is_index_found: Whether the encoder index has passed since calibration.
        index_toggle: Changes each time the index passes.
        is_index_compensated: Whether reported positions are zero at the index once it was found.
        has_failed_alignment: A calibration has ended where it should not.
        has_rolled_over: The position has wrapped.
    """

    def __init__(
        self,
        connection: Connection | None,
        behaviour: Behaviour,
        effects: Effects,
        generator: np.random.Generator,
        *,
        step_s: float,
        calibration_s: float,
        bus_nominal_v: float,
    ) -> None:
        self.connection = connection
        self.state = MotorState.IDLE
        self.iq_a = 0.0
        self.winding_degc = _AMBIENT_DEGC
        self.is_index_found = False
        self.index_toggle = False
        self.is_index_compensated = False
        self.has_failed_alignment = False
        self.has_rolled_over = False
        self._behaviour = behaviour
        self._generator = generator
        self._iq_noise_a = effects.iq_noise_a
        self._noise_block: list[float] = []
        self._step_s = step_s
        self._half_step_s = 0.5 * step_s
        self._wrap_rad = behaviour.position_wrap_turns * _TURN_RAD
        self._velocity_gain = 1.0 - math.exp(-_TURN_RAD * _VELOCITY_FILTER_HZ * step_s)
        self._current_gain = 1.0 - math.exp(-_TURN_RAD * _CURRENT_FILTER_HZ * step_s)
        # What a low-pass makes of a current that rises through the step, beyond its mean.
        self._ramp_s = step_s - self._current_gain * (
            self._half_step_s + 1.0 / (_TURN_RAD * _CURRENT_FILTER_HZ)
        )
        self._count_rad = (
            _TURN_RAD / connection.drive.encoder_counts_per_turn
            if connection and effects.is_encoder_quantised
            else 0.0
        )
        self._voltage_max_v = bus_nominal_v / math.sqrt(3.0)
        self._calibration_s = calibration_s
        self._calibration_started_rad = 0.0
        self._calibration_elapsed_s = 0.0
        self._setpoint = Setpoint()
        self._reference_rad = 0.0
        self._current_limit_a = math.inf
        self._integral_rad_s = 0.0
        self._true_rad = 0.0
        self._true_rad_s = 0.0
        self._angle_rad = 0.0
        self._velocity_rad_s = 0.0
        self._filtered_iq_a = 0.0
        self._ramp_a = 0.0
        self._is_calibrated = False
        self._zero_rad = 0.0
        self._index_rad = self._quantised(connection.index_angle_rad) if connection else 0.0
        self._index_zero_rad = 0.0
        self._index_turn = 0
        # What the steps need at every turn, looked up once.
        motor = connection.motor if connection else None
        self._nm_per_a = motor.torque_constant_nm_per_a if motor else 0.0
        self._coil_ohm = motor.coil_resistance_ohm if motor else math.inf
        self._motor_limit_a = motor.current_max_a if motor else 0.0
        self._is_braking = behaviour.on_watchdog is OnWatchdog.BRAKE
        self._is_reference_advanced = behaviour.is_reference_advanced

    # --- what the board asks ----------------------------------------------------------------------

    @property
    def is_enabled(self) -> bool:
        """MxE: the output drives its motor."""
        return self.state in (MotorState.CALIBRATING, MotorState.RUNNING)

    @property
    def is_ready(self) -> bool:
        """MxR: calibrated. Some boards keep saying so while stopped."""
        return self.state is MotorState.RUNNING or (
            self.state is MotorState.STOPPED and self._behaviour.is_stop_latched
        )

    @property
    def position_rad(self) -> float:
        """Position as reported: zero before calibration has ended, then wrapped."""
        if not self._is_calibrated:
            return 0.0
        wrap = self._wrap_rad
        return (self._unwrapped_rad + wrap) % (2.0 * wrap) - wrap

    def measure(self) -> tuple[float, ...]:
        """What one reply says of this motor, in the order of `MEASUREMENTS`."""
        iq_a = self._filtered_iq_a
        connection = self.connection
        if self._iq_noise_a and connection is not None:
            if not self._noise_block:
                self._noise_block = self._generator.normal(0.0, self._iq_noise_a, 1024).tolist()
            iq_a += self._noise_block.pop()
        return (
            self.position_rad,
            self._velocity_rad_s,
            iq_a,
            # As the board computes it, from the current that it measured.
            self._nm_per_a * iq_a,
            self.input_power_w,
            self.winding_degc if connection else math.nan,
            # Known once calibration has measured it.
            self._coil_ohm if connection and self.is_ready else 0.0,
        )

    @property
    def input_power_w(self) -> float:
        """Electrical power into the motor: copper loss and mechanical power."""
        if self.connection is None or self.state is MotorState.SAFE:
            return 0.0
        mechanical = self._nm_per_a * self.iq_a * self._true_rad_s
        return 1.5 * self._coil_ohm * self.iq_a**2 + mechanical

    @property
    def is_too_hot(self) -> bool:
        """Whether the winding has reached its critical temperature."""
        return self.winding_degc >= _CRITICAL_TEMPERATURE_DEGC

    # --- what commands do -------------------------------------------------------------------------

    def enable(self) -> None:
        """EMx is set: calibrate first, then run; a stopped motor runs again if the board allows."""
        if self.state is MotorState.IDLE:
            self.state = MotorState.CALIBRATING
            self._calibration_started_rad = self._true_rad
            self._calibration_elapsed_s = 0.0
        elif self.state is MotorState.STOPPED and not self._behaviour.is_stop_latched:
            self.state = MotorState.RUNNING

    def stop(self) -> None:
        """EMx is not set."""
        if self.state is MotorState.RUNNING:
            self.state = MotorState.STOPPED
        elif self.state is MotorState.CALIBRATING:
            self.state = MotorState.IDLE
        self._integral_rad_s = 0.0

    def reset(self) -> None:
        """ES is not set: idle, calibration and index forgotten."""
        self.state = MotorState.IDLE
        self._integral_rad_s = 0.0
        self._is_calibrated = False
        self.is_index_found = False
        self.index_toggle = False
        self.has_failed_alignment = False
        self.has_rolled_over = False

    def make_safe(self) -> None:
        """After an error: no more current until the error is cleared."""
        self.state = MotorState.SAFE
        self._integral_rad_s = 0.0

    def power_up(self) -> None:
        """Everything that a microcontroller forgets; the winding stays as warm as it is."""
        self.reset()
        self._setpoint = Setpoint()
        self._filtered_iq_a = 0.0
        self._velocity_rad_s = 0.0

    def command(self, setpoint: Setpoint) -> None:
        """Follow a new setpoint from now on."""
        self._setpoint = setpoint
        self._reference_rad = setpoint.motor_position_rad
        own_limit = self._behaviour.current_max_a
        board_limit = math.inf if own_limit is None else own_limit
        # Isat = 0 means the board's own limit, and no command raises that.
        self._current_limit_a = min(setpoint.isat_a or board_limit, board_limit)

    # --- every physics step -----------------------------------------------------------------------

    def drive_torque_nm(self) -> float:
        """Set the current for the coming step; returns the torque on the rotor."""
        state = self.state
        self._ramp_a = 0.0
        if state is MotorState.RUNNING:
            wanted_a = self._control_law()
            self.iq_a = self._within_voltage(wanted_a)
            if self.iq_a != wanted_a:
                self._ramp_a = 0.0
        elif state is MotorState.CALIBRATING:
            self.iq_a = self._align()
        elif state is MotorState.SAFE and self._is_braking:
            # Shorted phases: the back-emf drives the current, power balance K_i·iq·ω = 3/2·R·iq².
            self.iq_a = -self._nm_per_a * self._true_rad_s / 1.5 / self._coil_ohm
        else:
            self.iq_a = 0.0
        if self.connection is None:
            return 0.0
        return self.connection.actuator.torque_nm(self.iq_a, self._true_rad, self._true_rad_s)

    def sense(self, motor_position_rad: float, motor_velocity_rad_s: float) -> None:
        """Read the encoder and the current after a physics step."""
        connection = self.connection
        if connection is None:
            return
        self._true_rad = motor_position_rad
        self._true_rad_s = motor_velocity_rad_s
        angle = self._quantised(motor_position_rad)
        if self._is_calibrated:
            self._watch_rollover(angle)
        speed = (angle - self._angle_rad) / self._step_s
        self._velocity_rad_s += self._velocity_gain * (speed - self._velocity_rad_s)
        self._angle_rad = angle
        self._filtered_iq_a += self._current_gain * (self.iq_a - self._filtered_iq_a) + self._ramp_a
        index_turn = math.floor((angle - self._index_rad) / _TURN_RAD)
        if index_turn != self._index_turn:
            self._pass_index(index_turn)

    def place(self, motor_position_rad: float) -> None:
        """Tell the encoder where the rotor stands before the first step."""
        self._true_rad = motor_position_rad
        self._angle_rad = self._quantised(motor_position_rad)
        self._index_turn = math.floor((self._angle_rad - self._index_rad) / _TURN_RAD)

    def heat(self, elapsed_s: float) -> None:
        """Advance the winding's temperature."""
        if self.connection is None:
            return
        loss_w = 1.5 * self.connection.motor.coil_resistance_ohm * self.iq_a**2
        cooling_w = (self.winding_degc - _AMBIENT_DEGC) / _THERMAL_RESISTANCE_K_PER_W
        self.winding_degc += elapsed_s * (loss_w - cooling_w) / _THERMAL_CAPACITY_J_PER_K

    # --- inside -----------------------------------------------------------------------------------

    def _quantised(self, motor_position_rad: float) -> float:
        count = self._count_rad
        return count * round(motor_position_rad / count) if count else motor_position_rad

    @property
    def _unwrapped_rad(self) -> float:
        is_shifted = self.is_index_compensated and self.is_index_found
        return self._angle_rad - (self._index_zero_rad if is_shifted else self._zero_rad)

    def _control_law(self) -> float:
        """The current on average over the coming step, in which the rotor turns on."""
        setpoint = self._setpoint
        wrap = self._wrap_rad
        error = (self._reference_rad - self._unwrapped_rad + wrap) % (2.0 * wrap) - wrap
        drift_rad_s = -self._true_rad_s
        if self._is_reference_advanced:
            drift_rad_s += setpoint.motor_velocity_rad_s
            self._reference_rad += setpoint.motor_velocity_rad_s * self._step_s
        error += drift_rad_s * self._half_step_s
        current = (
            setpoint.kp_a_per_rad * error
            + setpoint.kd_a_s_per_rad * (setpoint.motor_velocity_rad_s - self._velocity_rad_s)
            + setpoint.ki_a_per_rad_s * self._integral_rad_s
            + setpoint.iq_ff_a
        )
        limit = self._current_limit_a
        if -limit <= current <= limit:
            # An integral that nobody uses is not kept: it would strike when Ki is set again.
            self._integral_rad_s = (
                self._integral_rad_s + error * self._step_s if setpoint.ki_a_per_rad_s else 0.0
            )
            self._ramp_a = setpoint.kp_a_per_rad * drift_rad_s * self._ramp_s
            return current
        return limit if current > 0.0 else -limit

    def _within_voltage(self, iq_a: float) -> float:
        """What the bus can drive against the back-emf: v_q = R·iq + K_i·ω/1.5, |v_q| ≤ V/√3."""
        voltage_v = self._coil_ohm * iq_a + self._nm_per_a * self._true_rad_s / 1.5
        if voltage_v > self._voltage_max_v:
            return iq_a - (voltage_v - self._voltage_max_v) / self._coil_ohm
        if voltage_v < -self._voltage_max_v:
            return iq_a - (voltage_v + self._voltage_max_v) / self._coil_ohm
        return iq_a

    def _align(self) -> float:
        """Turn the rotor by 1/12 turn: the stiff rotating field of a calibration, as a servo."""
        self._calibration_elapsed_s += self._step_s
        if self._calibration_elapsed_s >= self._calibration_s:
            self._end_calibration()
        progress = min(1.0, self._calibration_elapsed_s / (0.7 * self._calibration_s))
        travel = _CALIBRATION_TRAVEL_RAD * progress * progress * (3.0 - 2.0 * progress)
        error = self._calibration_started_rad + travel - self._true_rad
        limit = 0.7 * self._motor_limit_a
        return max(-limit, min(limit, 40.0 * error - 0.5 * self._true_rad_s))

    def _end_calibration(self) -> None:
        travelled = self._true_rad - self._calibration_started_rad
        if abs(travelled / _CALIBRATION_TRAVEL_RAD - 1.0) > 0.25:
            self.has_failed_alignment = True
            return
        self.state = MotorState.RUNNING
        self._is_calibrated = True
        self._zero_rad = self._angle_rad

    def _watch_rollover(self, angle_rad: float) -> None:
        wrap, before = self._wrap_rad, self._unwrapped_rad
        after = before + angle_rad - self._angle_rad
        if math.floor((after + wrap) / (2 * wrap)) != math.floor((before + wrap) / (2 * wrap)):
            self.has_rolled_over = True

    def _pass_index(self, index_turn: int) -> None:
        # Forwards the pulse is at the start of the new turn, backwards at the end of it.
        turn = max(index_turn, self._index_turn)
        self._index_turn = index_turn
        if not self._is_calibrated:
            return
        self.index_toggle = not self.index_toggle
        if not self.is_index_found:
            self.is_index_found = True
            self._index_zero_rad = self._index_rad + turn * _TURN_RAD
