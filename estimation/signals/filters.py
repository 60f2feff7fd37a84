"""Filters and derivatives for the record of one moving axis: pure computation.

The usual way is low-pass of the position → central differences → columns of the regressor at the
full rate. Rows are samples at a constant rate, of shape (n,) or (n, k) with a column per signal;
results have the same shape. A record that is too short, or not of finite values, is a
`DatasetError`, and so is a rate that is not positive.

All of it is without delay, and pays for that at the borders: a filter that runs both ways has to
invent what came before and after the record (here the record itself, turned about its outermost
sample, for 3·order samples), and a difference lacks a neighbour. Lengths are kept, and whoever
fits drops the borders: a few periods of the cut-off frequency at either end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import signal

from estimation.errors import DatasetError
from estimation.types import FloatArray

_STENCIL = (45.0 / 60.0, -9.0 / 60.0, 1.0 / 60.0)
STENCIL_ROWS = len(_STENCIL)
"""Rows at either end for which `derivative` lacks neighbours."""


def low_pass(values: ArrayLike, *, order: int, cutoff_hz: float, rate_hz: float) -> FloatArray:
    """Butterworth low-pass, run forwards and backwards: no delay, and twice the attenuation.

    At the cut-off frequency 1/2 is left of an amplitude, not 1/√2. Borders are continued as
    MATLAB's `filtfilt` does.

    Args:
        values: One column per signal, shape (n,) or (n, k).
        order: Of the filter; the attenuation is that of twice the order.
        cutoff_hz: Where one pass attenuates by 3 dB.
        rate_hz: Samples per second.

    Returns:
        The same shape.

    Raises:
        DatasetError: The cut-off frequency is not between 0 and half the rate, the order is not
            positive, the record is too short or a value is not finite.
    """
    if order < 1:
        raise DatasetError(f"a filter of order {order}: it must be at least 1", code="bad-order")
    check_cutoff(cutoff_hz, rate_hz)
    array = checked_record(values, more_than=3 * order)
    sections = signal.butter(order, cutoff_hz, fs=rate_hz, output="sos")
    smooth: FloatArray = signal.sosfiltfilt(sections, array, axis=0, padlen=3 * order)
    return smooth


def central_difference(values: ArrayLike, *, rate_hz: float) -> FloatArray:
    """Return the derivative by (x[i+1] - x[i-1])/2h, of second order: its error is h²/6·x‴.

    The first and the last value are one-sided, (x[1] - x[0])/h, and of first order only. Applied
    twice, for accelerations, the outermost values are therefore wrong whatever the rate, 1/2 and
    3/4 of the truth: drop two rows at either end.
    """
    array = checked_record(values, more_than=1)
    _check_rate(rate_hz)
    slope: FloatArray = np.empty_like(array)
    slope[1:-1] = (array[2:] - array[:-2]) * (0.5 * rate_hz)
    slope[0] = (array[1] - array[0]) * rate_hz
    slope[-1] = (array[-1] - array[-2]) * rate_hz
    return slope


def second_difference(values: ArrayLike, *, rate_hz: float) -> FloatArray:
    """Second derivative by (x[i+1] - 2x[i] + x[i-1])/h², of second order: its error is h²/12·x⁗.

    The acceleration of [De Facci 2024]. The first and the last value repeat their neighbours.
    """
    array = checked_record(values, more_than=2)
    _check_rate(rate_hz)
    bend: FloatArray = np.empty_like(array)
    bend[1:-1] = (array[2:] - 2.0 * array[1:-1] + array[:-2]) * rate_hz**2
    bend[0], bend[-1] = bend[1], bend[-2]
    return bend


def derivative(values: ArrayLike, *, rate_hz: float) -> FloatArray:
    """Return the derivative from three neighbours on either side, of sixth order.

    (45(x[i+1] - x[i-1]) - 9(x[i+2] - x[i-2]) + (x[i+3] - x[i-3]))/60h. Of a sine it takes
    (ωh)⁶/140: 3e-7 at 30 Hz and 1 kHz, 4e-4 at a tenth of the rate; (x[i+1] - x[i-1])/2h would
    take (ωh)²/6, 0.6 % at 30 Hz. Nothing needs to be corrected afterwards. At both ends
    `STENCIL_ROWS` values are differences of lower order: drop them.
    """
    array = checked_record(values, more_than=2 * STENCIL_ROWS)
    slope = central_difference(array, rate_hz=rate_hz)
    inner = slope[STENCIL_ROWS:-STENCIL_ROWS]
    inner[...] = 0.0
    for distance, weight in enumerate(_STENCIL, 1):
        after = array[STENCIL_ROWS + distance : len(array) - STENCIL_ROWS + distance]
        before = array[STENCIL_ROWS - distance : len(array) - STENCIL_ROWS - distance]
        inner += (weight * rate_hz) * (after - before)
    return slope


def check_cutoff(cutoff_hz: float, rate_hz: float) -> None:
    """Refuse a cut-off frequency that is not between 0 and half the rate, as a `DatasetError`."""
    if not 0.0 < cutoff_hz < 0.5 * rate_hz:
        raise DatasetError(
            f"a cut-off frequency of {cutoff_hz:g} Hz: it must be above 0 and below half the rate, "
            f"{0.5 * rate_hz:g} Hz",
            code="bad-cutoff",
        )


def _check_rate(rate_hz: float) -> None:
    if not rate_hz > 0.0:
        raise DatasetError(f"a rate of {rate_hz:g} Hz: it must be above 0", code="bad-rate")


def checked_record(values: ArrayLike, *, more_than: int) -> FloatArray:
    """Return a record of more than so many rows as an array of floats."""
    array = np.asarray(values, dtype=np.float64)
    rows = len(array) if array.ndim else 0
    if rows <= more_than:
        raise DatasetError(
            f"a record of {rows} rows is too short here: expected more than {more_than}",
            code="few-rows",
        )
    wrong = np.flatnonzero(~np.isfinite(array.reshape(rows, -1)).all(axis=1))
    if wrong.size:
        raise DatasetError(
            f"{wrong.size} rows hold values that are not finite, the first is row {wrong[0]}: a "
            "filter would spread them over the whole record; use a segment without any",
            code="not-finite",
        )
    return array
