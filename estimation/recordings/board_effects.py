"""What boards do to the values of their replies, and the corrections that undo it.

Position, velocity and current of one reply are latched together, a moment before its exchange; they
belong to one moment except for the lag of the board's own filters: the position has none, velocity
and current are low-passed by filters of first order (with corners at 100 Hz and 1 kHz their lags
are 1.59 and 0.16 ms), so that y + τ·dy/dt gives back what went in.

A board that holds its position reference between frames lets the current fall by Kp·ω·T while the
motor turns on. Latched shortly before the next command acts it reads Kp·ω·c too little
(`held_delay_s`).

The velocity reference, too, is held between frames, by every board: that takes Kd·ω̇·c from the
current, and looks like a rotor inertia K_i·Kd·c too small (laas4's last two: 4 and 7 %).

Boards may cut values toward zero on the wire: half of what it resolves goes back on
(`untruncated`). Not on positions: what is missing there is 1/8192 of an encoder's count, and of a
wrapped position the recording does not tell the sign.

Which board does what, the recording states; no profile is known here. Recordings of formats 1.0 and
1.1 do not state when replies are made: they are taken to be from the end of the exchange before,
when its command begins to act.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from daq.recording import BoardBehaviour, Recording
from estimation.errors import DatasetError
from estimation.types import Flags, FloatArray

_ROUNDED = 1.001
"""Recorded commands are rounded, by far less than this."""
_LAGS_MAX = 50.0
"""In so many lags a filter forgets everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardEffects:
    """What the boards of a recording do, joint by joint; arrays of shape (joints,).

    Attributes:
        velocity_lag_s: Of measured velocities, first order.
        current_lag_s: Of measured currents, and so of torques.
        is_reference_held: Whether the position reference is held between frames.
        is_reply_fresh: Whether values are of the moment before their exchange, for all joints; else
            of the end of the exchange before.
        reply_age_s: How long before its exchange a reply was made, on average.
        command_delay_s: From the beginning of an exchange until its command acts, on average.
        truncated: What was cut off on average, by column; nothing for what was rounded.
        torn_step_rad: What the upper word of a position counts, at the joint, where a reply may
            have it from the one before; 0 where it never has.
        output: Of its board, that each joint is on.
        boards: What the recording states of each joint's board.
        command_max: The largest value of some columns that a board can be sent, by column.
    """

    velocity_lag_s: FloatArray
    current_lag_s: FloatArray
    is_reference_held: Flags
    is_reply_fresh: bool
    reply_age_s: FloatArray
    command_delay_s: FloatArray
    truncated: Mapping[str, FloatArray]
    torn_step_rad: FloatArray
    output: tuple[int, ...]
    boards: tuple[BoardBehaviour, ...]
    command_max: Mapping[str, FloatArray]


def board_effects(recording: Recording) -> BoardEffects | None:
    """Return what the boards of a recording do; None where no boards measured it."""
    if recording.is_import:
        return None
    robot = recording.robot.driven()
    joints = robot.joints
    boards = [board_of(recording, joint.drive.board) for joint in joints]
    return BoardEffects(
        velocity_lag_s=np.array([board.velocity_lag_s for board in boards]),
        current_lag_s=np.array([board.current_lag_s for board in boards]),
        is_reference_held=np.array([not board.is_reference_advanced for board in boards]),
        is_reply_fresh=all(board.reply_age_max_s is not None for board in boards),
        reply_age_s=np.array([board.reply_age_s for board in boards]),
        command_delay_s=np.array([board.command_delay_s for board in boards]),
        truncated={
            name: np.array(values)
            for name, values in {
                "iq_a": [cut_of(board, board.current_lsb_a) for board in boards],
                "joint_torque_nm": [
                    cut_of(board, abs(robot.nm_per_a(joint)) * board.current_lsb_a)
                    for board, joint in zip(boards, joints, strict=True)
                ],
                "joint_velocity_rad_s": [
                    cut_of(board, board.motor_velocity_lsb_rad_s / joint.gear_reduction)
                    for board, joint in zip(boards, joints, strict=True)
                ],
            }.items()
        },
        torn_step_rad=np.array(
            [
                board.torn_step_rad / joint.gear_reduction
                for board, joint in zip(boards, joints, strict=True)
            ]
        ),
        output=tuple(joint.drive.output for joint in joints),
        boards=tuple(boards),
        command_max={
            name: _ROUNDED * np.array(values)
            for name, values in {
                "kp_a_per_rad": [board.kp_max_a_per_rad for board in boards],
                "kd_a_s_per_rad": [board.kd_max_a_s_per_rad for board in boards],
                "ki_a_per_rad_s": [board.ki_max_a_per_rad_s for board in boards],
                "reference_velocity_rad_s": [
                    board.motor_velocity_max_rad_s / joint.gear_reduction
                    for board, joint in zip(boards, joints, strict=True)
                ],
            }.items()
        },
    )


def cut_of(board: BoardBehaviour, lsb: float) -> float:
    """Return what a board cuts off on average, of values that the wire resolves to `lsb`."""
    return 0.5 * lsb if board.is_truncated else 0.0


def board_of(recording: Recording, name: str) -> BoardBehaviour:
    """Return what a recording says of a board.

    Raises:
        RecordingError: It does not say what the board's firmware does.
        DatasetError: It says nothing of such a board.
    """
    boards = dict(zip(recording.board_names, recording.board_behaviours, strict=True))
    if name not in boards:
        raise DatasetError(
            f"{recording.path}: its robot has a board {name}, but it has only "
            f"{', '.join(boards) or 'none'}: the file is damaged",
            code="no-such-board",
        )
    return boards[name]


def untruncated(values: FloatArray, cut: FloatArray | float) -> FloatArray:
    """Return values as they were, on average, before they were cut toward zero.

    Args:
        values: As the wire said.
        cut: What was cut off on average: half of what the wire resolves. Nothing goes back on a
            zero, which stands for small values of either sign.
    """
    return values + cut * np.sign(values)


def held_delay_s(period_s: float, lag_s: float, early_s: float = 0.0) -> float:
    """Return how late a held reference seems to be: c = T/2 − s − τ + T·exp(s/τ)/(exp(T/τ) − 1).

    The board's current is a sawtooth about its mean, which falls by gain·rate·T in each frame. What
    a low-pass makes of it, latched s before the next command acts, lies gain·rate·c below the mean:
    Kp times the motor's velocity, or Kd times its acceleration. Where s varies evenly over some
    tens of µs, as replies' ages and ticks of the law do, its mean is right to 10 ns.

    Args:
        period_s: T, time between two frames.
        lag_s: τ of the board's current filter.
        early_s: s, from the moment that a reply is of until the command sent with it acts.
    """
    remembered_s = 0.0  # of the frame before, where the filter is slow
    if lag_s * _LAGS_MAX >= period_s:
        remembered_s = period_s * math.exp(early_s / lag_s) / math.expm1(period_s / lag_s)
    return 0.5 * period_s - early_s - lag_s + remembered_s
