"""The board profiles: what is on the wire, byte by byte.

This is the single source. A new field is one line in a frame, a new profile one `Profile` value;
how its firmware behaves stands in `firmwares`.
Sources: this robot's message for `arm`; the public uOmodri and uDriver v2 firmwares for the others,
checked against byte captures of a public host library (tests/vectors).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from firmware_protocol.behaviour import Behaviour
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
from firmware_protocol.firmwares import ARM_FIRMWARE, UDRIVER2_FIRMWARE, UOMODRI_FIRMWARE
from firmware_protocol.profile import Profile

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

_pair = partial(Field, is_per_motor=True)

_MODE = Field("mode", "mode", U8, "What to enable, bit by bit.", flags=MODE_FLAGS)
_TIMEOUT = Field(
    "timeout_ms",
    "timeout_ms",
    U8,
    "The motors stop after this long without a valid command; 0 = never.",
    MILLISECOND,
)
_STATUS = Field(
    "status",
    "status",
    U16,
    "State bits, protocol version (bits 6–4), error code (bits 3–0).",
    flags=STATUS_FLAGS,
)
_TIMESTAMP = Field(
    "timestamp_ms", "timestamp", U16, "The board's clock, wraps at 65536.", MILLISECOND
)
_COMMAND_INDEX = Field("index", "index", U16, "Free-running counter of the host.")
_ECHOED_INDEX = Field("index", "index", U16, "Index of the last valid command.")
_BUS_VOLTAGE = Field("bus_voltage_v", "vbus", U16, "Supply voltage.", VOLT, -9)

_POSITION = _pair(
    "motor_position_rad", "pos", I32, "Motor position: reference or measured.", TURN, -24
)
_VELOCITY = _pair(
    "motor_velocity_rad_s",
    "vel",
    I16,
    "Motor velocity: reference, or measured and low-passed.",
    KRPM,
    -11,
)
_FEED_FORWARD = _pair("iq_ff_a", "ff", I16, "Feed-forward current.", AMPERE, -10)
_KP = _pair("kp_a_per_rad", "kp", U16, "Gain on the position error.", AMPERE_PER_TURN, -11)
_KD = _pair("kd_a_s_per_rad", "kd", U16, "Gain on the velocity error.", AMPERE_PER_KRPM, -10)
_KI = _pair(
    "ki_a_per_rad_s",
    "ki",
    U16,
    "Gain on the integral of the position error.",
    AMPERE_PER_TURN_SECOND,
    -11,
)
_CURRENT = _pair("iq_a", "iq", I16, "Quadrature current, low-passed.", AMPERE, -10)
_TORQUE = _pair(
    "motor_torque_nm",
    "torque",
    I16,
    "Torque at the motor, as the board computes it from the current.",
    NEWTON_METRE,
    -12,
)
_POWER = _pair("input_power_w", "power", I16, "Electrical power into each motor.", WATT, -4)
_TEMPERATURE = _pair(
    "winding_temperature_degc",
    "temp",
    U8,
    "Winding temperature; raw 0 = no sensor.",
    CELSIUS,
    offset=-40.0,
    absent_raw=0,
    is_auxiliary=True,
)
_COIL_RESISTANCE = _pair(
    "coil_resistance_ohm",
    "tail_words",
    U16,
    "Coil resistance, where the firmware measures it.",
    OHM,
    -15,
    is_auxiliary=True,
)
_EXTERNAL_ADC = _pair(
    "external_adc_v", "tail_words", U16, "External analogue input.", VOLT, -14, is_auxiliary=True
)
_SETPOINT = (_MODE, _TIMEOUT, _POSITION, _VELOCITY, _FEED_FORWARD, _KP, _KD)
_MEASURED = (_STATUS, _TIMESTAMP, _POSITION, _VELOCITY, _CURRENT)

# --- fault codes ----------------------------------------------------------------------------------

_POWER_CYCLE = "then power the board off and on to clear the latched error."
_DROP_ES = "then send one frame with ES = 0 to clear the latched error."


def _faults(
    clear: str,
    encoder_meaning: str,
    encoder_remedy: str,
    *others: Fault,
    other_cause: str = "",
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
            f"and cabling, or send a longer timeout; {other_cause}{clear}",
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


def _current_limit(behaviour: Behaviour) -> Field:
    largest_a = behaviour.current_max_a
    zero_means = "no limit" if largest_a is None else f"the board's maximum, {largest_a:g} A"
    return _pair(
        "isat_a",
        "isat",
        U8,
        f"Current limit; 0 = {zero_means}.",
        AMPERE,
        -3,
        zero_means=zero_means,
    )


ARM = Profile(
    name="arm",
    summary="this robot's custom message: Ki on the board; torque, power and temperature back",
    command=FrameLayout(
        direction=Direction.COMMAND,
        fields=(*_SETPOINT, _KI, _current_limit(ARM_FIRMWARE), _COMMAND_INDEX),
    ),
    reply=FrameLayout(
        direction=Direction.REPLY,
        protocol_version=1,
        are_crc_halves_swapped=True,
        fields=(*_MEASURED, _TORQUE, _BUS_VOLTAGE, _POWER, _TEMPERATURE, _ECHOED_INDEX),
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
    behaviour=ARM_FIRMWARE,
    provenance="The firmware is not published and derives from uomodri: but for the advanced "
    "reference, Ki, the current limit and how errors clear, all of this is taken from there.",
)

UOMODRI = Profile(
    name="uomodri",
    summary="the public uOmodri firmware, which the robot's boards derive from",
    command=FrameLayout(
        direction=Direction.COMMAND,
        fields=(*_SETPOINT, _current_limit(UOMODRI_FIRMWARE), _COMMAND_INDEX),
    ),
    reply=FrameLayout(
        direction=Direction.REPLY,
        protocol_version=0,
        are_crc_halves_swapped=True,
        fields=(*_MEASURED, _COIL_RESISTANCE, _EXTERNAL_ADC, _ECHOED_INDEX),
    ),
    faults=_faults(
        _POWER_CYCLE,
        "alignment test failed",
        _ALIGNMENT_REMEDY,
        Fault(7, "gate-driver fault", f"{_GATE_DRIVER_REMEDY} {_POWER_CYCLE}"),
    ),
    behaviour=UOMODRI_FIRMWARE,
    provenance="Measured on the public firmware's own code, run natively, or read in it.",
)

UDRIVER2 = Profile(
    name="udriver2",
    summary="the older public uDriver v2 firmware",
    command=FrameLayout(
        direction=Direction.COMMAND,
        fields=(
            *_SETPOINT,
            replace(_current_limit(UDRIVER2_FIRMWARE), is_motor_2_first=True),
            _COMMAND_INDEX,
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
        other_cause="or its clock has overflowed, "
        f"{(UDRIVER2_FIRMWARE.clock_overflow_s or 0.0) / 60.0:.1f} min after power-up; ",
    ),
    behaviour=UDRIVER2_FIRMWARE,
    provenance="Measured on the public firmware's own code, run natively, or read in it; not so "
    "the moments of latch and tick, truncation, filters, RS-485, how late the watchdog strikes, "
    "faults of one motor and EMx dropped and raised, which are taken from uomodri, nor windows of "
    "another length, after which it is taken to begin a new frame.",
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
