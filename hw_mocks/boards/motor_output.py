"""One output of a mock board: what its motor does in each state, and what is measured of it.

What PROTOCOL.md says of a board, per motor. Nothing here knows bytes or the watchdog (`board`),
nor what the motor turns (`plant`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from daq.robot import Drive, Motor
from firmware_protocol.behaviour import Behaviour, IdleIntegral, Unpowered
from hw_mocks.boards.alignment import Alignment
from hw_mocks.boards.control_law import SETPOINT, ControlLaw, Setpoint, Winding
from hw_mocks.boards.current_sensor import CurrentSensor
from hw_mocks.boards.encoder import Encoder
from hw_mocks.plants.actuator import Actuator
from hw_mocks.plants.effects import Effects

_AMBIENT_DEGC = 25.0
# A simple winding: heats with copper loss, cools to ambient. Our choice, plausible for the motors.
_THERMAL_CAPACITY_J_PER_K = 30.0
_THERMAL_RESISTANCE_K_PER_W = 2.5
_CRITICAL_TEMPERATURE_DEGC = 110.0
_UNHURRIED_S = 1.0
_OPEN_OHM = 1e9
"""Of a winding that is not there."""
_NO_POLES = 12
"""Pole pairs that a field turns by where no motor hangs on the output."""


class MotorState(Enum):
    """What an output does."""

    DEAD = auto()
    """Without supply."""
    IDLE = auto()
    CALIBRATING = auto()
    RUNNING = auto()
    STOPPED = auto()
    """Disabled by dropping EMx; still calibrated."""
    ERROR = auto()


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
        law: Its control law.
        state: What it does now.
        is_ready: MxR: calibrated, as the firmware says it.
        start_ns: When a calibration will begin; None for not at all.
        iq_a: The true current, on average over the last step.
        winding_degc: Temperature of the winding.
        has_failed_alignment: A calibration has ended where it should not.
        has_failed_for_good: Its gate driver did not initialise: dead until the next power-up.
    """

    def __init__(
        self,
        connection: Connection | None,
        behaviour: Behaviour,
        effects: Effects,
        generator: np.random.Generator,
        *,
        step_s: float,
        bus_nominal_v: float,
        calibration_s: float | None = None,
        idle_integral: IdleIntegral = IdleIntegral.CLEARED,
    ) -> None:
        self.connection = connection
        self._actuator = connection.actuator if connection else None
        self.start_ns: int | None = None
        motor = connection.motor if connection else None
        self.encoder = Encoder(
            counts_per_turn=(
                connection.drive.encoder_counts_per_turn
                if connection and effects.is_encoder_quantised
                else math.inf
            ),
            index_rad=0.0,  # the plant counts motor angles from there
            behaviour=behaviour,
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
        self._winding = Winding(
            motor.torque_constant_nm_per_a if motor else 0.0,
            motor.coil_resistance_ohm if motor else _OPEN_OHM,
            bus_nominal_v / math.sqrt(3.0),
        )
        self.law = ControlLaw(
            self.encoder, self._current, self._winding, behaviour, idle_integral, step_s=step_s
        )
        self._behaviour = behaviour
        self._step_s = step_s
        calibration = behaviour.calibration
        self._calibration_s = calibration.duration_s if calibration_s is None else calibration_s
        # Hurried, the field turns less far: no rotor could follow it.
        hurry = min(1.0, self._calibration_s / _UNHURRIED_S)
        self._travel_turns = hurry * calibration.travel_electrical_turns
        self._alignment: Alignment | None = None
        self._align_limit_a = 0.7 * motor.current_max_a if motor else 0.0
        self._pole_pairs = motor.pole_pairs if motor else _NO_POLES
        self._true_rad = 0.0
        self._true_rad_s = 0.0
        self.power_up()

    # --- what the board asks ----------------------------------------------------------------------

    def measure(self, offset_s: float = 0.0) -> tuple[float, ...]:
        """Return what a reply says of this motor, in the order of `MEASUREMENTS`.

        It was latched so long after the last step, or before it.
        """
        iq_a = self._current.measure_a(offset_s)
        is_connected = self.connection is not None
        return (
            self.encoder.position_at(self._true_rad + offset_s * self._true_rad_s),
            self.encoder.velocity_rad_s,
            iq_a,
            # As the board computes it, from the current that it measured.
            self._winding.nm_per_a * iq_a,
            self._input_power_w(),
            self.winding_degc if is_connected else math.nan,
            # Known once calibration has measured it.
            self._winding.coil_ohm
            if is_connected and self.is_ready and self._behaviour.is_coil_measured
            else 0.0,
        )

    @property
    def is_too_hot(self) -> bool:
        """Whether the winding has reached its critical temperature."""
        return self.winding_degc >= _CRITICAL_TEMPERATURE_DEGC

    @property
    def is_asking(self) -> bool:
        """Whether its law asks for a current other than 0."""
        return self.state is MotorState.RUNNING and self.law.is_asking

    # --- what commands do -------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether it must be calibrated before it can run, and has not begun."""
        return self.state is MotorState.IDLE and self.start_ns is None and not self._is_kept

    @property
    def is_calibrating(self) -> bool:
        """Whether a calibration goes on, or will."""
        return self.state is MotorState.CALIBRATING or self.start_ns is not None

    def enable(self) -> None:
        """Obey EMx: a motor that is calibrated runs, unless its board latches a stop."""
        if self.state is MotorState.IDLE:
            if self._is_kept:
                self._enter(MotorState.RUNNING)
        elif self.state is MotorState.STOPPED and not self._behaviour.is_stop_latched:
            self._enter(MotorState.RUNNING)

    def calibrate(self) -> None:
        """Begin to turn the field."""
        self.start_ns = None
        self._alignment = Alignment(
            self._true_rad,
            pole_pairs=self._pole_pairs,
            travel_turns=self._travel_turns,
            duration_s=self._calibration_s,
        )
        self._enter(MotorState.CALIBRATING)

    def stop(self) -> None:
        """Stop, as EMx is not set."""
        self.start_ns = None
        if self.state is MotorState.RUNNING:
            self._enter(MotorState.STOPPED)
        elif self.state is MotorState.CALIBRATING:
            self._enter(MotorState.IDLE)
        self.law.clear()

    def reset(self) -> None:
        """Go idle, as ES is not set; calibration and index are forgotten, where they are."""
        if not self._behaviour.calibration.is_kept:
            self.encoder.reset()
        self.start_ns = None
        self.has_failed_alignment = False
        self.law.clear()
        self._enter(MotorState.IDLE)

    def fail(self, *, is_for_good: bool = False) -> None:
        """Go to the error's state: no more current until it is cleared, if it can be."""
        self.has_failed_for_good |= is_for_good
        self.start_ns = None
        self.law.clear()
        self._enter(MotorState.ERROR)

    def power_up(self) -> None:
        """Forget what a microcontroller forgets; the winding stays as warm as it is."""
        self.has_failed_for_good = False
        self.encoder.reset()
        self.reset()
        self.law.command((0.0,) * len(SETPOINT))
        self._current.filtered_a = 0.0
        self.encoder.velocity_rad_s = 0.0

    def power_off(self) -> None:
        """Be without supply."""
        self.power_up()
        self._enter(MotorState.DEAD)

    def command(self, setpoint: Setpoint, delay_s: float) -> None:
        """Follow a new setpoint so long after the last step, in the order of `SETPOINT`."""
        self.law.command(setpoint, delay_s if self.state is MotorState.RUNNING else 0.0)

    @property
    def _is_kept(self) -> bool:
        """Whether an earlier calibration is still good."""
        return self._behaviour.calibration.is_kept and self.encoder.is_zeroed

    def _enter(self, state: MotorState) -> None:
        """Change state. What follows from it is worked out here, not at every step and reply."""
        self.state = state
        self.is_ready = state is MotorState.RUNNING or (
            self._is_kept
            if self._behaviour.is_ready_after_error
            else state is MotorState.STOPPED and self._behaviour.is_stop_latched
        )
        self._is_following = state is MotorState.RUNNING
        self._is_supplied = self._is_following or state is MotorState.CALIBRATING
        self._drive: Callable[[float], float]
        if self._is_following:
            self._drive = self.law.drive_a
        elif state is MotorState.CALIBRATING:
            self._drive = self._aligning_a
        elif state is not MotorState.DEAD and self._behaviour.unpowered is Unpowered.BRAKE:
            self._drive = self._winding.braked_a
        else:
            self._drive = _coasting_a

    # --- every physics step -----------------------------------------------------------------------

    def drive_torque_nm(self) -> float:
        """Set the current for the coming step, and measure it; returns the torque on the rotor."""
        rotor_rad_s = self._true_rad_s
        self.iq_a = iq_a = self._drive(rotor_rad_s)
        if not self._is_following:
            self._current.read(iq_a, 0.0, self._step_s)
        if self._actuator is None:
            return 0.0
        return self._actuator.torque_nm(iq_a, self._true_rad, rotor_rad_s)

    def sense(self, motor_position_rad: float, motor_velocity_rad_s: float) -> None:
        """Read the encoder after a physics step."""
        self._true_rad = motor_position_rad
        self._true_rad_s = motor_velocity_rad_s
        self.encoder.read(motor_position_rad)

    def place(self, motor_position_rad: float) -> None:
        """Tell the encoder where the rotor stands before the first step."""
        self._true_rad = motor_position_rad
        self.encoder.place(motor_position_rad)

    def heat(self, elapsed_s: float) -> None:
        """Advance the winding's temperature."""
        if self.connection is None:
            return
        loss_w = 1.5 * self._winding.coil_ohm * self.iq_a**2
        cooling_w = (self.winding_degc - _AMBIENT_DEGC) / _THERMAL_RESISTANCE_K_PER_W
        self.winding_degc += elapsed_s * (loss_w - cooling_w) / _THERMAL_CAPACITY_J_PER_K

    # --- calibration ------------------------------------------------------------------------------

    def _aligning_a(self, rotor_rad_s: float) -> float:
        alignment = self._alignment
        if alignment is None:
            return 0.0
        alignment.look(self.encoder.angle_rad)
        if alignment.has_failed:
            self.has_failed_alignment = True
            return 0.0
        if alignment.is_over:
            self.encoder.set_zero()
            self._enter(MotorState.RUNNING)
            return self._drive(rotor_rad_s)
        current_a = alignment.current_a(self._true_rad, rotor_rad_s, self._step_s)
        limit_a = self._align_limit_a
        return max(-limit_a, min(limit_a, current_a))

    def _input_power_w(self) -> float:
        """Return the electrical power into the motor: copper loss and mechanical power."""
        if self.connection is None or not self._is_supplied:
            return 0.0
        mechanical = self._winding.nm_per_a * self.iq_a * self._true_rad_s
        return 1.5 * self._winding.coil_ohm * self.iq_a**2 + mechanical


def _coasting_a(_rotor_rad_s: float) -> float:
    return 0.0
