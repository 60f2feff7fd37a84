"""Low-pass and derivatives in the frequency domain, and where a trajectory's own content ends.

The filter is [De Facci 2024]'s rectangular window: every bin above the cut-off frequency becomes
zero. A record is first brought to something that can be repeated: the line between its ends is
taken away, the rest, which then begins and ends at zero, is continued by its own point reflection
(so that its slope goes on, too), and the line is added again. What that invents at the borders is
to be dropped, as with any other filter; a rectangular window rings, so that a border is felt
farther inside than with a Butterworth filter.

Rows are samples at a constant rate. Nothing here decides what is used:
`estimation.signals.preparation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft

from estimation.signals.filters import check_cutoff, checked_record
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


def low_pass_fft(values: ArrayLike, *, cutoff_hz: float, rate_hz: float) -> FloatArray:
    """Zero all bins above a frequency: no delay, and nothing changed below."""
    smooth, line = _through_spectrum(values, np.ones_like, cutoff_hz, rate_hz)
    return smooth + line


def derivative_fft(values: ArrayLike, *, cutoff_hz: float, rate_hz: float) -> FloatArray:
    """Return the derivative of what `low_pass_fft` would leave, by jω in the frequency domain."""
    slope, line = _through_spectrum(values, lambda hz: 2j * np.pi * hz, cutoff_hz, rate_hz)
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
    values: ArrayLike, gain: Callable[[FloatArray], NDArray[Any]], cutoff_hz: float, rate_hz: float
) -> tuple[FloatArray, FloatArray]:
    """Return the filtered record without its line, and the line."""
    array = checked_record(values, more_than=2)
    check_cutoff(cutoff_hz, rate_hz)
    across = (-1, *(1,) * (array.ndim - 1))
    place = np.linspace(0.0, 1.0, len(array)).reshape(across)
    line: FloatArray = array[0] + (array[-1] - array[0]) * place
    rest = array - line
    repeated = np.concatenate([rest, -rest[-2:0:-1]])
    frequency_hz = fft.rfftfreq(len(repeated), 1.0 / rate_hz)
    # A bin at the cut-off itself stays, however it was rounded.
    is_kept = frequency_hz <= cutoff_hz * (1.0 + 1e-9)
    spectrum = fft.rfft(repeated, axis=0)
    spectrum *= np.where(is_kept, gain(frequency_hz), 0.0).reshape(across)
    result: FloatArray = fft.irfft(spectrum, len(repeated), axis=0)[: len(array)]
    return result, line
