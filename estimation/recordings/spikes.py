"""Values that must not count: what is not a number, and outliers. Pure computation.

An outlier is a single sample that stands far off both neighbours.

With d[k] = x[k] - (x[k-1] + x[k+1])/2, one wrong value of height h leaves -h/2, h, -h/2: opposite
in sign to both sides. A step, such as Coulomb friction where a joint turns round, leaves h/2, -h/2
and is never taken for one, however high. Two wrong values in a row are a step and a step: not seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daq.recording.tables.arrays import VALUE_MAX
from estimation.types import Flags, FloatArray

_SIDES = 0.3
"""How much of it either side must show; half of it would, without noise and motion."""
_NOISE = 50.0 * 1.4826
"""How far beyond the usual |d|: 50 standard deviations, of which the median of |d| is 1/1.4826."""
_OF_RANGE = 0.01
_COUNTS = 10.0
"""A sensor that flickers by so many of its counts has no outliers."""
_SHARE_MAX = 0.01
"""Where more than that stands out, the signal is like this."""


def is_number(values: Any, limit: float | FloatArray = VALUE_MAX) -> Flags:
    """Return which values are finite, and no larger than any that is measured."""
    with np.errstate(invalid="ignore"):
        result: Flags = np.abs(values) <= limit
    return result


def only_numbers(values: FloatArray) -> FloatArray:
    """Return the values, with NaN for what is not a number."""
    is_known = is_number(values)
    return values if is_known.all() else np.where(is_known, values, np.nan)


def find_outliers(values: FloatArray) -> Flags:
    """Return which samples are outliers.

    The first and last two cannot be judged, nor those beside a value that is not a number.

    Args:
        values: In order of time, shape (n, joints); a short gap is just a step.

    Returns:
        Shape (n, joints).
    """
    found = np.zeros(values.shape, bool)
    if len(values) < 5:
        return found
    with np.errstate(invalid="ignore"):
        bend = values[1:-1] - 0.5 * (values[:-2] + values[2:])
        size = np.abs(bend)
        limit = np.maximum(_NOISE * _median_above_zero(size), _smallest(values))
        here, before, after = bend[1:-1], bend[:-2], bend[2:]
        is_outlier = (here * before < 0.0) & (here * after < 0.0) & (size[1:-1] > limit)
        is_outlier &= np.minimum(size[:-2], size[2:]) > _SIDES * size[1:-1]
    is_outlier &= is_outlier.mean(axis=0) <= _SHARE_MAX
    found[2:-2] = is_outlier
    return found


def _smallest(values: FloatArray) -> FloatArray:
    """Return what each joint's outliers must exceed whatever the noise, shape (joints,).

    A joint at rest may flicker by a count now and then and do nothing else: that is much of its own
    range, but little of that of the joint that moves most.
    """
    known = np.isfinite(values)
    highest = np.where(known, values, -np.inf).max(axis=0)
    lowest = np.where(known, values, np.inf).min(axis=0)
    range_ = np.where(known.any(axis=0), highest - lowest, 0.0)
    steps = np.abs(np.diff(values, axis=0))
    counts = np.where(steps > 0.0, steps, np.inf).min(axis=0)
    flicker = np.minimum(_COUNTS * counts, _OF_RANGE * range_.max())
    result: FloatArray = np.maximum(_OF_RANGE * range_, flicker)
    return result


def _median_above_zero(sizes: FloatArray) -> FloatArray:
    """Of each column; where a sensor shows the same number for long, zeros say nothing of noise."""
    medians = [np.median(some) if (some := each[each > 0.0]).size else 0.0 for each in sizes.T]
    return np.array(medians, np.float64)
