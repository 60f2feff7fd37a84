"""What a board's position reference does between two replies, and their currents do not show. Pure.

Between two frames a board holds its reference, or moves it on at the speed it was told; with the
next command it jumps, the more so if that comes late. The current follows, times Kp, but it is seen
only once per frame: low-passed, a moment before the next command acts. The recording tells which
reference acted when, so that the difference between what the current was on average and what the
replies say can be computed:

    Kp·(mean of r between two replies − mean of low-passed r at both), r(t) = θref(t) − ω·t.

Of regular frames and a held reference that is Kp·ω·c (`estimation.recordings.board_effects`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from daq.recording import BoardBehaviour
from estimation.types import FloatArray, Rows

LEAD_ROWS = 30
"""Frames before the first reply that its low-passed current may still show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What a board was sent, row by row, shape (n,) each; at the motor.

    Attributes:
        sent_s: When.
        reference_rad: Position; NaN where nothing was sent.
        reference_rad_s: Velocity.
    """

    sent_s: FloatArray
    reference_rad: FloatArray
    reference_rad_s: FloatArray


def unseen_error_rad(
    commands: Commands, behaviour: BoardBehaviour, speed_rad_s: float, rows: Rows
) -> FloatArray:
    """Return how much larger the position error was between two replies than they show.

    Args:
        commands: All that were sent from some frames before the first reply on.
        behaviour: Of the board; it states how old replies are.
        speed_rad_s: Of the motor, on average.
        rows: The replies that count, rising.

    Returns:
        Between each two of them, shape (len(rows) - 1,).
    """
    known = np.isfinite(commands.reference_rad) & np.isfinite(commands.reference_rad_s)
    acts_s = commands.sent_s[known] + behaviour.command_delay_s
    if not len(acts_s):
        return np.zeros(len(rows) - 1)
    slope_rad_s = -np.full(len(acts_s), speed_rad_s)
    if behaviour.is_reference_advanced:
        slope_rad_s += commands.reference_rad_s[known]
    # In a frame that moves with the motor; from one command's beginning to the next one's.
    start_rad = commands.reference_rad[known] - speed_rad_s * (acts_s - acts_s[0])
    lasts_s = np.diff(acts_s)
    end_rad = start_rad[:-1] + slope_rad_s[:-1] * lasts_s
    passed = np.concatenate([[0.0], np.cumsum(0.5 * (start_rad[:-1] + end_rad) * lasts_s)])
    lag_s = max(behaviour.current_lag_s, np.finfo(np.float64).tiny)
    # y + τ·dy/dt = r has the solution r − slope·τ and a difference to it that fades away.
    differences = _fading(start_rad, end_rad, slope_rad_s * lag_s, np.exp(-lasts_s / lag_s))

    latched_s = commands.sent_s[rows] - behaviour.reply_age_s
    number = np.clip(np.searchsorted(acts_s, latched_s, side="right") - 1, 0, None)
    since_s = latched_s - acts_s[number]
    now_rad = start_rad[number] + slope_rad_s[number] * since_s
    integral = passed[number] + 0.5 * (start_rad[number] + now_rad) * since_s
    filtered_rad = now_rad - slope_rad_s[number] * lag_s
    filtered_rad += differences[number] * np.exp(-np.maximum(since_s, 0.0) / lag_s)
    mean_rad = np.diff(integral) / np.diff(latched_s)
    result: FloatArray = mean_rad - 0.5 * (filtered_rad[1:] + filtered_rad[:-1])
    return result


def _fading(
    start_rad: FloatArray, end_rad: FloatArray, lags_rad: FloatArray, left: FloatArray
) -> FloatArray:
    """Return by how much the low-passed error differs from r − slope·τ where each command begins.

    Args:
        start_rad: r where each command begins, shape (n,).
        end_rad: And ends, all but the last, shape (n - 1,).
        lags_rad: slope·τ, shape (n,).
        left: Which share of a difference each command leaves, shape (n - 1,).
    """
    # It goes on smoothly where r jumps and its slope changes.
    jumps = (end_rad - lags_rad[:-1]) - (start_rad[1:] - lags_rad[1:])
    difference, differences = 0.0, [0.0]
    for share, jump in zip(left.tolist(), jumps.tolist(), strict=True):
        difference = difference * share + jump
        differences.append(difference)
    return np.array(differences)
