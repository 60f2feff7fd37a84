"""Samples brought to a constant rate, by when they were really taken: pure computation.

A cycle that wakes up late sends and measures late: at 4 rad/s, 0.2 ms are 0.8 mrad, more than an
encoder's count. Filters need a constant rate, so values are interpolated (linearly, over a period
or so) at evenly spaced times. Across gaps, too: there the rows are marked and must not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from estimation.types import Flags, FloatArray

LATE = 1.6
"""Between values that are more than so many periods apart there is a gap."""
_AT = 0.3
"""A time this near to that of a value, in periods, is not in a gap."""
_EVEN = 1e-3
"""Times that are this near to even ones, in periods, are taken for even."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Evenly spaced times of a part of a segment.

    Attributes:
        times_s: When values are wanted, shape (n,).
        is_in_gap: Whether that lies in a gap, shape (n,).
        part: Which of the values were taken just then, where all were: nothing needs to be
            interpolated; else None.
    """

    times_s: FloatArray
    is_in_gap: Flags
    part: slice | None


def make_grid(taken_s: FloatArray, first: int, last: int, period_s: float) -> Grid:
    """Return evenly spaced times within those at which values were taken.

    Args:
        taken_s: When the values of the part were taken, counted from the segment's first one.
        first: Number of the first wanted time, in periods since the segment's first value.
        last: Number of the one after the last.
        period_s: Between two wanted times.
    """
    times_s = np.arange(first, last, dtype=np.float64) * period_s
    begin = int(np.searchsorted(taken_s, times_s[0] - 0.5 * period_s)) if len(times_s) else 0
    part = slice(begin, begin + len(times_s))
    is_even = len(taken_s[part]) == len(times_s) and bool(
        np.all(np.abs(taken_s[part] - times_s) <= _EVEN * period_s)
    )
    if is_even:
        return Grid(times_s, np.zeros(len(times_s), bool), part)
    after = np.clip(np.searchsorted(taken_s, times_s, side="left"), 1, len(taken_s) - 1)
    steps_s = taken_s[after] - taken_s[after - 1]
    # A time at which a value was taken is not in a gap, whatever lies beside it. Before the first
    # value and after the last one nothing is known.
    nearest_s = np.minimum(np.abs(taken_s[after] - times_s), np.abs(taken_s[after - 1] - times_s))
    is_outside = (times_s < taken_s[0]) | (times_s > taken_s[-1])
    is_in_gap = (steps_s > LATE * period_s) & (nearest_s > _AT * period_s)
    is_in_gap |= is_outside & (nearest_s > 2.0 * _EVEN * period_s)
    return Grid(times_s, is_in_gap, None)


def at(grid: Grid, taken_s: FloatArray, values: FloatArray, *, ahead_s: float = 0.0) -> FloatArray:
    """Return values at the grid's times.

    Args:
        grid: The times.
        taken_s: When the values were taken.
        values: Shape (n,) or (n, joints).
        ahead_s: How much later than the grid's times they are wanted.

    Returns:
        Interpolated values; beyond the ends, those at the ends.
    """
    if grid.part is not None:
        return values[grid.part]
    times_s = grid.times_s + ahead_s
    if values.ndim == 1:
        return np.interp(times_s, taken_s, values)
    return np.column_stack([np.interp(times_s, taken_s, column) for column in values.T])


def widened(is_in_gap: Flags, times: int = 3) -> Flags:
    """Return gaps widened by so many times their length on either side: filters feel them there."""
    wide = is_in_gap.copy()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_in_gap.view(np.int8), [0]])))
    for begin, end in edges.reshape(-1, 2):
        reach = times * (end - begin)
        wide[max(0, begin - reach) : end + reach] = True
    return wide
