"""Whether foreign samples come at a constant rate, and how they are brought to one.

Times that are one rate within 1 % of a period are taken as they stand; missing rows become missing
numbers, never invented samples. Anything else is refused, or interpolated linearly on request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimation.errors import DatasetError

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]

JITTER_MAX = 0.01
"""How far a sample may be from its place, in periods."""
RATE_MIN_HZ, RATE_MAX_HZ = 1.0, 1e6
NUMBERS_MAX = 1_000_000_000
_HOLE = 2.5
"""A step of time so many times the usual one is a hole, which is not interpolated."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """When samples were taken.

    Attributes:
        rate_hz: Samples per second.
        seq: Number of each sample, shape (n,); one that is missing is left out.
        jitter: Largest distance of a sample from its place, in periods.
    """

    rate_hz: float
    seq: Numbers
    jitter: float


def constant_rate(rows: int, rate_hz: float) -> Sampling:
    """Samples without times of their own.

    Raises:
        DatasetError: The rate is out of range.
    """
    _check_rate(rate_hz, "--rate")
    return Sampling(rate_hz, np.arange(rows, dtype=np.int64), 0.0)


def find_rate(t_s: FloatArray, rate_hz: float | None = None) -> Sampling:
    """The rate of samples with times.

    Args:
        t_s: Shape (n,).
        rate_hz: What it should be, within 1 %; None for whatever it is.

    Raises:
        DatasetError: Times are not finite, do not rise or are not at one rate.
    """
    step_s = _checked_steps(t_s)
    usual_s = float(np.median(step_s))
    _check_rate(1.0 / usual_s, "the times")
    if (t_s[-1] - t_s[0]) / usual_s > NUMBERS_MAX:
        raise DatasetError(
            f"the times span {t_s[-1] - t_s[0]:.6g} s in steps of {usual_s:.3g} s: are they in "
            "seconds? --unit t_s=ms or us says otherwise"
        )
    # Printed times are rounded: many steps tell the period better than one does.
    seq = np.concatenate([[0], np.cumsum(np.maximum(np.rint(step_s / usual_s), 1.0))])
    period_s, start_s = np.polynomial.polynomial.polyfit(seq, t_s - t_s[0], 1)[::-1]
    jitter = float(np.abs((t_s - t_s[0] - start_s) / period_s - seq).max())
    if not jitter <= JITTER_MAX:
        row = int(np.abs((t_s - t_s[0] - start_s) / period_s - seq).argmax())
        raise DatasetError(
            f"the samples are not at one rate: row {row} is {jitter:.3g} periods of "
            f"{1e3 * period_s:.6g} ms from its place, limit {JITTER_MAX}; --resample interpolates "
            "them linearly"
        )
    found_hz = float(1.0 / period_s)
    if rate_hz is not None and abs(found_hz / rate_hz - 1.0) > 0.01:
        raise DatasetError(
            f"--rate {rate_hz:g}: by their times there are {found_hz:.6g} samples per second; "
            "leave --rate out, or state the unit of time as --unit t_s=…"
        )
    return Sampling(found_hz, seq.astype(np.int64), jitter)


def resample(
    t_s: FloatArray, values: dict[str, FloatArray], rate_hz: float | None
) -> tuple[Sampling, dict[str, FloatArray]]:
    """Interpolate linearly at a constant rate, but never across a hole.

    Args:
        t_s: Times, shape (n,).
        values: Arrays of shape (n, columns).
        rate_hz: Samples per second; None for that of the usual step.

    Returns:
        When, and the values then.

    Raises:
        DatasetError: Times are not finite or do not rise, or there would be too many samples.
    """
    step_s = _checked_steps(t_s)
    usual_s = float(np.median(step_s))
    rate_hz = 1.0 / usual_s if rate_hz is None else rate_hz
    _check_rate(rate_hz, "--resample")
    count = (t_s[-1] - t_s[0]) * rate_hz
    if not count < 20_000_000:
        raise DatasetError(
            f"{count:.3g} samples at {rate_hz:g} per second, limit 20000000: are the times in "
            "seconds? --unit t_s=ms or us says otherwise"
        )
    seq = np.arange(int(count + 1e-6) + 1, dtype=np.int64)
    times = np.minimum(t_s[0] + seq / rate_hz, t_s[-1])
    before = np.clip(np.searchsorted(t_s, times, side="right") - 1, 0, len(step_s) - 1)
    known = step_s[before] <= _HOLE * usual_s
    seq, times, before = seq[known], times[known], before[known]
    share = ((times - t_s[before]) / step_s[before])[:, np.newaxis]
    found = {}
    for name, array in values.items():
        here, there = array[before], array[before + 1]
        found[name] = np.where(share > 0.0, here + share * (there - here), here)
    return Sampling(float(rate_hz), seq, 0.0), found


def _checked_steps(t_s: FloatArray) -> FloatArray:
    if len(t_s) < 2:
        raise DatasetError(f"{len(t_s)} samples: at least 2 have a rate")
    wrong = np.flatnonzero(~np.isfinite(t_s))
    if wrong.size:
        raise DatasetError(f"the time of row {wrong[0]} is {t_s[wrong[0]]}, expected a number")
    step_s: FloatArray = np.diff(t_s)
    if not (step_s > 0.0).all():
        row = int((step_s > 0.0).argmin()) + 1
        raise DatasetError(
            f"time does not rise: row {row} is {t_s[row]:.9g} s after {t_s[row - 1]:.9g} s; "
            "choose rows with --rows A:B, or leave the times out and state --rate"
        )
    return step_s


def _check_rate(rate_hz: float, what: str) -> None:
    if not RATE_MIN_HZ <= rate_hz <= RATE_MAX_HZ:
        raise DatasetError(
            f"{what}: {rate_hz:.6g} samples per second, limits {RATE_MIN_HZ:g} to "
            f"{RATE_MAX_HZ:g}; --unit t_s=ms or us states the unit of time"
        )
