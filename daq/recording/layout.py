"""The layout of a recording as pure data: what is in the file, in which type, unit and shape.

The writer, the reader's checks and `RECORDING_FORMAT.md` come from these tables. A change that old
readers cannot cope with raises `VERSION_MAJOR`, an addition `VERSION_MINOR`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import partial
from typing import Any

from daq.recording.states import Mode, Outcome, State

FORMAT = "armature recording"
VERSION_MAJOR = 1
VERSION_MINOR = 2
BEHAVIOUR_SINCE_MINOR = 1
"""From here on a recording states how its boards behave."""
MOMENTS_SINCE_MINOR = 2
"""From here on also when replies are made and commands obeyed, and how values are cut."""
SUFFIX = ".h5"
SAMPLES = "samples"
ROBOT = "robot"
IMPORT_LINK = "import"
"""The link of a recording that was made from foreign data: no board measured them."""


class ColumnAxis(Enum):
    """What the columns of a dataset are; its rows are samples or entries of a table."""

    NONE = ""
    JOINTS = "joints"
    BOARDS = "boards"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One dataset.

    Attributes:
        name: Within its group; carries the unit.
        dtype: As NumPy writes it; `str` for text (UTF-8, variable length).
        description: One sentence.
        unit: Empty for what has none.
        axis: What its columns are.
        codes: Names of its values, for columns of codes.
        bits: Names of its bits, for columns of flags.
        is_optional: Left out where no board of the robot reports it.
    """

    name: str
    dtype: str
    description: str
    unit: str = ""
    axis: ColumnAxis = ColumnAxis.NONE
    codes: Mapping[int, str] = field(default_factory=dict)
    bits: Mapping[int, str] = field(default_factory=dict)
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of the file itself.

    Attributes:
        name: Of the attribute.
        kind: `text`, `integer`, or lists of `texts` and `numbers`.
        description: One sentence.
        is_per_board: Whether it has a value for each board.
        since_minor: Files of older minor versions do not have it.
    """

    name: str
    kind: str
    description: str
    is_per_board: bool = False
    since_minor: int = 0


def _behaviour(
    name: str, description: str, *, since_minor: int = BEHAVIOUR_SINCE_MINOR
) -> Attribute:
    return Attribute(
        f"board_{name}", "numbers", description, is_per_board=True, since_minor=since_minor
    )


_moment = partial(_behaviour, since_minor=MOMENTS_SINCE_MINOR)


def _names(codes: type[IntEnum]) -> dict[int, str]:
    return {code.value: code.name.lower() for code in codes}


STATES, MODES, OUTCOMES = map(_names, (State, Mode, Outcome))
STATUS_BITS = {
    15: "SE",
    14: "M1E",
    13: "M1R",
    12: "M2E",
    11: "M2R",
    10: "IDX1D",
    9: "IDX2D",
    8: "IDX1T",
    7: "IDX2T",
}
COMMAND_BITS = {7: "ES", 6: "EM1", 5: "EM2", 4: "EPRE", 3: "EI1OC", 2: "EI2OC"}


def _timing(name: str, dtype: str, description: str, unit: str = "ns") -> Dataset:
    return Dataset(name=name, dtype=dtype, description=description, unit=unit)


def _joints(name: str, unit: str, description: str, *, dtype: str = "<f4", **more: Any) -> Dataset:
    axis = ColumnAxis.JOINTS
    return Dataset(name=name, unit=unit, description=description, dtype=dtype, axis=axis, **more)


def _boards(name: str, unit: str, description: str, *, dtype: str = "<f4", **more: Any) -> Dataset:
    axis = ColumnAxis.BOARDS
    return Dataset(name=name, unit=unit, description=description, dtype=dtype, axis=axis, **more)


COLUMNS: Mapping[str, Dataset] = {
    column.name: column
    for column in (
        _timing("seq", "<u8", "Number of the sample in its session.", ""),
        _timing("t_ns", "<i8", "Monotonic clock when the cycle woke up."),
        _timing("wake_ns", "<u4", "How late the cycle woke up."),
        _timing("transfer_ns", "<u4", "Time that the cycle spent in the links."),
        _timing("work_ns", "<u4", "Time that the cycle before this one spent computing."),
        _timing("skipped", "<u2", "Whole periods left out before this cycle, at most 65535.", ""),
        Dataset(
            name="state",
            dtype="|u1",
            description="State of the robot at the end of the cycle.",
            codes=STATES,
        ),
        _joints(
            "joint_position_rad",
            "rad",
            "Measured joint angle, unwrapped, the joint's own once it is homed; NaN while the "
            "board is not calibrated and does not know it.",
            dtype="<f8",
        ),
        _joints("joint_velocity_rad_s", "rad/s", "Measured joint velocity."),
        _joints(
            "joint_torque_nm",
            "N·m",
            "Torque at the joint, from the measured current: sign · K_i · iq · reduction · "
            "efficiency.",
        ),
        _joints("iq_a", "A", "Measured quadrature current of the motor, in its own direction."),
        _joints("input_power_w", "W", "Electrical power into the motor.", is_optional=True),
        _joints(
            "winding_temperature_degc",
            "°C",
            "Temperature of the motor's windings; NaN without a sensor.",
            is_optional=True,
        ),
        _joints(
            "joint_valid",
            "",
            "1 where the measured values of this joint are from a sound and fresh reply, else 0.",
            dtype="|u1",
        ),
        _joints("joint_mode", "", "What the joint was commanded to do.", dtype="|u1", codes=MODES),
        _joints("joint_is_homed", "", "1 where the joint's zero is known, else 0.", dtype="|u1"),
        _joints(
            "reference_position_rad", "rad", "Joint angle that was sent to the board.", dtype="<f8"
        ),
        _joints("reference_velocity_rad_s", "rad/s", "Joint velocity that was sent to the board."),
        _joints(
            "iq_ff_a", "A", "Feed-forward current that was sent, in the motor's own direction."
        ),
        _joints("kp_a_per_rad", "A/rad", "Gain on the position error, at the motor."),
        _joints("kd_a_s_per_rad", "A·s/rad", "Gain on the velocity error, at the motor."),
        _joints(
            "ki_a_per_rad_s",
            "A/(rad·s)",
            "Gain on the integral of the position error, at the motor.",
            is_optional=True,
        ),
        _joints("isat_a", "A", "Current limit that was sent; 0 means the board's own limit."),
        _boards("bus_voltage_v", "V", "Supply voltage of the board.", is_optional=True),
        _boards(
            "board_status",
            "",
            "Status word of the board, with its error code in bits 3 to 0; 0 where the reply is "
            "not valid.",
            dtype="<u2",
            bits=STATUS_BITS,
        ),
        _boards(
            "board_outcome",
            "",
            "How the exchange with the board went; the first three give valid values.",
            dtype="|u1",
            codes=OUTCOMES,
        ),
        _boards(
            "board_timestamp_ms",
            "ms",
            "Clock of the board, wraps at 65536; 0 where the reply is not valid.",
            dtype="<u2",
        ),
        _boards(
            "command_mode", "", "What was enabled on the board.", dtype="|u1", bits=COMMAND_BITS
        ),
    )
}
"""The datasets of the group `samples`: one row per sample."""

_EVENT_TEXTS = {
    "kind": "What happened, for programs.",
    "severity": "`debug` (of no interest to people), `info`, `warning` or `error`.",
    "source": "The joint, board or client concerned; empty for the whole robot.",
    "text": "What happened, for people.",
}
TABLES: Mapping[str, tuple[Dataset, ...]] = {
    "events": (
        Dataset(name="seq", dtype="<u8", description="Sample during whose cycle it happened."),
        Dataset(name="t_ns", dtype="<i8", unit="ns", description="Monotonic clock."),
        *(Dataset(name=name, dtype="str", description=text) for name, text in _EVENT_TEXTS.items()),
    ),
    "gaps": (
        Dataset(name="first_seq", dtype="<u8", description="First sample that is missing."),
        Dataset(name="count", dtype="<u8", description="How many are missing from there on."),
    ),
    "clock": (
        Dataset(name="t_ns", dtype="<i8", unit="ns", description="Monotonic clock."),
        Dataset(name="utc_ns", dtype="<i8", unit="ns", description="The same moment, Unix time."),
    ),
    "invalid_frames": (
        Dataset(name="seq", dtype="<u8", description="Sample that the reply came in."),
        Dataset(name="board", dtype="|u1", description="Number of the board, from 0."),
        Dataset(name="size", dtype="<u2", description="Bytes of a frame of this board."),
        Dataset(
            name="frame",
            dtype="|u1",
            axis=ColumnAxis.BYTES,
            description="The bytes, as received; zeros follow where there were fewer.",
        ),
    ),
}
"""The other groups: tables with a row per entry, a dataset per column."""

TABLE_TEXTS: Mapping[str, str] = {
    "events": "What happened meanwhile.",
    "gaps": "The numbers of the samples that are missing; exactly these have no row in `samples`.",
    "clock": "Pairs of both clocks, to turn `t_ns` into Unix time.",
    "invalid_frames": "Replies whose values were not used because they were damaged, stale or of "
    "another version.",
}

ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute("format", "text", f"`{FORMAT}`."),
    Attribute("version_major", "integer", "Readers refuse a newer one."),
    Attribute("version_minor", "integer", "Readers accept any."),
    Attribute("complete", "integer", "1; written last. Without it, the file was not finished."),
    Attribute("session", "text", "Name of the loop's run, within which `seq` counts."),
    Attribute("recording", "text", "Name of the recording."),
    Attribute("robot", "text", "Name of the robot."),
    Attribute("robot_sha256", "text", "Of the robot file, whose text is the dataset `robot`."),
    Attribute("robot_source", "text", "Where the robot file came from."),
    Attribute("armature_version", "text", "Version of the software that made the samples."),
    Attribute("commit", "text", "Its commit, empty when unknown."),
    Attribute("host", "text", "Name of the computer."),
    Attribute("start_utc", "text", "When the first sample was taken, ISO 8601."),
    Attribute("start_utc_ns", "integer", "The same, Unix time."),
    Attribute("start_t_ns", "integer", "The same on the monotonic clock: the first `t_ns`."),
    Attribute("session_start_utc_ns", "integer", "When the session started, Unix time."),
    Attribute("session_start_t_ns", "integer", "The same on the monotonic clock."),
    Attribute("period_ns", "integer", "Time between two cycles."),
    Attribute(
        "link",
        "text",
        f"Address of the link; of a mock also what its truth is drawn by; `{IMPORT_LINK}` for "
        "foreign data, which no board measured.",
    ),
    Attribute("is_virtual", "integer", "1 when clocks and timings are virtual, else 0."),
    Attribute("fingerprint", "text", "Of the boards' wire formats."),
    Attribute("joint_names", "texts", "In the order of the columns."),
    Attribute("board_names", "texts", "In the order of the columns."),
    Attribute("board_profiles", "texts", "Wire format of each board.", is_per_board=True),
    Attribute("board_devices", "texts", "Device of each board.", is_per_board=True),
    _behaviour(
        "velocity_filter_hz",
        "Corner of each board's first-order low-pass on measured velocities; infinite for none.",
    ),
    _behaviour("current_filter_hz", "Likewise on measured currents."),
    _behaviour(
        "is_reference_advanced",
        "1 where the position reference moves on at the reference velocity between frames, 0 where "
        "it is held.",
    ),
    _behaviour("kp_max_a_per_rad", "The highest gain that the wire carries."),
    _behaviour("kd_max_a_s_per_rad", "Likewise."),
    _behaviour("ki_max_a_per_rad_s", "Likewise; 0 where the board has no such gain."),
    _behaviour(
        "motor_velocity_max_rad_s",
        "The highest reference velocity that the wire carries, at the motor.",
    ),
    _moment(
        "reply_age_max_s",
        "Values of a reply were latched before its exchange began, evenly up to this long.",
    ),
    _moment(
        "wire_s",
        "From the beginning of an exchange until the board has the whole command: bits of a frame "
        "by the SPI clock. 0 on serial lines, where the reply is made after that.",
    ),
    _moment(
        "law_period_s",
        "Time between two ticks of the control law; a command acts at the next one.",
    ),
    _moment(
        "is_truncated",
        "1 where measured values were cut toward zero on the wire, 0 where they were rounded. The "
        "columns hold what the wire said.",
    ),
    _moment("current_lsb_a", "What the wire resolves of measured currents."),
    _moment("motor_velocity_lsb_rad_s", "Of measured velocities, at the motor."),
    _moment("motor_position_lsb_rad", "Of measured positions, at the motor."),
    _moment(
        "torn_step_rad",
        "Where replies may be sent while they are rewritten: what the upper word of a position "
        "counts, at the motor. In single replies that of output 2 is of the reply before, and so "
        "is the whole position of output 1. 0 where that does not happen.",
    ),
)
"""The attributes of the file itself."""
