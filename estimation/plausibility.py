"""Whether imported numbers can be what they are said to be: units, sides, wraps.

A unit that is wrong beyond doubt is an error, whatever else looks odd a sentence.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daq.robot import Robot
from estimation.errors import DatasetError

FloatArray = NDArray[np.float64]

_TOLERANCE = 0.05
_WINDOW_S = 0.05
_STILL_RAD = 1e-3
_DEGREES = 180.0 / math.pi
_HINTS = {
    _DEGREES: "is q_rad in degrees? --unit q_rad=deg",
    1.0 / _DEGREES: "is dq_rad_s in degrees per second? --unit dq_rad_s=deg/s",
    2.0 * math.pi / 60.0: "is dq_rad_s in rpm? --unit dq_rad_s=rpm",
    2.0 * math.pi: "is dq_rad_s in turns per second? --unit dq_rad_s=rev/s",
    -1.0: "one of them has the opposite sign",
}
"""By what dq must be multiplied to be the slope of q, and what that means."""
_SPEED_MAX_RAD_S = 100.0
_OUTSIDE_SHARE = 0.2


def check_velocity(q_rad: FloatArray, dq_rad_s: FloatArray, rate_hz: float) -> list[str]:
    """Whether velocities are the slopes of positions.

    Args:
        q_rad: Shape (n, joints); rows without a number are not looked at.
        dq_rad_s: Likewise.
        rate_hz: Samples per second.

    Returns:
        Sentences about what is odd.

    Raises:
        DatasetError: They are in different units.
    """
    rows = max(1, round(_WINDOW_S * rate_hz))
    if len(q_rad) <= 2 * rows:
        return []
    notes = []
    moved = q_rad[rows:] - q_rad[:-rows]
    sums = np.cumsum(np.vstack([np.zeros_like(dq_rad_s[:1]), dq_rad_s]), axis=0)
    # Trapezoids from row i to row i + rows.
    said = (
        sums[rows:-1] - sums[: -rows - 1] + 0.5 * (dq_rad_s[rows:] - dq_rad_s[:-rows])
    ) / rate_hz
    for joint in range(q_rad.shape[1]):
        known = np.isfinite(moved[:, joint]) & np.isfinite(said[:, joint])
        way, explained = moved[known, joint], said[known, joint]
        if not len(way) or np.abs(way).max() < _STILL_RAD or not (explained @ explained) > 0.0:
            continue
        factor = float(way @ explained) / float(explained @ explained)
        likeness = abs(float(way @ explained)) / float(
            np.linalg.norm(way) * np.linalg.norm(explained)
        )
        if abs(factor - 1.0) <= _TOLERANCE:
            continue
        for ratio, hint in _HINTS.items():
            if abs(factor / ratio - 1.0) <= _TOLERANCE and likeness > 0.9:
                raise DatasetError(
                    f"joint {joint + 1}: the positions move {factor:.4g} times as fast as the "
                    f"velocities say: {hint}"
                )
        notes.append(
            f"joint {joint + 1}: the positions move {factor:.3g} times as fast as the velocities "
            "say: positions are believed where it matters"
        )
    return notes


def check_ranges(robot: Robot, q_rad: FloatArray, tau_nm: FloatArray, rate_hz: float) -> list[str]:
    """Whether positions and torques are within what the robot file says.

    Args:
        robot: Its limits.
        q_rad: Shape (n, joints).
        tau_nm: Likewise.
        rate_hz: Samples per second.

    Returns:
        Sentences about what is odd.
    """
    notes = []
    for number, joint in enumerate(robot.joints):
        limits = joint.limits
        q, tau = (values[np.isfinite(values)] for values in (q_rad[:, number], tau_nm[:, number]))
        if not len(q):
            notes.append(f"joint {joint.name}: has no position at all")
            continue
        jumps = np.abs(np.diff(q_rad[:, number])) * rate_hz
        fastest = float(np.nanmax(jumps)) if np.isfinite(jumps).any() else 0.0
        if fastest > _SPEED_MAX_RAD_S:
            row = int(np.nanargmax(jumps))
            step = abs(float(q_rad[row + 1, number] - q_rad[row, number]))
            wrapped = ", a turn: unwrap it" if abs(step / (2.0 * math.pi) - 1.0) < 0.05 else ""
            notes.append(
                f"joint {joint.name}: its position jumps by {step:.3g} rad at row {row}{wrapped}"
                + ("" if wrapped else "; degrees? --unit q_rad=deg; motor side? --side motor")
            )
        outside = np.mean((q < limits.position_min_rad) | (q > limits.position_max_rad))
        if outside > _OUTSIDE_SHARE:
            notes.append(
                f"joint {joint.name}: {100 * outside:.0f} % of its positions "
                f"({q.min():.3g} to {q.max():.3g} rad) are beyond its limits "
                f"({limits.position_min_rad:.3g} to {limits.position_max_rad:.3g} rad); degrees? "
                "--unit q_rad=deg; motor side? --side motor; another zero? joint_offset_rad"
            )
        if len(tau) and np.mean(np.abs(tau) > limits.torque_max_nm) > _OUTSIDE_SHARE:
            notes.append(
                f"joint {joint.name}: its torque, up to {np.abs(tau).max():.3g} N·m, is beyond its "
                f"limit of {limits.torque_max_nm:.3g} N·m; is it in another unit? --unit tau_nm=…"
            )
        if len(tau) and not np.ptp(tau) > 0.0:
            notes.append(f"joint {joint.name}: its torque is {tau[0]:.3g} N·m throughout")
    return notes
