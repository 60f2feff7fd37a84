"""Whether imported numbers can be what they are said to be: names, units, sides.

A unit that is wrong beyond doubt is an error, whatever else looks odd a sentence.
"""

from __future__ import annotations

import math
import re

import numpy as np

from daq.robot import Robot
from estimation.errors import DatasetError
from estimation.importing.mapping import Taken
from estimation.recordings.spikes import find_outliers
from estimation.types import Flags, FloatArray

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
_CURRENT = re.compile(r"curr|ampere|(?<![a-z])(i|i_?qs?|cur|amps?)(?![a-z])", re.IGNORECASE)


def check_names(torques: Taken, mapped: str) -> list[str]:
    """Say so if columns that `--map tau_nm` takes are called currents, and nobody stated a unit."""
    if torques.has_stated_unit or not any(_CURRENT.search(name) for name in torques.names):
        return []
    return [
        f"tau_nm ({torques.source}) is called a current: is it in N·m? else --map 'iq_a={mapped}' "
        "and torque_constant_nm_per_a in the robot file, or --unit tau_nm=FACTOR, in N·m per ampere"
    ]


def check_velocity(q_rad: FloatArray, dq_rad_s: FloatArray, t_s: FloatArray) -> list[str]:
    """Whether velocities are the slopes of positions.

    Args:
        q_rad: Shape (n, joints); what has no number near it is not looked at, nor are gaps.
        dq_rad_s: Likewise.
        t_s: When, shape (n,), evenly spaced but for gaps.

    Returns:
        Sentences about what is odd.

    Raises:
        DatasetError: They are in different units.
    """
    steps_s = np.diff(t_s)[:, np.newaxis]
    period_s = float(steps_s.min())
    rows = max(1, round(_WINDOW_S / period_s))
    if len(q_rad) <= 2 * rows:
        return []
    notes = []
    moved = q_rad[rows:] - q_rad[:-rows]
    # Trapezoids from row i to row i + rows.
    ways = 0.5 * (dq_rad_s[1:] + dq_rad_s[:-1]) * steps_s
    ways[(steps_s > 1.5 * period_s)[:, 0]] = np.nan
    is_known = np.isfinite(ways)
    said, known_steps = (
        _sums_of(some, rows) for some in (np.where(is_known, ways, 0.0), is_known.astype(float))
    )
    said = np.where(known_steps == rows, said, np.nan)
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
                    f"velocities say: {hint}",
                    code="velocity-unit",
                )
        notes.append(
            f"joint {joint + 1}: the positions move {factor:.3g} times as fast as the velocities "
            "say: positions are believed where it matters"
        )
    return notes


def check_ranges(robot: Robot, q_rad: FloatArray, tau_nm: FloatArray, t_s: FloatArray) -> list[str]:
    """Say where positions and torques, (n, joints), are beyond what the robot file says."""
    notes = []
    alone, alone_nm = find_outliers(q_rad), find_outliers(tau_nm)
    for number, joint in enumerate(robot.joints):
        limits = joint.limits
        q, tau = (values[np.isfinite(values)] for values in (q_rad[:, number], tau_nm[:, number]))
        if not len(q):
            notes.append(f"joint {joint.name}: has no position at all")
            continue
        notes += _outliers(f"joint {joint.name}", "position", q_rad[:, number], alone[:, number])
        notes += _outliers(f"joint {joint.name}", "torque", tau_nm[:, number], alone_nm[:, number])
        smooth = np.where(alone[:, number], np.nan, q_rad[:, number])
        notes += _jumps(f"joint {joint.name}", smooth, t_s)
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


def _outliers(joint: str, what: str, values: FloatArray, is_alone: Flags) -> list[str]:
    rows = np.flatnonzero(is_alone)
    if not rows.size:
        return []
    unit = {"position": "rad", "torque": "N·m"}[what]
    first = int(rows[0])
    before, here, after = (f"{values[row]:.3g}" for row in (first - 1, first, first + 1))
    many = f"{len(rows)} outliers, the first" if len(rows) > 1 else "an outlier"
    return [
        f"{joint}: its {what} has {many} in row {first}, {here} {unit} between {before} and "
        f"{after}: single values that stand far off do not count"
    ]


def _jumps(joint: str, q_rad: FloatArray, t_s: FloatArray) -> list[str]:
    """Whether positions move faster than joints do, by the time that has really passed."""
    speeds_rad_s = np.abs(np.diff(q_rad)) / np.diff(t_s)
    if not np.isfinite(speeds_rad_s).any() or np.nanmax(speeds_rad_s) <= _SPEED_MAX_RAD_S:
        return []
    row = int(np.nanargmax(speeds_rad_s))
    step = abs(float(q_rad[row + 1] - q_rad[row]))
    return [
        f"{joint}: its position jumps by {step:.3g} rad at row {row}; degrees? --unit q_rad=deg; "
        "motor side? --side motor"
    ]


def _sums_of(values: FloatArray, rows: int) -> FloatArray:
    """Return the sum of every so many consecutive rows."""
    sums = np.cumsum(np.vstack([np.zeros_like(values[:1]), values]), axis=0)
    result: FloatArray = sums[rows:] - sums[:-rows]
    return result
