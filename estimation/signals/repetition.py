"""Whether a motion repeats itself, and after how long: pure computation."""

from __future__ import annotations

import numpy as np

from estimation.errors import DatasetError
from estimation.signals.preparation import PeriodAverage, Prepared, average_periods
from estimation.types import FloatArray

_RATE_HZ = 20.0
_ROWS_MAX = 4000
_SAME = 0.02
"""Positions that differ by less than this, relative to how far a joint moves, are the same."""
_SHORTEST_S = 0.5


def find_period_s(prepared: Prepared) -> float | None:
    """Return the period of a motion that was recorded at least nearly twice.

    Returns:
        The shortest time after which every joint is where it was, for most of the record; None if
        there is none. What comes before and after the repeated motion does not matter.
    """
    step = max(1, round(1.0 / (_RATE_HZ * prepared.period_s)))
    q = prepared.q_rad[::step][:_ROWS_MAX]
    size = q.std(axis=0)
    if len(q) < 20 or not size.any():
        return None
    scaled = q[:, size > 0.0] / size[size > 0.0]
    step_s = step * prepared.period_s
    shortest = max(2, round(_SHORTEST_S / step_s))
    differences = np.full(len(q), np.inf)
    for lag in range(shortest, int(0.6 * len(q))):
        differences[lag] = np.median(np.abs(scaled[lag:] - scaled[:-lag]).max(axis=1))
    limit = 5.0 * _SAME + _half_step(scaled)
    # A slow motion is near to where it was after any short time: only what comes after a rise.
    has_risen = np.isfinite(differences) & (differences > max(0.3, limit))
    if not has_risen.any():
        return None
    lag = int(np.argmax(has_risen))
    while lag < len(differences):
        near = differences[lag:] < limit
        if not near.any():
            return None
        lag += int(np.argmax(near))
        far = differences[lag:] >= limit
        end = lag + int(np.argmax(far)) if far.any() else len(differences)
        best = lag + int(np.argmin(differences[lag:end]))
        if (found_s := _refined_s(prepared, best * step_s, step_s)) is not None:
            return found_s
        lag = end
    return None


def _half_step(scaled: FloatArray) -> float:
    """How far a period is off at most, as it is not a whole number of rows."""
    return 0.5 * float(np.median(np.abs(np.diff(scaled, axis=0)).max(axis=1)))


def _refined_s(prepared: Prepared, about_s: float, within_s: float) -> float | None:
    """Return the same at the full rate, and whether it is good enough there."""
    period_s = prepared.period_s
    size = prepared.q_rad.std(axis=0)
    is_moving = size > 0.0
    q = prepared.q_rad[:, is_moving] / size[is_moving]
    middle, around = round(about_s / period_s), round(within_s / period_s) + 1
    lags = [lag for lag in range(middle - around, middle + around + 1) if 0 < lag < len(q)]
    found = [float(np.median(np.abs(q[lag:] - q[:-lag]).max(axis=1))) for lag in lags]
    if not found or min(found) > _SAME + _half_step(q):
        return None
    return lags[int(np.argmin(found))] * period_s


def average_repetitions(prepared: Prepared) -> PeriodAverage:
    """Return the mean period of a motion that repeats itself, without what comes before.

    Raises:
        DatasetError: The motion does not repeat itself, or there are fewer than two whole periods.
    """
    period_s = find_period_s(prepared)
    if period_s is None:
        raise DatasetError(
            f"{prepared.source}: its motion does not repeat itself, so there are no periods to "
            "average over",
            code="no-repetition",
        )
    lag = round(period_s / prepared.period_s)
    q = prepared.q_rad
    size = q.std(axis=0)
    far = np.abs(q[lag:] - q[:-lag]) > (_SAME + _half_step(q / np.where(size > 0, size, 1))) * size
    unlike = np.flatnonzero(far.any(axis=1))
    # Where it begins to be as it will be a period later.
    start = int(unlike[unlike < len(far) // 2][-1]) + 1 if (unlike < len(far) // 2).any() else 0
    left_s = (len(prepared) - start) * prepared.period_s
    if left_s < 2.0 * period_s:
        raise DatasetError(
            f"{prepared.source}: of its motion, which repeats itself after {period_s:.4g} s, "
            f"{left_s:.4g} s are left once borders are trimmed; two periods are needed to average "
            "over: record for longer (`armature excite --duration`)",
            code="less-than-two-periods",
        )
    return average_periods(prepared.select(slice(start, None)), period_s)
