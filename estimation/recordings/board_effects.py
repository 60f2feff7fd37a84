"""What boards do to the values of their replies, and the corrections that undo it.

Position, velocity and current of one reply are latched together, when the exchange before it ended;
they belong to one moment except for the lag of the board's own filters: the position has none,
velocity and current are low-passed by filters of first order (with corners at 100 Hz and 1 kHz
their lags are 1.59 and 0.16 ms), so that y + τ·dy/dt gives back what went in.

A board that holds its position reference between frames lets the current fall by Kp·ω·T while the
motor turns on. Sampled at the end of each frame it reads Kp·ω·c too little (`held_delay_s`).

The velocity reference, too, is held between frames, by every board: that takes Kd·ω̇·c from the
current, and looks like a rotor inertia K_i·Kd·c too small (laas4's last two: 4 and 7 %).

Which board does what, the recording states; no profile is known here.
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
        command_max: The largest value of some columns that a board can be sent, by column.
    """

    velocity_lag_s: FloatArray
    current_lag_s: FloatArray
    is_reference_held: Flags
    command_max: Mapping[str, FloatArray]


def board_effects(recording: Recording) -> BoardEffects | None:
    """Return what the boards of a recording do; None where no boards measured it."""
    if recording.is_import:
        return None
    joints = recording.robot.driven().joints
    boards = [board_of(recording, joint.drive.board) for joint in joints]
    return BoardEffects(
        velocity_lag_s=np.array([board.velocity_lag_s for board in boards]),
        current_lag_s=np.array([board.current_lag_s for board in boards]),
        is_reference_held=np.array([not board.is_reference_advanced for board in boards]),
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


def held_delay_s(period_s: float, lag_s: float) -> float:
    """Return how late a held reference seems to be: c = T/2 − τ + T/(exp(T/τ) − 1).

    The board's current is a sawtooth about its mean, which falls by gain·rate·T in each frame. What
    a low-pass makes of it, sampled at the end of each frame, lies gain·rate·c below the mean: Kp
    times the motor's velocity, or Kd times its acceleration.

    Args:
        period_s: T, time between two frames.
        lag_s: τ of the board's current filter.
    """
    if lag_s * _LAGS_MAX < period_s:  # the filter has forgotten the frame before
        return 0.5 * period_s - lag_s
    return 0.5 * period_s - lag_s + period_s / math.expm1(period_s / lag_s)
