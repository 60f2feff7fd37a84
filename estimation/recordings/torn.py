"""Positions whose two words are of two moments: off by a known step for one reply. Pure.

A board that rewrites its reply while it sends it gives the upper half of a position from before and
the lower half from after. Where the upper half has changed in between, the position is off by what
that half counts. The board itself goes by the right one.
"""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from estimation.types import FloatArray

_AROUND = 9
"""Replies, the middle one of which is judged by their median: up to four of them may be torn."""


def mended(
    position_rad: FloatArray, velocity_rad_s: FloatArray, t_s: FloatArray, step_rad: float
) -> FloatArray:
    """Return positions without the steps that single replies are off by.

    What the velocities explain is left out first, so that only a change of more than half a step
    within a few replies could be mistaken for one.

    Args:
        position_rad: Shape (n,); what is not a number stays so.
        velocity_rad_s: Measured, the same shape.
        t_s: When, the same shape.
        step_rad: How much a torn position is off.
    """
    known = np.flatnonzero(np.isfinite(position_rad) & np.isfinite(velocity_rad_s))
    if not step_rad or len(known) < _AROUND:
        return position_rad
    speed_rad_s = velocity_rad_s[known]
    way_rad = 0.5 * (speed_rad_s[1:] + speed_rad_s[:-1]) * np.diff(t_s[known])
    rest_rad = position_rad[known] - np.concatenate([[0.0], np.cumsum(way_rad)])
    steps = np.round((rest_rad - scipy.ndimage.median_filter(rest_rad, _AROUND)) / step_rad)
    result = position_rad.copy()
    result[known] -= step_rad * steps
    return result
