"""Thins curves of many thousand rows to few points that look the same on paper."""

from __future__ import annotations

import numpy as np

from estimation.types import Flags, FloatArray, Rows

_GAP = 1.5
"""Rows further apart than so many periods have something missing between them."""


def thin(t_s: FloatArray, values: FloatArray, points: int) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of each short span, in order: no peak is lost.

    NaN breaks the line; a curve with fewer points than asked for stays as it is.
    """
    rows = len(t_s)
    if rows <= points:
        return t_s, values
    known = np.isfinite(values)
    edges = np.linspace(0, rows, max(points // 2, 1) + 1).astype(np.intp)[:-1]
    span = np.repeat(np.arange(len(edges)), np.diff(np.append(edges, rows)))
    kept = []
    for sign in (1.0, -1.0):
        order = np.lexsort((np.where(known, sign * values, np.inf), span))
        kept.append(order[edges])
    breaks = np.flatnonzero(~known & np.append(True, known[:-1]))
    chosen = np.unique(np.concatenate([*kept, breaks]))
    return t_s[chosen], values[chosen]


def with_gaps(
    t_s: FloatArray, values: FloatArray, period_s: float
) -> tuple[FloatArray, FloatArray]:
    """Return the same curve with NaN wherever rows are missing, so that no line crosses a gap."""
    after = _breaks(t_s, period_s)
    return np.insert(t_s, after, t_s[after - 1]), np.insert(values, after, np.nan)


def longest_part(t_s: FloatArray, period_s: float) -> slice:
    """Return the longest segment of rows without a gap."""
    ends = np.concatenate([[0], _breaks(t_s, period_s), [len(t_s)]])
    longest = int(np.argmax(np.diff(ends)))
    return slice(int(ends[longest]), int(ends[longest + 1]))


def runs(flags: Flags) -> list[tuple[int, int]]:
    """Return the first row of each run of true values, and the row after its last."""
    steps = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(first), int(end)) for first, end in steps.reshape(-1, 2)]


def _breaks(t_s: FloatArray, period_s: float) -> Rows:
    return np.flatnonzero(np.abs(np.diff(t_s)) > _GAP * period_s) + 1
