"""Low-pass and derivatives in the frequency domain, and where a trajectory's own content ends.

The filter is [De Facci 2024]'s rectangular window: every bin above the cut-off frequency becomes
zero. For a record of whole periods that is exact. Any other record is brought to something that
can be repeated: the line between its ends is taken away, the rest, which then begins and ends at
zero, is continued by its own point reflection (so that its slope goes on, too), and the line is
added again. What that invents at the borders is to be dropped, as with any other filter; a
rectangular window rings, so that a border is felt farther inside than with a Butterworth filter.

Rows are samples at a constant rate. Nothing here decides what is used:
`estimation.signals.preparation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from estimation.errors import DatasetError
from estimation.signals.filters import checked_record
from estimation.types import FloatArray

CUTOFF_MIN_HZ, CUTOFF_MAX_HZ = 15.0, 30.0
"""What is chosen where positions are good: intervals cover best what they say."""
CUTOFF_LEAST_HZ = 4.0
"""What is chosen at the least, however noisy positions are."""
NOISE_SHARE_MAX = 2e-4
"""Of the accelerations' power: noise of positions in the band. Of four times as much, inertias come
out visibly wrong (regressors with noise bias least squares)."""
RATE_SHARE_MAX = 0.2
"""Of the rate: above it, derivatives are no longer those of the signal."""
_CUTOFF_PER_BANDWIDTH, _LEAST_PER_BANDWIDTH = 3.0, 2.0
"""A fourth-order filter, run both ways, takes 0.015 % and 0.4 % at these shares of its cut-off."""
_SEGMENT_S = 4.0
_SEGMENT_ROWS_MIN, _SEGMENT_ROWS_MAX = 64, 1 << 15
_CLEARLY = 20.0
"""How far above the noise floor a bin must be: chi-squared noise of a few segments stays below."""
_APART_HZ = 5.0
"""What stands out farther than this from the content below, and than its frequency again, is none
of it: lines of 50, 100 and 250 Hz where a board's clock and ours beat."""
_ALL_BUT = 1e-3
"""Share of the velocity's power that may lie beyond the bandwidth."""
_FLOOR_BAND = (0.25, 0.45)
"""Shares of the rate between which nothing moves and only noise is seen."""


def low_pass_fft(
    values: ArrayLike, *, cutoff_hz: float, rate_hz: float, is_periodic: bool = False
) -> FloatArray:
    """Zero all bins above a frequency: no delay, and nothing changed below.

    Args:
        values: One column per signal, shape (n,) or (n, k).
        cutoff_hz: The highest frequency that stays.
        rate_hz: Samples per second.
        is_periodic: Whether the record is of whole periods: row n would be row 0 again.

    Returns:
        The same shape.

    Raises:
        DatasetError: The cut-off frequency is not between 0 and half the rate, the record is too
            short or a value is not finite.
    """
    _check_cutoff(cutoff_hz, rate_hz)

    def gain(frequency_hz: FloatArray) -> FloatArray:
        # A bin at the cut-off itself stays, however it was rounded.
        return np.where(frequency_hz <= cutoff_hz * (1.0 + 1e-9), 1.0, 0.0)

    smooth, line = _through_spectrum(values, gain, rate_hz=rate_hz, is_periodic=is_periodic)
    if line is not None:
        smooth += line
    return smooth


def derivative_fft(
    values: ArrayLike,
    *,
    rate_hz: float,
    order: int = 1,
    cutoff_hz: float | None = None,
    is_periodic: bool = False,
) -> FloatArray:
    """Return the derivative by (jω)^order in the frequency domain, exact for a periodic record.

    Args:
        values: One column per signal, shape (n,) or (n, k).
        rate_hz: Samples per second.
        order: 1 for the first, 2 for the second derivative.
        cutoff_hz: All above it becomes zero; None for no filter.
        is_periodic: Whether the record is of whole periods.

    Returns:
        The same shape.

    Raises:
        DatasetError: As `low_pass_fft`, or the order is neither 1 nor 2.
    """
    if order not in (1, 2):
        raise DatasetError(f"a derivative of order {order}: it must be 1 or 2", code="bad-order")
    if cutoff_hz is not None:
        _check_cutoff(cutoff_hz, rate_hz)

    def gain(frequency_hz: FloatArray) -> NDArray[Any]:
        factor = (2j * np.pi * frequency_hz) ** order
        if order == 1:
            # The bin at half the rate has no phase, and so no derivative.
            factor[frequency_hz >= 0.5 * rate_hz * (1.0 - 1e-12)] = 0.0
        if cutoff_hz is not None:
            factor[frequency_hz > cutoff_hz * (1.0 + 1e-9)] = 0.0
        return factor

    slope, line = _through_spectrum(values, gain, rate_hz=rate_hz, is_periodic=is_periodic)
    if line is not None and order == 1:
        slope += (line[-1] - line[0]) * rate_hz / (len(line) - 1)
    return slope


def content_end_hz(frequency_hz: FloatArray, bend_power: FloatArray, rate_hz: float) -> float:
    """Return the bandwidth of one joint, from the power density of its second differences.

    Noise of a position sensor is taken as white: its density is the median between a quarter and
    0.45 of the rate. Content are the bins of the spectrum that stand 20 times above it; the
    bandwidth is the frequency below which 99.9 % of their velocity's power lies (of acceleration's
    would let the vibrations of a real arm count as its motion: 75 to 1400 Hz for the TX40, whose
    motion ends at 7 Hz). Looked at are second differences, so that slow motion does not leak into
    the bins of fast motion.

    Args:
        frequency_hz: Of the bins, shape (bins,).
        bend_power: (rad/s²)²/Hz of (x[i+1] - 2x[i] + x[i-1])/h², shape (bins,).
        rate_hz: Samples per second.
    """
    shape = _bent_noise(frequency_hz, rate_hz)
    floor = _noise_floor(frequency_hz, bend_power, rate_hz)
    content = np.where(bend_power > _CLEARLY * floor * shape, bend_power, 0.0)
    # Frequency 0 is neither content nor noise: a bend's mean is the change of speed.
    content[0] = 0.0
    bins = np.flatnonzero(content)
    is_apart = np.diff(frequency_hz[bins]) > np.maximum(_APART_HZ, frequency_hz[bins[:-1]])
    if is_apart.any():
        content[bins[int(is_apart.argmax()) + 1] :] = 0.0
    content[1:] /= np.square(frequency_hz[1:])
    total = np.cumsum(content)
    if not total[-1] > 0.0:
        return 0.0
    return float(frequency_hz[int(np.searchsorted(total, (1.0 - _ALL_BUT) * total[-1]))])


def quiet_end_hz(
    frequency_hz: FloatArray, bend_power: FloatArray, rate_hz: float, content_hz: float
) -> float:
    """Up to where a joint's accelerations hold at most `NOISE_SHARE_MAX` of noise; may be ∞.

    White noise of density S in the positions is ∫(2πf)⁴S df = (2π)⁴S·f⁵/5 in the accelerations.
    """
    floor = _noise_floor(frequency_hz, bend_power, rate_hz)
    moves = (frequency_hz > 0.0) & (frequency_hz <= max(content_hz, frequency_hz[1]))
    power = float(bend_power[moves].sum() * frequency_hz[1])
    if not floor > 0.0:
        return float("inf")
    return float((5.0 * NOISE_SHARE_MAX * power / ((2.0 * np.pi) ** 4 * floor)) ** 0.2)


def choose_cutoff_hz(content_hz: float, rate_hz: float, quiet_hz: float = float("inf")) -> float:
    """Return the cut-off frequency for a motion.

    Three times the bandwidth of the motion, but at least 15 Hz and at most 30 Hz; a motion that
    needs more gets twice its bandwidth; never above a fifth of the rate. Noisy positions lower it,
    to not less than 4 Hz and three times the bandwidth.
    """
    ample_hz = _CUTOFF_PER_BANDWIDTH * content_hz
    wanted_hz = min(max(ample_hz, CUTOFF_MIN_HZ), CUTOFF_MAX_HZ)
    wanted_hz = max(wanted_hz, _LEAST_PER_BANDWIDTH * content_hz)
    if quiet_hz < wanted_hz:
        wanted_hz = min(wanted_hz, max(quiet_hz, ample_hz, CUTOFF_LEAST_HZ))
    return float(min(wanted_hz, RATE_SHARE_MAX * rate_hz))


def _bent_noise(frequency_hz: FloatArray, rate_hz: float) -> FloatArray:
    """Return what second differences make of white position noise: |2 sin(πf/rate)|⁴·rate⁴."""
    shape: FloatArray = (2.0 * np.sin(np.pi * frequency_hz / rate_hz) * rate_hz) ** 4
    return shape


def _noise_floor(frequency_hz: FloatArray, bend_power: FloatArray, rate_hz: float) -> float:
    """Density of the positions' noise, rad²/Hz."""
    band = (frequency_hz >= _FLOOR_BAND[0] * rate_hz) & (frequency_hz <= _FLOOR_BAND[1] * rate_hz)
    return float(np.median(bend_power[band] / _bent_noise(frequency_hz[band], rate_hz)))


def segment_rows(rows: int, rate_hz: float) -> int:
    """Rows of the segments whose spectra are averaged: 4 s, or what there is."""
    wanted = min(max(round(_SEGMENT_S * rate_hz), _SEGMENT_ROWS_MIN), _SEGMENT_ROWS_MAX)
    return min(wanted, rows)


def _through_spectrum(
    values: ArrayLike,
    gain: Callable[[FloatArray], NDArray[Any]],
    *,
    rate_hz: float,
    is_periodic: bool,
) -> tuple[FloatArray, FloatArray | None]:
    """Return the filtered record without its line, and the line; None for a periodic record."""
    array = checked_record(values, more_than=2)
    if not rate_hz > 0.0:
        raise DatasetError(f"a rate of {rate_hz:g} Hz: it must be above 0", code="bad-rate")
    rows, line = len(array), None
    if not is_periodic:
        place = np.linspace(0.0, 1.0, rows).reshape(-1, *(1,) * (array.ndim - 1))
        line = array[0] + (array[-1] - array[0]) * place
        rest = array - line
        array = np.concatenate([rest, -rest[-2:0:-1]])
    spectrum = fft.rfft(array, axis=0)
    frequency_hz = fft.rfftfreq(len(array), 1.0 / rate_hz)
    spectrum *= gain(frequency_hz).reshape(-1, *(1,) * (array.ndim - 1))
    result: FloatArray = fft.irfft(spectrum, len(array), axis=0)[:rows]
    return result, line


def _check_cutoff(cutoff_hz: float, rate_hz: float) -> None:
    if not 0.0 < cutoff_hz < 0.5 * rate_hz:
        raise DatasetError(
            f"a cut-off frequency of {cutoff_hz:g} Hz: it must be above 0 and below half the rate, "
            f"{0.5 * rate_hz:g} Hz",
            code="bad-cutoff",
        )
