"""The board profiles: what is on the wire, byte by byte, and how each firmware behaves.

This is the single source. A new field is one line in a frame, a new profile one `Profile` value.
Sources: this robot's message for `arm`; the public uOmodri and uDriver v2 firmwares for the others,
checked against byte captures of a public host library (tests/vectors).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from firmware_protocol.errors import UnknownNameError
from firmware_protocol.fields import (
    AMPERE,
    AMPERE_PER_KRPM,
    AMPERE_PER_TURN,
    AMPERE_PER_TURN_SECOND,
    CELSIUS,
    FULL_SCALE,
    I16,
    I32,
    KRPM,
    MILLISECOND,
    NEWTON_METRE,
    OHM,
    TURN,
    U8,
    U16,
    VOLT,
    WATT,
    Direction,
    Fault,
    FaultCause,
    Field,
    Flag,
    FrameLayout,
)
from firmware_protocol.profile import Behaviour, ErrorsClear, OnWatchdog, Profile

# --- fields, each stated once ---------------------------------------------------------------------

MODE_FLAGS = (
    Flag("ES", 7, "enable system"),
    Flag("EM1", 6, "enable motor 1"),
    Flag("EM2", 5, "enable motor 2"),
    Flag("EPRE", 4, "report a position rollover as an error"),
    Flag("EI1OC", 3, "shift position 1 so that it is zero at the encoder index"),
    Flag("EI2OC", 2, "shift position 2 so that it is zero at the encoder index"),
    Flag("reserved1", 1, "reserved"),
    Flag("reserved0", 0, "reserved"),
)
STATUS_FLAGS = (
    Flag("SE", 15, "system enabled"),
    Flag("M1E", 14, "motor 1 enabled"),
    Flag("M1R", 13, "motor 1 ready (calibrated)"),
    Flag("M2E", 12, "motor 2 enabled"),
    Flag("M2R", 11, "motor 2 ready (calibrated)"),
    Flag("IDX1D", 10, "encoder index 1 found"),
    Flag("IDX2D", 9, "encoder index 2 found"),
    Flag("IDX1T", 8, "toggles each time encoder index 1 passes"),
    Flag("IDX2T", 7, "toggles each time encoder index 2 passes"),
)
MODE_BITS = {flag.name: 1 << flag.bit for flag in MODE_FLAGS}
STATUS_BITS = {flag.name: 1 << flag.bit for flag in STATUS_FLAGS}

_MODE = Field(
    name="mode", raw_key="mode", wire=U8, flags=MODE_FLAGS, summary="What to enable, bit by bit."
)
_TIMEOUT = Field(
    name="timeout_ms",
    raw_key="timeout_ms",
    wire=U8,
    unit=MILLISECOND,
    summary="The motors stop after this long without a valid command; 0 = never.",
)
_STATUS = Field(
    name="status",
    raw_key="status",
    wire=U16,
    flags=STATUS_FLAGS,
    summary="State bits, protocol version (bits 6–4), error code (bits 3–0).",
)
_TIMESTAMP = Field(
    name="timestamp_ms",
    raw_key="timestamp",
    wire=U16,
    unit=MILLISECOND,
    summary="The board's clock, wraps at 65536.",
)
_POSITION = Field(
    name="motor_position_rad",
    raw_key="pos",
    wire=I32,
    unit=TURN,
    lsb_exponent=-24,
    is_per_motor=True,
    summary="Motor position: reference or measured.",
)
_VELOCITY = Field(
    name="motor_velocity_rad_s",
    raw_key="vel",
    wire=I16,
    unit=KRPM,
    lsb_exponent=-11,
    is_per_motor=True,
    summary="Motor velocity: reference, or measured and low-passed.",
)
_FEED_FORWARD = Field(
    name="iq_ff_a",
    raw_key="ff",
    wire=I16,
    unit=AMPERE,
    lsb_exponent=-10,
    is_per_motor=True,
    summary="Feed-forward current.",
)
_KP = Field(
    name="kp_a_per_rad",
    raw_key="kp",
    wire=U16,
    unit=AMPERE_PER_TURN,
    lsb_exponent=-11,
    is_per_motor=True,
    summary="Gain on the position error.",
)
_KD = Field(
    name="kd_a_s_per_rad",
    raw_key="kd",
    wire=U16,
    unit=AMPERE_PER_KRPM,
    lsb_exponent=-10,
    is_per_motor=True,
    summary="Gain on the velocity error.",
)
_KI = Field(
    name="ki_a_per_rad_s",
    raw_key="ki",
    wire=U16,
    unit=AMPERE_PER_TURN_SECOND,
    lsb_exponent=-11,
    is_per_motor=True,
    summary="Gain on the integral of the position error.",
)
_CURRENT_LIMIT = Field(
    name="isat_a",
    raw_key="isat",
    wire=U8,
    unit=AMPERE,
    lsb_exponent=-3,
    is_per_motor=True,
    summary="Current limit; 0 = the board's own limit.",
)
_COMMAND_INDEX = Field(
    name="index", raw_key="index", wire=U16, summary="Free-running counter of the host."
)
_CURRENT = Field(
    name="iq_a",
    raw_key="iq",
    wire=I16,
    unit=AMPERE,
    lsb_exponent=-10,
    is_per_motor=True,
    summary="Quadrature current, low-passed.",
)
_TORQUE = Field(
    name="motor_torque_nm",
    raw_key="torque",
    wire=I16,
    unit=NEWTON_METRE,
    lsb_exponent=-12,
    is_per_motor=True,
    summary="Torque at the motor, as the board computes it from the current.",
)
_BUS_VOLTAGE = Field(
    name="bus_voltage_v",
    raw_key="vbus",
    wire=U16,
    unit=VOLT,
    lsb_exponent=-9,
    summary="Supply voltage.",
)
_POWER = Field(
    name="input_power_w",
    raw_key="power",
    wire=I16,
    unit=WATT,
    lsb_exponent=-4,
    is_per_motor=True,
    summary="Electrical power into each motor.",
)
_TEMPERATURE = Field(
    name="winding_temperature_degc",
    raw_key="temp",
    wire=U8,
    unit=CELSIUS,
    offset=-40.0,
    absent_raw=0,
    is_per_motor=True,
    summary="Winding temperature; raw 0 = no sensor.",
    is_auxiliary=True,
)
_COIL_RESISTANCE = Field(
    name="coil_resistance_ohm",
    raw_key="tail_words",
    wire=U16,
    unit=OHM,
    lsb_exponent=-15,
    is_per_motor=True,
    summary="Coil resistance, measured during calibration.",
    is_auxiliary=True,
)
_EXTERNAL_ADC = Field(
    name="external_adc_v",
    raw_key="tail_words",
    wire=U16,
    unit=VOLT,
    lsb_exponent=-14,
    is_per_motor=True,
    summary="External analogue input.",
    is_auxiliary=True,
)
_ECHOED_INDEX = Field(
    name="index",
    raw_key="index",
    wire=U16,
    summary="Index of the last valid command.",
)

# --- fault codes ----------------------------------------------------------------------------------

_POWER_CYCLE = "then power the board off and on to clear the latched error."
_DROP_ES = "then send one frame with ES = 0 to clear the latched error."


def _faults(
    clear: str, encoder_meaning: str, encoder_remedy: str, *others: Fault
) -> Mapping[int, Fault]:
    common = [
        Fault(
            1,
            f"encoder 1: {encoder_meaning}",
            f"Motor 1: {encoder_remedy} {clear}",
            FaultCause.ENCODER_1,
        ),
        Fault(
            2,
            "command timeout",
            "The board had no valid command for the time set in the frame: check the host's load "
            f"and cabling, or send a longer timeout; {clear}",
            FaultCause.TIMEOUT,
        ),
        Fault(
            5,
            "position rollover",
            f"The position left its range with EPRE set: re-home or clear EPRE; {clear}",
            FaultCause.ROLLOVER,
        ),
        Fault(
            6,
            f"encoder 2: {encoder_meaning}",
            f"Motor 2: {encoder_remedy} {clear}",
            FaultCause.ENCODER_2,
        ),
    ]
    return MappingProxyType({fault.code: fault for fault in [*common, *others]})


_ALIGNMENT_REMEDY = (
    "check the encoder's cable and mounting and that the rotor turns freely during calibration;"
)
_GATE_DRIVER_REMEDY = (
    "A gate driver reported over-current, over-temperature or under-voltage: check supply and "
    "motor wiring for shorts;"
)

# --- the three profiles ---------------------------------------------------------------------------

ARM = Profile(
    name="arm",
    summary="this robot's custom message: Ki on the board; torque, power and temperature back",
    command=FrameLayout(
        direction=Direction.COMMAND,
        fields=(
            _MODE,
            _TIMEOUT,
            _POSITION,
            _VELOCITY,
            _FEED_FORWARD,
            _KP,
            _KD,
            _KI,
            _CURRENT_LIMIT,
            _COMMAND_INDEX,
        ),
    ),
    reply=FrameLayout(
        direction=Direction.REPLY,
        protocol_version=1,
        are_crc_halves_swapped=True,
        fields=(
            _STATUS,
            _TIMESTAMP,
            _POSITION,
            _VELOCITY,
            _CURRENT,
            _TORQUE,
            _BUS_VOLTAGE,
            _POWER,
            _TEMPERATURE,
            _ECHOED_INDEX,
        ),
    ),
    faults=_faults(
        _DROP_ES,
        "alignment test failed",
        _ALIGNMENT_REMEDY,
        Fault(
            3,
            "critical temperature",
            f"A winding is too hot: let it cool and lower the current; {_DROP_ES}",
            FaultCause.TEMPERATURE,
        ),
        Fault(7, "gate-driver fault", f"{_GATE_DRIVER_REMEDY} {_DROP_ES}"),
    ),
    behaviour=Behaviour(
        position_wrap_turns=128.0,
        current_max_a=20.0,
        velocity_filter_hz=100.0,
        current_filter_hz=1000.0,
        is_reference_advanced=True,
        reply_lag_max=1,
        frame_gap_min_s=0.0,
        on_watchdog=OnWatchdog.BRAKE,
        errors_clear=ErrorsClear.SYSTEM_DISABLED_ONE_FRAME,
        is_stop_latched=False,
        is_misaligned_by_truncation=False,
    ),
)

UOMODRI = Profile(
    name="uomodri",
    summary="the public uOmodri firmware, which the robot's boards derive from",
    command=FrameLayout(
        direction=Direction.COMMAND,
        fields=(
            _MODE,
            _TIMEOUT,
            _POSITION,
            _VELOCITY,
            _FEED_FORWARD,
            _KP,
            _KD,
            _CURRENT_LIMIT,
            _COMMAND_INDEX,
        ),
    ),
    reply=FrameLayout(
        direction=Direction.REPLY,
        protocol_version=0,
        are_crc_halves_swapped=True,
        fields=(
            _STATUS,
            _TIMESTAMP,
            _POSITION,
            _VELOCITY,
            _CURRENT,
            _COIL_RESISTANCE,
            _EXTERNAL_ADC,
            _ECHOED_INDEX,
        ),
    ),
    faults=_faults(
        _POWER_CYCLE,
        "alignment test failed",
        _ALIGNMENT_REMEDY,
        Fault(7, "gate-driver fault", f"{_GATE_DRIVER_REMEDY} {_POWER_CYCLE}"),
    ),
    behaviour=Behaviour(
        position_wrap_turns=128.0,
        current_max_a=10.0,
        velocity_filter_hz=100.0,
        current_filter_hz=1000.0,
        is_reference_advanced=False,
        reply_lag_max=1,
        frame_gap_min_s=0.0,
        on_watchdog=OnWatchdog.BRAKE,
        errors_clear=ErrorsClear.POWER_CYCLE,
        is_stop_latched=True,
        is_misaligned_by_truncation=True,
    ),
)

UDRIVER2 = Profile(
    name="udriver2",
    summary="the older public uDriver v2 firmware",
    command=replace(
        UOMODRI.command,
        fields=tuple(
            replace(field, is_motor_2_first=True) if field is _CURRENT_LIMIT else field
            for field in UOMODRI.command.fields
        ),
    ),
    reply=replace(
        UOMODRI.reply,
        fields=tuple(
            replace(field, name="external_adc_fraction", unit=FULL_SCALE, lsb_exponent=-16)
            if field is _EXTERNAL_ADC
            else field
            for field in UOMODRI.reply.fields
        ),
    ),
    faults=_faults(
        _POWER_CYCLE,
        "index mismatch",
        "the encoder lost counts between two index pulses: check its cable and mounting;",
        Fault(4, "position converter", f"Check the encoder's supply and cable; {_POWER_CYCLE}"),
        Fault(7, "other", f"Check the supply and the motors' wiring; {_POWER_CYCLE}"),
    ),
    behaviour=replace(
        UOMODRI.behaviour,
        position_wrap_turns=100.0,
        current_max_a=None,
        reply_lag_max=2,
        frame_gap_min_s=0.7e-3,
        on_watchdog=OnWatchdog.COAST,
        is_stop_latched=False,
        is_misaligned_by_truncation=False,
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {profile.name: profile for profile in (ARM, UOMODRI, UDRIVER2)}
)


def profile_named(name: str) -> Profile:
    """Return the profile of that name.

    Raises:
        UnknownNameError: No profile has it.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise UnknownNameError(f"unknown profile {name!r}; known: {', '.join(PROFILES)}") from None
