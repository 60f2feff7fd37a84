"""Positions of replies that were sent while they were rewritten: two moments in one reply. Pure.

The first words of such a reply are of the one before. So is the whole position of output 1; of the
position of output 2, which goes across, the upper half. Where that has changed in between, it is
off by what the upper half counts. The board itself goes by the right ones.
"""

from __future__ import annotations

import numpy as np
import scipy.ndimage

from estimation.types import FloatArray

_SECOND_OUTPUT = 2
_AROUND = 31
"""Replies, the middle one of which is judged by their median: nearly half of them may be torn."""
_ROUNDS = 3
_LATE_STEPS = 0.25
"""An older position of output 1 is told from a new one where it is off by this much of a step."""


def mended(
    position_rad: FloatArray,
    velocity_rad_s: FloatArray,
    t_s: FloatArray,
    *,
    step_rad: float,
    output: int,
    lag_s: float,
) -> FloatArray:
    """Return positions as they would be if each reply were of one moment.

    What the velocities explain is left out first, so that only a jump within a few replies could be
    mistaken for a torn one.

    Args:
        position_rad: Shape (n,); what is not a number stays so.
        velocity_rad_s: Measured, the same shape.
        t_s: When, the same shape, rising.
        step_rad: What the upper half of a position counts; 0 where replies are never torn.
        output: Of the board, 1 or 2.
        lag_s: Of the velocities.
    """
    known = np.flatnonzero(np.isfinite(position_rad) & np.isfinite(velocity_rad_s))
    if not step_rad or len(known) < _AROUND:
        return position_rad
    speed_rad_s = velocity_rad_s[known]
    way_rad = np.concatenate(
        [[0.0], 0.5 * (speed_rad_s[1:] + speed_rad_s[:-1]) * np.diff(t_s[known])]
    )
    rest_rad = position_rad[known] - np.cumsum(way_rad) - lag_s * speed_rad_s
    off_rad = np.zeros(len(known))
    for _ in range(_ROUNDS):
        # Judged by the others as they were mended, so that many torn ones in a row do not count.
        usual_rad = scipy.ndimage.median_filter(rest_rad - off_rad, _AROUND)
        off_rad = rest_rad - usual_rad
        if output == _SECOND_OUTPUT:
            off_rad = step_rad * np.round(off_rad / step_rad)
        else:
            is_late = np.abs(off_rad + way_rad) < np.abs(off_rad)
            is_late &= np.abs(way_rad) > _LATE_STEPS * step_rad
            off_rad = np.where(is_late, -way_rad, 0.0)
    result = position_rad.copy()
    result[known] -= off_rad
    return result
