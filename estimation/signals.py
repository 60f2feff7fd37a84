"""What the record of one moving axis needs before a regression: pure computation.

The usual way is low-pass of the position → central differences → columns of the regressor at the
full rate → `decimate` the columns and the force alike. Rows are samples at a constant rate.

All of it is without delay, and pays for that at the borders: a filter that runs both ways has to
invent what came before and after the record (here the record itself, turned about its outermost
sample, for 3·order samples), and a difference lacks a neighbour. Lengths are kept, and whoever
fits drops the borders: a few periods of the cut-off frequency at either end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import signal

from estimation.errors import DatasetError

FloatArray = NDArray[np.float64]

_DECIMATION_ORDER = 8
_DECIMATION_RIPPLE_DB = 0.05


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
        raise DatasetError(f"a filter of order {order}: it must be at least 1")
    if not 0.0 < cutoff_hz < 0.5 * rate_hz:
        raise DatasetError(
            f"a cut-off frequency of {cutoff_hz:g} Hz: it must be above 0 and below half the rate, "
            f"{0.5 * rate_hz:g} Hz"
        )
    return _both_ways(values, signal.butter(order, cutoff_hz, fs=rate_hz, output="sos"), order)


def central_difference(values: ArrayLike, *, rate_hz: float) -> FloatArray:
    """Derivative by (x[i+1] - x[i-1])/2h, of second order: its error is h²/6·x‴.

    The first and the last value are one-sided, (x[1] - x[0])/h, and of first order only. Applied
    twice, for accelerations, the outermost values are therefore wrong whatever the rate, 1/2 and
    3/4 of the truth: drop two rows at either end.

    Args:
        values: One column per signal, shape (n,) or (n, k).
        rate_hz: Samples per second, 1/h.

    Returns:
        The same shape.

    Raises:
        DatasetError: There are fewer than two rows, a value is not finite or the rate is not
            positive.
    """
    array = _record(values, more_than=1)
    if not rate_hz > 0.0:
        raise DatasetError(f"a rate of {rate_hz:g} Hz: it must be above 0")
    slope: FloatArray = np.empty_like(array)
    slope[1:-1] = (array[2:] - array[:-2]) * (0.5 * rate_hz)
    slope[0] = (array[1] - array[0]) * rate_hz
    slope[-1] = (array[-1] - array[-2]) * rate_hz
    return slope


def decimate(values: ArrayLike, factor: int) -> FloatArray:
    """Keep every `factor`-th row, after a low-pass at 0.8 of the new half rate, without delay.

    The filter is that of MATLAB's and SciPy's `decimate`, Chebyshev type I of order 8 with 0.05 dB
    of ripple, run both ways; and as in MATLAB the last row is one of those kept. Unlike there the
    gain is 1 for constants: they would come out 1.1 % too small (0.1 dB). A regression whose
    columns and target are decimated alike does not see the gain at all.

    Args:
        values: One column per signal, shape (n,) or (n, k).
        factor: At least 2.

    Returns:
        Shape (⌈n/factor⌉,) or (⌈n/factor⌉, k).

    Raises:
        DatasetError: The factor is below 2, the record is too short or a value is not finite.
    """
    if factor < 2:
        raise DatasetError(f"decimation by {factor}: it must be at least 2")
    sections = signal.cheby1(_DECIMATION_ORDER, _DECIMATION_RIPPLE_DB, 0.8 / factor, output="sos")
    # The even order has its ripple's lowest point at frequency 0; each pass takes it once.
    gain = 10.0 ** (-2.0 * _DECIMATION_RIPPLE_DB / 20.0)
    smooth = _both_ways(values, sections, _DECIMATION_ORDER)
    kept: FloatArray = smooth[(len(smooth) - 1) % factor :: factor] / gain
    return kept


def _both_ways(values: ArrayLike, sections: FloatArray, order: int) -> FloatArray:
    array = _record(values, more_than=3 * order)
    smooth: FloatArray = signal.sosfiltfilt(sections, array, axis=0, padlen=3 * order)
    return smooth


def _record(values: ArrayLike, *, more_than: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    rows = len(array) if array.ndim else 0
    if rows <= more_than:
        raise DatasetError(
            f"a record of {rows} rows is too short here: more than {more_than} are due"
        )
    wrong = np.flatnonzero(~np.isfinite(array.reshape(rows, -1)).all(axis=1))
    if wrong.size:
        raise DatasetError(
            f"{wrong.size} rows hold values that are not finite, the first is row {wrong[0]}: a "
            "filter would spread them over the whole record; use a stretch without any"
        )
    return array
