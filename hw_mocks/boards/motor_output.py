"""One output of a mock board: control law, calibration and heat of one motor.

What PROTOCOL.md says of a board, per motor. A board looks at its encoder every 25 µs; here each
physics step takes the mean of the law over the step, which for all that matters is the same.
Nothing here knows bytes or the watchdog (`board`), nor what the motor turns (`plant`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from daq.robot import Drive, Motor
from firmware_protocol.behaviour import Behaviour, Unpowered
from hw_mocks.boards.current_sensor import CurrentSensor
from hw_mocks.boards.encoder import Encoder
from hw_mocks.plants.actuator import Actuator
from hw_mocks.plants.effects import Effects

_CALIBRATION_TRAVEL_RAD = math.tau / 12.0
_AMBIENT_DEGC = 25.0
# A simple winding: heats with copper loss, cools to ambient. Our choice, plausible for the motors.
_THERMAL_CAPACITY_J_PER_K = 30.0
_THERMAL_RESISTANCE_K_PER_W = 2.5
_CRITICAL_TEMPERATURE_DEGC = 110.0


class MotorState(Enum):
    """What an output does."""

    IDLE = auto()
    CALIBRATING = auto()
    RUNNING = auto()
    STOPPED = auto()
    """Disabled by dropping EMx; still calibrated."""
    SAFE = auto()
    """After an error: braked or coasting."""


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
MEASUREMENTS = (
    "motor_position_rad",
    "motor_velocity_rad_s",
    "iq_a",
    "motor_torque_nm",
    "input_power_w",
    "winding_temperature_degc",
    "coil_resistance_ohm",
)
"""What an output measures, by the same names."""


@dataclass(slots=True)
class Connection:
    """What hangs on the output: a motor with its encoder, and how the board drives it."""

    joint_index: int
    motor: Motor
    drive: Drive
    actuator: Actuator


class MotorOutput:
    """One of the two outputs of a board.

    Attributes:
        connection: What hangs on it.
        encoder: How it sees the rotor.
        state: What it does now.
        is_enabled: MxE: it drives its motor.
        is_ready: MxR: calibrated. Some boards keep saying so while stopped.
        iq_a: The true current, on average over the last step.
        winding_degc: Temperature of the winding.
        has_failed_alignment: A calibration has ended where it should not.
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
        motor = connection.motor if connection else None
        self.encoder = Encoder(
            counts_per_turn=(
                connection.drive.encoder_counts_per_turn
                if connection and effects.is_encoder_quantised
                else math.inf
            ),
            index_rad=0.0,  # the plant counts motor angles from there
            wrap_turns=behaviour.position_wrap_turns,
            velocity_filter_hz=behaviour.velocity_filter_hz,
            step_s=step_s,
        )
        self.iq_a = 0.0
        self.winding_degc = _AMBIENT_DEGC
        self._current = CurrentSensor(
            effects.iq_noise_a if motor else 0.0,
            generator,
            filter_hz=behaviour.current_filter_hz,
            step_s=step_s,
        )
        self._behaviour = behaviour
        own_limit_a = behaviour.current_max_a
        self._board_limit_a = math.inf if own_limit_a is None else own_limit_a
        self._step_s = step_s
        self._calibration_s = calibration_s
        self._calibration_started_rad = 0.0
        self._calibration_elapsed_s = 0.0
        self._voltage_max_v = bus_nominal_v / math.sqrt(3.0)
        self._nm_per_a = motor.torque_constant_nm_per_a if motor else 0.0
        self._coil_ohm = motor.coil_resistance_ohm if motor else math.inf
        self._motor_limit_a = motor.current_max_a if motor else 0.0
        self._true_rad = 0.0
        self._true_rad_s = 0.0
        self.power_up()

    # --- what the board asks ----------------------------------------------------------------------

    def measure(self) -> tuple[float, ...]:
        """Return what one reply says of this motor, in the order of `MEASUREMENTS`."""
        iq_a = self._current.measure_a()
        is_connected = self.connection is not None
        return (
            self.encoder.position_rad,
            self.encoder.velocity_rad_s,
            iq_a,
            # As the board computes it, from the current that it measured.
            self._nm_per_a * iq_a,
            self._input_power_w(),
            self.winding_degc if is_connected else math.nan,
            # Known once calibration has measured it.
            self._coil_ohm if is_connected and self.is_ready else 0.0,
        )

    @property
    def is_too_hot(self) -> bool:
        """Whether the winding has reached its critical temperature."""
        return self.winding_degc >= _CRITICAL_TEMPERATURE_DEGC

    # --- what commands do -------------------------------------------------------------------------

    def enable(self) -> None:
        """Obey EMx: calibrate first, then run; a stopped motor runs again if the board allows."""
        if self.is_enabled:
            return
        if self.state is MotorState.IDLE:
            self._enter(MotorState.CALIBRATING)
            self._calibration_started_rad = self._true_rad
            self._calibration_elapsed_s = 0.0
        elif self.state is MotorState.STOPPED and not self._behaviour.is_stop_latched:
            self._enter(MotorState.RUNNING)

    def stop(self) -> None:
        """Stop, as EMx is not set."""
        if self.state is MotorState.RUNNING:
            self._enter(MotorState.STOPPED)
        elif self.state is MotorState.CALIBRATING:
            self._enter(MotorState.IDLE)
        self._integral_rad_s = 0.0

    def reset(self) -> None:
        """Go idle, as ES is not set; calibration and index are forgotten."""
        self._enter(MotorState.IDLE)
        self._integral_rad_s = 0.0
        self.encoder.reset()
        self.has_failed_alignment = False

    def make_safe(self) -> None:
        """Go to the safe state after an error: no more current until it is cleared."""
        self._enter(MotorState.SAFE)
        self._integral_rad_s = 0.0

    def power_up(self) -> None:
        """Forget what a microcontroller forgets; the winding stays as warm as it is."""
        self.reset()
        self.command((0.0,) * len(SETPOINT))
        self._current.filtered_a = 0.0
        self.encoder.velocity_rad_s = 0.0

    def command(self, setpoint: tuple[float, ...]) -> None:
        """Follow a new setpoint from now on, in the order of `SETPOINT`."""
        self._setpoint = setpoint
        self._reference_rad, velocity_rad_s, *_, isat_a = setpoint
        self._reference_rad_s = velocity_rad_s if self._behaviour.is_reference_advanced else 0.0
        # Isat = 0 means the board's own limit, and no command raises that.
        limit_a = self._board_limit_a
        self._current_limit_a = isat_a if 0.0 < isat_a < limit_a else limit_a

    def _enter(self, state: MotorState) -> None:
        """Change state. What follows from it is worked out here, not at every step and reply."""
        self.state = state
        self.is_enabled = state in (MotorState.CALIBRATING, MotorState.RUNNING)
        self.is_ready = state is MotorState.RUNNING or (
            state is MotorState.STOPPED and self._behaviour.is_stop_latched
        )
        self._slope_a_per_s = 0.0
        if state is MotorState.RUNNING:
            self._drive = self._follow
        elif state is MotorState.CALIBRATING:
            self._drive = self._align
        elif state is MotorState.SAFE and self._behaviour.unpowered is Unpowered.BRAKE:
            self._drive = self._brake
        else:
            self._drive = self._rest

    # --- every physics step -----------------------------------------------------------------------

    def drive_torque_nm(self) -> float:
        """Set the current for the coming step; returns the torque on the rotor."""
        self.iq_a = iq_a = self._drive()
        if self.connection is None:
            return 0.0
        return self.connection.actuator.torque_nm(iq_a, self._true_rad, self._true_rad_s)

    def sense(self, motor_position_rad: float, motor_velocity_rad_s: float) -> None:
        """Read the encoder and the current after a physics step."""
        self._true_rad = motor_position_rad
        self._true_rad_s = motor_velocity_rad_s
        self.encoder.read(motor_position_rad)
        self._current.read(self.iq_a, self._slope_a_per_s)

    def place(self, motor_position_rad: float) -> None:
        """Tell the encoder where the rotor stands before the first step."""
        self._true_rad = motor_position_rad
        self.encoder.place(motor_position_rad)

    def heat(self, elapsed_s: float) -> None:
        """Advance the winding's temperature."""
        if self.connection is None:
            return
        loss_w = 1.5 * self._coil_ohm * self.iq_a**2
        cooling_w = (self.winding_degc - _AMBIENT_DEGC) / _THERMAL_RESISTANCE_K_PER_W
        self.winding_degc += elapsed_s * (loss_w - cooling_w) / _THERMAL_CAPACITY_J_PER_K

    # --- the current in each state ----------------------------------------------------------------

    def _rest(self) -> float:
        return 0.0

    def _brake(self) -> float:
        # Shorted phases: the back-emf drives the current, power balance K_i·iq·ω = 3/2·R·iq².
        return -self._nm_per_a * self._true_rad_s / 1.5 / self._coil_ohm

    def _follow(self) -> float:
        """Return the control law's current, averaged over the coming step while the rotor turns."""
        _, velocity_rad_s, iq_ff_a, kp_a_per_rad, kd_a_s_per_rad, ki_a_per_rad_s, _ = self._setpoint
        encoder, step_s, rotor_rad_s = self.encoder, self._step_s, self._true_rad_s
        drift_rad_s = self._reference_rad_s - (0.0 if encoder.is_frozen else rotor_rad_s)
        error_rad = encoder.error_rad(self._reference_rad) + 0.5 * step_s * drift_rad_s
        self._reference_rad += self._reference_rad_s * step_s
        current_a = (
            kp_a_per_rad * error_rad
            + kd_a_s_per_rad * (velocity_rad_s - encoder.velocity_rad_s)
            + ki_a_per_rad_s * self._integral_rad_s
            + iq_ff_a
        )
        limit_a = self._current_limit_a
        if -limit_a <= current_a <= limit_a:
            # An integral that nobody uses is not kept: it would strike when Ki is set again.
            self._integral_rad_s = (
                self._integral_rad_s + error_rad * step_s if ki_a_per_rad_s else 0.0
            )
            self._slope_a_per_s = kp_a_per_rad * drift_rad_s
        else:
            current_a = math.copysign(limit_a, current_a)
            self._slope_a_per_s = 0.0
        # What the bus can drive against the back-emf: v_q = R·iq + K_i·ω/1.5, |v_q| ≤ V/√3.
        voltage_v = self._coil_ohm * current_a + self._nm_per_a * rotor_rad_s / 1.5
        limit_v = self._voltage_max_v
        if not -limit_v <= voltage_v <= limit_v:
            current_a -= (voltage_v - math.copysign(limit_v, voltage_v)) / self._coil_ohm
            self._slope_a_per_s = 0.0
        return current_a

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
        travelled = self.encoder.angle_rad - self._calibration_started_rad
        if abs(travelled / _CALIBRATION_TRAVEL_RAD - 1.0) > 0.25:
            self.has_failed_alignment = True
            return
        self._enter(MotorState.RUNNING)
        self.encoder.set_zero()

    def _input_power_w(self) -> float:
        """Return the electrical power into the motor: copper loss and mechanical power."""
        if self.connection is None or self.state is MotorState.SAFE:
            return 0.0
        mechanical = self._nm_per_a * self.iq_a * self._true_rad_s
        return 1.5 * self._coil_ohm * self.iq_a**2 + mechanical
