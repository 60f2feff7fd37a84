"""What a firmware does that its frames do not show: one value per line of the shared `PROTOCOL.md`.

Host, mock and recording read it from the profile; none of them keeps a constant of its own. Where
nothing is measured for a firmware, the profile takes the reading that is harder for the host, or
`firmwares` says why not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Unpowered(Enum):
    """What motors do in the states without a control law: idle, stopped, after an error."""

    BRAKE = "brake"
    """The low sides of the bridge are on: the back-emf drives a current through the windings."""
    COAST = "coast"


class ErrorsClear(Enum):
    """What ends a latched error."""

    POWER_CYCLE = "the board is powered off and on"
    SYSTEM_DISABLED_ONE_FRAME = "a frame comes with ES = 0"


class Watchdog(Enum):
    """When the time without a valid command counts."""

    ALWAYS = "in every state, also with ES = 0"
    UNDER_CURRENT = "while an enabled motor has a current reference other than 0"


class SystemBit(Enum):
    """Where the status bit SE comes from."""

    MOTOR_2 = "the command as motor 2 keeps it: an idle motor clears its own"
    COMMAND = "ES of the last command, 1 before there is one and 0 after an error"


class IdleIntegral(Enum):
    """What becomes of the integral of the position error while Ki = 0."""

    CLEARED = "cleared"
    KEPT = "kept"
    RUNS_ON = "runs on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How a motor finds its electrical angle once it is enabled.

    Attributes:
        duration_s: About how long it takes.
        late_max_s: Where it begins only when a frame and the board's millisecond timer refresh the
            command in neighbouring ticks of the law: by chance, up to this late. 0 for at once.
        apart_max_s: How much later than the first the second motor may begin.
        travel_electrical_turns: How far the rotor is turned back, and forth again.
        is_kept: Whether it is done once per power-up, so that zero and MxR outlast ES = 0.
        is_position_live_before: Whether positions are measured before it ends; they read 0 else.
    """

    duration_s: float
    late_max_s: float
    apart_max_s: float
    travel_electrical_turns: float
    is_kept: bool
    is_position_live_before: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What a firmware does that its frames do not show.

    Attributes:
        position_wrap_turns: Reported positions wrap at plus and minus this; the position error does
            not, it is a plain difference.
        position_difference_wraps_turns: The range of the integer that holds that difference; None
            where it holds any.
        current_sum_max_a: The law's sum wraps there and so changes its sign; None where it cannot.
        law_period_s: Time between two ticks of the control law; a command acts at the next one.
        is_reference_advanced: Whether θref moves on by ωref·t between frames; else it is held.
        idle_integrals: What the integral may do while Ki = 0, as far as is known; none without Ki.
        current_max_a: The board's own limit, also meant by Isat = 0; None for no limit.
        velocity_filter_hz: Corner of the first-order low-pass on measured velocities.
        current_filter_hz: Of the one on measured currents.
        reply_age_max_s: Values of a reply were latched up to this long before its window.
        is_truncated: Whether measured values are cut toward zero on the wire; rounded else.
        is_coil_measured: Whether the coil resistance is; it reads 0 else.
        reply_lag_max: The reply to command k is in exchange k+1, or as late as k + this.
        frame_gap_min_s: Shortest time between two frames.
        torn_share: Of replies whose first five words, half of motor 2's position among them, are
            older than the rest.
        is_blank_before_commands: Whether replies are zeros before the first valid frame.
        timestamp_step_s: What one count of the time stamp really lasts.
        clock_overflow_s: The board's clock overflows after so long, which looks like a time-out
            while current flows; None where it does not.
        rs485_lag: On RS-485 the reply to command k comes so many commands later.
        is_rs485_blank_first: Whether the very first reply there is unreadable.
        is_receiver_shifted: Whether a window of another length shifts all later commands, though
            not the replies.
        watchdog: When the time without a valid command counts.
        watchdog_slack_s: A time-out strikes up to this long after it should.
        errors_clear: What ends a latched error.
        unpowered: What motors do without a control law.
        are_faults_per_motor: Whether a fault of one motor stops only that motor.
        is_stop_latched: Whether a motor stopped by EMx = 0 stays so until ES drops, whatever its
            bits say.
        system_bit: Where SE comes from.
        is_ready_after_error: Whether MxR stays 1 after an error.
        calibration: How a motor is calibrated.
    """

    position_wrap_turns: float
    position_difference_wraps_turns: float | None
    current_sum_max_a: float | None
    law_period_s: float
    is_reference_advanced: bool
    idle_integrals: tuple[IdleIntegral, ...]
    current_max_a: float | None
    velocity_filter_hz: float
    current_filter_hz: float
    reply_age_max_s: float
    is_truncated: bool
    is_coil_measured: bool
    reply_lag_max: int
    frame_gap_min_s: float
    torn_share: float
    is_blank_before_commands: bool
    timestamp_step_s: float
    clock_overflow_s: float | None
    rs485_lag: int
    is_rs485_blank_first: bool
    is_receiver_shifted: bool
    watchdog: Watchdog
    watchdog_slack_s: float
    errors_clear: ErrorsClear
    unpowered: Unpowered
    are_faults_per_motor: bool
    is_stop_latched: bool
    system_bit: SystemBit
    is_ready_after_error: bool
    calibration: Calibration
