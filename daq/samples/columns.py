"""Decodes raw samples into columns of SI values at the joint, many samples at once.

Everything follows from the tables of `firmware_protocol` and the robot file: nothing here knows a
profile. The columns are those of a recording (`daq.recording.layout`), under the same names; what
no board of the robot sends is left out. Measured values of a reply that is not valid are NaN, or 0
where the column holds integers; likewise commands of a cycle in which a board was not talked to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daq.recording import BoardBehaviour
from daq.recording.info import RecordingInfo
from daq.recording.states import Outcome
from daq.robot import DrivenJoint, DrivenRobot, parse_robot
from daq.samples.batches import BatchError, BoardInfo, Session, framing_of
from daq.samples.frame_arrays import Array, FrameArrays, si_values
from daq.samples.sample import SampleLayout
from firmware_protocol.fields import Field, Framing
from firmware_protocol.profile import Profile
from firmware_protocol.profiles import STATUS_BITS, profile_named

_READY_BITS = {output: STATUS_BITS[f"M{output}R"] for output in (1, 2)}
VALID_OUTCOMES = (Outcome.OK, Outcome.LATE, Outcome.COMMAND_LOST)
"""The outcomes whose values are the board's, and new."""
_WITHOUT_BYTES = (Outcome.SILENT, Outcome.NO_EXCHANGE)
_GRID_STEPS_PER_LSB = 8
_LOWER_WORD = 1 << 16
"""Positions are sent in two words: what the upper one counts, in counts of the lower one."""


def _speed(robot: DrivenRobot, joint: DrivenJoint) -> float:
    return 1.0 / joint.motor_per_joint


def _as_it_is(robot: DrivenRobot, joint: DrivenJoint) -> float:
    return 1.0


# Column: field of the frame, factor from motor side.
_Table = dict[str, tuple[str, Callable[[DrivenRobot, DrivenJoint], float]]]
_MEASURED: _Table = {
    "joint_position_rad": ("motor_position_rad", _speed),
    "joint_velocity_rad_s": ("motor_velocity_rad_s", _speed),
    "joint_torque_nm": ("iq_a", DrivenRobot.nm_per_a),
    "iq_a": ("iq_a", _as_it_is),
    "input_power_w": ("input_power_w", _as_it_is),
    "winding_temperature_degc": ("winding_temperature_degc", _as_it_is),
}
_COMMANDED: _Table = {
    "reference_position_rad": ("motor_position_rad", _speed),
    "reference_velocity_rad_s": ("motor_velocity_rad_s", _speed),
    "iq_ff_a": ("iq_ff_a", _as_it_is),
    "kp_a_per_rad": ("kp_a_per_rad", _as_it_is),
    "kd_a_s_per_rad": ("kd_a_s_per_rad", _as_it_is),
    "ki_a_per_rad_s": ("ki_a_per_rad_s", _as_it_is),
    "isat_a": ("isat_a", _as_it_is),
}
_POSITION, _REFERENCE, _BUS_VOLTAGE = (
    "joint_position_rad",
    "reference_position_rad",
    "bus_voltage_v",
)
_TIMING = ("seq", "t_ns", "wake_ns", "transfer_ns", "work_ns", "skipped", "state")


class InvalidFrames(NamedTuple):
    """Replies whose values are not used, one row each, by sample number.

    Attributes:
        seq: Its sample.
        board: Number of its board.
        size: Bytes of that board's frames.
        frame: The bytes, filled with zeros behind `size`.
    """

    seq: Array
    board: Array
    size: Array
    frame: Array


class _Board:
    def __init__(self, number: int, info: BoardInfo) -> None:
        profile, framing = profile_named(info.profile), framing_of(info)
        self.number = number
        self.command = FrameArrays(profile.command, framing, f"command_{number}")
        self.reply = FrameArrays(profile.reply, framing, f"reply_{number}")
        self.wrap_rad = 2.0 * profile.behaviour.position_wrap_turns * math.tau


class _Source(NamedTuple):
    """Where a joint's part of a column comes from."""

    column: str
    joint: int
    board: int
    field: Field
    place: int
    factor: float


class ColumnDecoder:
    """Decodes the samples of a session.

    Attributes:
        robot: The robot that its text describes.
        layout: Where things are in a sample.
        grids: For each column of floats, per joint or board, a power of two that is at most an
            eighth of what the wire resolves. Rounding to it changes nothing that can be measured,
            and leaves bytes that compress.

    Raises:
        ConfigError: The session's robot file has mistakes.
        UnknownNameError: A board's profile is unknown.
        BatchError: A board's framing is unknown, or the robot has a board that the session has not.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.robot = parse_robot(session.robot_text, session.robot_source).driven()
        self._boards = [_Board(*pair) for pair in enumerate(session.boards)]
        self.layout = SampleLayout(
            len(self.robot.joints), [board.reply.size for board in self._boards]
        )
        self._board_of = [_board_of(joint, session) for joint in self.robot.joints]
        self._ready_bits = np.array(
            [_READY_BITS[joint.drive.output] for joint in self.robot.joints], np.uint16
        )
        self._measured = self._sources(_MEASURED, [board.reply for board in self._boards])
        self._commanded = self._sources(_COMMANDED, [board.command for board in self._boards])
        self._bus_voltages = {
            board.number: board.reply.fields[_BUS_VOLTAGE]
            for board in self._boards
            if _BUS_VOLTAGE in board.reply.fields
        }
        self.grids = self._grids()

    def decode(self, samples: Array) -> dict[str, Array]:
        """Return the columns of some samples.

        The reference position is the one nearest to the measured one among those that the wire
        cannot tell apart. Where a reply is not valid, the measured position before it (at the very
        beginning: after it) decides.

        Args:
            samples: Array of `layout.dtype`, shape (n,).

        Returns:
            By name: arrays of shape (n,), (n, joints) or (n, boards).
        """
        count, boards = len(samples), self._boards
        outcome = _empty(count, len(boards), np.uint8)
        for number in range(len(boards)):
            outcome[:, number] = samples[f"outcome_{number}"]
        is_valid = np.isin(outcome, VALID_OUTCOMES)
        is_sent = outcome != Outcome.NO_EXCHANGE
        replies = [board.reply.view(samples) for board in boards]
        commands = [board.command.view(samples) for board in boards]

        columns = {name: samples[name] for name in (*_TIMING, "joint_mode", "joint_is_homed")}
        columns["joint_valid"] = is_valid[:, self._board_of].astype(np.uint8)
        columns["board_outcome"] = outcome
        for name, frames, field, is_known in (
            ("board_status", replies, "status", is_valid),
            ("board_timestamp_ms", replies, "timestamp_ms", is_valid),
            ("command_mode", commands, "mode", is_sent),
        ):
            columns[name] = np.hstack([frame[field] for frame in frames]) * is_known
        self._fill(columns, self._measured, replies, is_valid)
        self._fill(columns, self._commanded, commands, is_sent)
        self._to_joint_angles(columns, samples["motor_offset_rad"])
        # Before calibration has ended a board reports zero, wherever the motor is.
        is_ready = (columns["board_status"][:, self._board_of] & self._ready_bits).astype(bool)
        columns[_POSITION][~is_ready] = math.nan
        if self._bus_voltages:
            voltages = columns[_BUS_VOLTAGE] = _empty(count, len(boards), np.float64, math.nan)
            for number, source in self._bus_voltages.items():
                voltages[:, number] = si_values(replies[number][_BUS_VOLTAGE][:, 0], source)
            voltages[~is_valid] = math.nan
        return columns

    def invalid_frames(self, samples: Array) -> InvalidFrames:
        """Return the replies of some samples that are not valid, as far as there were any bytes."""
        width = max(board.reply.size for board in self._boards)
        parts: list[tuple[Array, ...]] = []
        for board in self._boards:
            outcome = samples[f"outcome_{board.number}"]
            chosen = samples[~np.isin(outcome, VALID_OUTCOMES + _WITHOUT_BYTES)]
            frame = np.zeros((len(chosen), width), np.uint8)
            frame[:, : board.reply.size] = chosen[f"reply_{board.number}"]
            number, size = np.full((2, len(chosen)), [[board.number], [board.reply.size]])
            parts.append((chosen["seq"], number, size, frame))
        seq, number, size, frame = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(seq, kind="stable")
        return InvalidFrames(seq[order], number[order], size[order], frame[order])

    def recording_info(self, name: str) -> RecordingInfo:
        """Return what a recording of this session says about itself."""
        session = self.session
        return RecordingInfo(
            session=session.session,
            recording=name,
            robot=self.robot.name,
            robot_text=session.robot_text,
            robot_source=session.robot_source,
            joint_names=tuple(joint.name for joint in self.robot.joints),
            board_names=tuple(board.name for board in session.boards),
            board_profiles=tuple(board.profile for board in session.boards),
            board_devices=tuple(board.device for board in session.boards),
            board_behaviours=tuple(
                behaviour_of(profile_named(board.profile), wire_s=self._wire_s(board))
                for board in session.boards
            ),
            fingerprint=session.fingerprint,
            link=session.link,
            is_virtual=session.is_virtual,
            period_ns=session.period_ns,
            session_start_utc_ns=session.start_utc_ns,
            session_start_t_ns=session.start_t_ns,
            host=session.host,
            armature_version=session.armature_version,
            commit=session.commit,
            frame_size=max(self.layout.frame_sizes),
            grids=self.grids,
        )

    # --- inside -----------------------------------------------------------------------------------

    def _wire_s(self, board: BoardInfo) -> float:
        """As the session says, or by the robot file's clock."""
        if board.wire_s is not None:
            return board.wire_s
        if framing_of(board) is not Framing.SPI:
            return 0.0
        port = next(port for port in self.robot.boards if port.name == board.name)
        return 8.0 * profile_named(board.profile).frame_size / port.spi.speed_hz

    def _sources(self, table: _Table, frames: list[FrameArrays]) -> list[_Source]:
        sources = []
        for column, (name, factor) in table.items():
            for number, joint in enumerate(self.robot.joints):
                board = self._board_of[number]
                field = frames[board].fields.get(name)
                if field is not None:
                    output = joint.drive.output
                    place = 2 - output if field.is_motor_2_first else output - 1
                    value = factor(self.robot, joint)
                    sources.append(_Source(column, number, board, field, place, value))
        return sources

    def _fill(
        self,
        columns: dict[str, Array],
        sources: list[_Source],
        frames: list[Array],
        is_known: Array,
    ) -> None:
        gaps = [None if known.all() else ~known for known in is_known.T]
        for source in sources:
            if source.column not in columns:
                columns[source.column] = _empty(
                    len(is_known), len(self._board_of), np.float64, math.nan
                )
            raw = frames[source.board][source.field.name][:, source.place]
            part = columns[source.column][:, source.joint]
            np.multiply(si_values(raw, source.field), source.factor, out=part)
            gap = gaps[source.board]
            if gap is not None:
                part[gap] = math.nan

    def _to_joint_angles(self, columns: dict[str, Array], motor_offset_rad: Array) -> None:
        """Add the motors' offsets, and take references to the motor's turn."""
        position, reference = columns[_POSITION], columns[_REFERENCE]
        for number, joint in enumerate(self.robot.joints):
            factor = _speed(self.robot, joint)
            wrap = self._boards[self._board_of[number]].wrap_rad * factor
            turns = np.rint((_filled(position[:, number]) - reference[:, number]) / wrap)
            offset = motor_offset_rad[:, number] * factor
            reference[:, number] += turns * wrap + offset
            position[:, number] += offset

    def _grids(self) -> dict[str, tuple[float, ...]]:
        grids: dict[str, list[float]] = {}
        for source in self._measured + self._commanded:
            # What a joint does not have is NaN, which any grid leaves alone.
            of_joints = grids.setdefault(source.column, [1.0] * len(self._board_of))
            of_joints[source.joint] = _grid(source.field.lsb * abs(source.factor))
        if self._bus_voltages:
            grids[_BUS_VOLTAGE] = [1.0] * len(self._boards)
            for number, field in self._bus_voltages.items():
                grids[_BUS_VOLTAGE][number] = _grid(field.lsb)
        return {column: tuple(values) for column, values in grids.items()}


def _board_of(joint: DrivenJoint, session: Session) -> int:
    for number, board in enumerate(session.boards):
        if board.name == joint.drive.board:
            return number
    problem = f"joint {joint.name}: its board {joint.drive.board} is not one of the session's"
    raise BatchError(problem, code="no-such-board")


def behaviour_of(profile: Profile, *, wire_s: float) -> BoardBehaviour:
    """Return what a recording states of a board of this profile.

    Args:
        profile: Of the board.
        wire_s: How long its command takes to arrive after its reply was made.
    """
    behaviour = profile.behaviour
    lsb = {field.name: field.lsb for field in profile.reply.fields}
    highest = {field.name: field.raw_maximum * field.lsb for field in profile.command.fields}
    return BoardBehaviour(
        velocity_filter_hz=behaviour.velocity_filter_hz,
        current_filter_hz=behaviour.current_filter_hz,
        is_reference_advanced=behaviour.is_reference_advanced,
        kp_max_a_per_rad=highest["kp_a_per_rad"],
        kd_max_a_s_per_rad=highest["kd_a_s_per_rad"],
        ki_max_a_per_rad_s=highest.get("ki_a_per_rad_s", 0.0),
        motor_velocity_max_rad_s=highest["motor_velocity_rad_s"],
        reply_age_max_s=behaviour.reply_age_max_s,
        wire_s=wire_s,
        law_period_s=behaviour.law_period_s,
        is_truncated=behaviour.is_truncated,
        current_lsb_a=lsb["iq_a"],
        motor_velocity_lsb_rad_s=lsb["motor_velocity_rad_s"],
        motor_position_lsb_rad=lsb["motor_position_rad"],
        torn_step_rad=_LOWER_WORD * lsb["motor_position_rad"] if behaviour.torn_share else 0.0,
    )


def _empty(rows: int, width: int, dtype: Any, value: float = 0) -> Array:
    """Make a column whose joints lie one after the other in memory, as they are filled."""
    return np.full((width, rows), value, dtype).T


def _filled(values: Array) -> Array:
    """Replace NaN by the value before it; at the beginning by the one after it, or zero."""
    is_known = ~np.isnan(values)
    if is_known.all():
        return values
    known = np.flatnonzero(is_known)
    if not len(known):
        return np.zeros_like(values)
    last = np.maximum(np.cumsum(is_known) - 1, 0)
    filled: Array = values[known[last]]
    return filled


def _grid(lsb: float) -> float:
    """Return the largest power of two that is at most an eighth of it."""
    _, exponent = math.frexp(lsb / _GRID_STEPS_PER_LSB)
    return math.ldexp(0.5, exponent)
