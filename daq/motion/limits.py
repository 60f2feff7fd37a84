"""Checks a trajectory's rows against every limit of the robot file, before anything moves.

Cheap enough to be done in the loop, chunk by chunk as rows are uploaded. A row is q of all joints,
dq of all, and torque of all where it carries one. What the arm would collide with is not known
here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from daq.motion.errors import MotionError, MotionLimitError
from daq.motion.planning import hardest_rad_s2, position_range_rad, speed_max_rad_s
from daq.robot.description import DrivenRobot

Rows = NDArray[np.float64]

TORQUE_REVERSAL_S = 0.05
"""A feed-forward torque may go from one extreme to the other in this time, no faster."""
STEP_TOLERANCE = 0.05
"""How far the step between two rows may be from their mean speed, relative to the highest speed."""

_ROUNDING = 1e-9
_KINDS = (("position", "rad"), ("speed", "rad/s"), ("torque", "N·m"))


class RowChecker:
    """Checks rows of one robot; made once, used for every chunk.

    They keep what may be commanded of the limits in the robot file (`daq.motion.planning`). q must
    go on as dq says, within `STEP_TOLERANCE` of the joint's highest speed: else it jumps.
    """

    def __init__(self, robot: DrivenRobot, *, period_s: float = 1e-3) -> None:
        self._joints = robot.joints
        self._period_s = period_s
        limits = [joint.limits for joint in robot.joints]
        self._nm_per_a = [abs(robot.nm_per_a(joint)) for joint in robot.joints]
        torques = [
            min(limit.torque_max_nm, limit.current_max_a * nm_per_a)
            for limit, nm_per_a in zip(limits, self._nm_per_a, strict=True)
        ]
        speeds = [speed_max_rad_s(joint) for joint in robot.joints]
        lows, highs = zip(*map(position_range_rad, robot.joints), strict=True)
        self._high = np.array([*highs, *speeds, *torques])
        self._low = -self._high
        self._low[: len(limits)] = lows
        # Of q less what the mean speed explains, of dq, of torque: between two rows.
        self._step_max = np.array(
            [STEP_TOLERANCE * period_s * speed for speed in speeds]
            + [1.01 * period_s * hardest_rad_s2(joint) for joint in robot.joints]
            + [2.0 * period_s / TORQUE_REVERSAL_S * torque for torque in torques]
        )

    def check(
        self, rows: Rows, *, first_row: int = 0, previous_row: Sequence[float] | None = None
    ) -> None:
        """Check consecutive rows.

        Args:
            rows: Shape (rows, 2 or 3 times joints).
            first_row: Number of the first of them, for messages.
            previous_row: The row before it, unless it is the very first.

        Raises:
            MotionError: The shape is wrong.
            MotionLimitError: A limit is exceeded; names the first row that does, and the joint.
        """
        joints = len(self._joints)
        if rows.ndim != 2 or rows.shape[1] not in (2 * joints, 3 * joints):
            shape = " × ".join(map(str, rows.shape))
            raise MotionError(
                f"rows of shape {shape}, expected {2 * joints} or {3 * joints} columns for"
                f" {joints} joints",
                code="wrong-shape",
            )
        columns = rows.shape[1]
        # Comparisons with NaN are false: NaN counts as outside, too.
        is_inside = rows >= self._low[:columns] - _ROUNDING
        is_inside &= rows <= self._high[:columns] + _ROUNDING
        steps = rows
        if previous_row is not None:
            steps = np.concatenate((np.array([previous_row[:columns]]), rows))
        changes = steps[1:] - steps[:-1]
        speeds = steps[:, joints : 2 * joints]
        changes[:, :joints] -= (0.5 * self._period_s) * (speeds[1:] + speeds[:-1])
        is_smooth = np.abs(changes) <= self._step_max[:columns]
        if is_inside.all() and is_smooth.all():
            return
        skipped = 0 if previous_row is not None else 1
        outside = _first_false(is_inside)
        jump = _first_false(is_smooth)
        if outside and not (jump and jump[0] + skipped < outside[0]):
            raise self._outside(rows, *outside, first_row)
        if jump:
            row, column = jump
            raise self._jump(float(changes[jump]), column, first_row + row + skipped)

    def _outside(self, rows: Rows, row: int, column: int, first_row: int) -> MotionLimitError:
        kind, number = divmod(column, len(self._joints))
        joint, value = self._joints[number], float(rows[row, column])
        low, high = float(self._low[column]), float(self._high[column])
        limit = low if value < low else high
        what, unit = _KINDS[kind]
        message = f"{value:.6g} {unit} {self._at(first_row + row)}"
        if not np.isfinite(value):
            message += ", which is not a finite number"
        elif kind == 2 and high < joint.limits.torque_max_nm:
            needed_a, current_a = abs(value) / self._nm_per_a[number], joint.limits.current_max_a
            message += f" needs {needed_a:.4g} A, limit {current_a:.4g} A ({high:.4g} N·m)"
        else:
            message += f", limit {limit:.6g} {unit}"
        if kind < 2 and low <= np.deg2rad(value) <= high:
            message += "; is it in degrees?"
        return MotionLimitError(
            joint.name,
            message,
            value=value,
            limit=limit,
            row=first_row + row,
            code=f"{what}-limit",
        )

    def _jump(self, change: float, column: int, row: int) -> MotionLimitError:
        kind, number = divmod(column, len(self._joints))
        name, limit = self._joints[number].name, float(self._step_max[column])
        what, unit = _KINDS[kind]
        message = f"its {what} jumps by {change:.4g} {unit} {self._at(row)}"
        message += ", beyond what its speed explains" if kind == 0 else ""
        message += f", limit {limit:.4g} {unit}" + (" per row" if kind else "")
        return MotionLimitError(
            name, message, value=change, limit=limit, row=row, code=f"{what}-jump"
        )

    def _at(self, row: int) -> str:
        return f"at row {row} (t = {row * self._period_s:.3f} s)"


def _first_false(flags: NDArray[np.bool_]) -> tuple[int, int] | None:
    if flags.all():
        return None
    row, column = np.unravel_index(int(flags.argmin()), flags.shape)
    return int(row), int(column)
