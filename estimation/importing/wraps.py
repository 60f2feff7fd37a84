"""Angles that were written within one turn: a step of about 2π from row to row is a wrap.

No joint turns by a turn from one row to the next while it hardly moves between the others, so that
it can be nothing else. Fewer steps are taken for wraps than `numpy.unwrap` does.
"""

from __future__ import annotations

import numpy as np

from estimation.types import FloatArray

_TURN = 2.0 * np.pi
_NEAR_RAD = 0.5
"""How far a wrap may be from a turn, and how little a joint moves from row to row otherwise."""


def unwrap(q_rad: FloatArray) -> tuple[FloatArray, list[int]]:
    """Join angles at their wraps.

    Args:
        q_rad: Shape (n,); where it is NaN nothing is known.

    Returns:
        The angles, and the rows before which they wrapped.
    """
    known = np.flatnonzero(np.isfinite(q_rad))
    steps = np.diff(q_rad[known])
    is_wrap = np.abs(np.abs(steps) - _TURN) < _NEAR_RAD
    if not is_wrap.any() or np.median(np.abs(steps)) >= _NEAR_RAD:
        return q_rad, []
    turns = np.concatenate([[0.0], np.cumsum(np.where(is_wrap, -np.sign(steps), 0.0))])
    joined = q_rad.copy()
    joined[known] += _TURN * turns
    return joined, [int(row) for row in known[1:][is_wrap]]
