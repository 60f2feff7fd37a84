"""Find the rate of foreign samples, or bring them to a constant one.

Samples hardly jitter, but the stamps of loggers do: rows whose times are within a third of a period
of one rate are put in their places. A few that are not are left out. Missing rows become missing
numbers, never invented samples. Anything else is refused, or interpolated linearly on request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimation.errors import DatasetError
from estimation.importing.time_stamps import IGNORE
from estimation.types import Flags, FloatArray

Numbers = NDArray[np.int64]

JITTER_MAX = 1.0 / 3.0
"""How far a time stamp may be from its place, in periods."""
JITTER_SAID = 0.01
"""From here on it is worth a word."""
RATE_MIN_HZ, RATE_MAX_HZ = 1.0, 1e6
NUMBERS_MAX = 1_000_000_000
LATE_MAX = 0.01
"""Share of the rows that may be farther off, or in the place of another: they are left out."""
_GAP = 3.0
"""A step of time of so many times a long one is a gap, which is not interpolated."""
_LONG_STEP = 0.95
"""A long step is longer than this share of all."""
_MEETS = 1e-6
"""In periods: so near to a row, its values are taken as they are."""
_GROUP = 16
"""Rows that are numbered together: the period need not be known better for it than to 1 %."""
_GROUPS_MAX = 256
_REFUSED = 10.0
_LONG = 20.0
"""A step of so many periods ends a group."""
_TRIED = (np.linspace(0.94, 1.06, 25), np.linspace(0.55, 1.06, 103))
"""Periods, by the mean step of a group: none of its rows is missing, or up to two in five."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """When samples were taken.

    Attributes:
        rate_hz: Samples per second.
        seq: Number of each sample, shape (n,); one that is missing is left out.
        jitter: Largest distance of a time stamp from its place, in periods.
        late: Rows that are too far from any place, or in that of another, and were left out.
    """

    rate_hz: float
    seq: Numbers
    jitter: float
    late: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def times_s(self) -> FloatArray:
        """Since the sample of number 0, shape (n,)."""
        return self.seq / self.rate_hz

    @property
    def span_s(self) -> float:
        """From the first sample to the last."""
        return float(self.seq[-1] - self.seq[0]) / self.rate_hz

    @property
    def missing(self) -> int:
        """How many samples lie in gaps."""
        return int(self.seq[-1] - self.seq[0]) + 1 - len(self.seq)

    @property
    def gaps(self) -> int:
        """How many gaps there are."""
        return int(np.count_nonzero(np.diff(self.seq) > 1))


def constant_rate(rows: int, rate_hz: float) -> Sampling:
    """Return the times of samples that have none of their own."""
    _check_rate(rate_hz, "--rate")
    return Sampling(rate_hz, np.arange(rows, dtype=np.int64), 0.0)


def find_rate(t_s: FloatArray, rate_hz: float | None = None) -> Sampling:
    """Return the rate of samples with times.

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
            "seconds? --unit t_s=ms or us says otherwise",
            code="unit-of-time",
        )
    since_s = t_s - t_s[0]
    # Rows that are missing and stamps that jitter explain the same times: as little as will do.
    best = min((_numbered(since_s, tried) for tried in _TRIED), key=_cost)
    jitter, row = float(np.abs(best.off).max()), int(np.abs(best.off).argmax())
    if not _cost(best) < _REFUSED:
        raise DatasetError(
            f"the samples are not at one rate: row {row} is {jitter:.3g} periods of "
            f"{1e3 * best.period_s:.6g} ms from its place, limit {JITTER_MAX:.2g}, or in that of "
            f"another, as are more than {100 * LATE_MAX:g} % of the rows; --resample interpolates "
            f"them linearly; if only the time stamps are irregular, {IGNORE}",
            code="uneven-times",
        )
    found_hz = float(1.0 / best.period_s)
    if rate_hz is not None and abs(found_hz / rate_hz - 1.0) > 0.01:
        raise DatasetError(
            f"--rate {rate_hz:g}: by their times there are {found_hz:.6g} samples per second; "
            "leave --rate out, state the unit of time as --unit t_s=…, interpolate with "
            "--resample, or ignore the times with --map t_s=none",
            code="other-rate",
        )
    kept = ~best.late
    seq = best.seq[kept]
    jitter = float(np.abs(best.off[kept]).max())
    return Sampling(found_hz, seq - seq[0], jitter, np.flatnonzero(best.late))


def resample(
    t_s: FloatArray, values: dict[str, FloatArray], rate_hz: float | None
) -> tuple[Sampling, dict[str, FloatArray]]:
    """Interpolate linearly at a constant rate, but never across a gap.

    Args:
        t_s: Times, shape (n,).
        values: Arrays of shape (n, columns).
        rate_hz: Samples per second; None for as many as there are rows, but for gaps.

    Returns:
        When, and the values then.

    Raises:
        DatasetError: Times are not finite or do not rise, or there would be too many samples.
    """
    step_s = _checked_steps(t_s)
    # What is usual for these rows, however irregular they are.
    gap_s = _GAP * float(np.quantile(step_s, _LONG_STEP))
    if rate_hz is None:
        rate_hz = 1.0 / float(step_s[step_s <= gap_s].mean())
    gap_s = max(gap_s, 1.0 / rate_hz)
    _check_rate(rate_hz, "--resample")
    count = (t_s[-1] - t_s[0]) * rate_hz
    if not count < 20_000_000:
        raise DatasetError(
            f"{count:.3g} samples at {rate_hz:g} per second, limit 20000000: are the times in "
            "seconds? --unit t_s=ms or us says otherwise",
            code="too-many-samples",
        )
    seq = np.arange(int(count + 1e-6) + 1, dtype=np.int64)
    times = np.minimum(t_s[0] + seq / rate_hz, t_s[-1])
    before = np.clip(np.searchsorted(t_s, times, side="right") - 1, 0, len(step_s) - 1)
    behind_s = times - t_s[before]
    behind_s[behind_s * rate_hz < _MEETS] = 0.0
    known = (step_s[before] <= gap_s) | (behind_s == 0.0)
    seq, before = seq[known], before[known]
    share = (behind_s[known] / step_s[before])[:, np.newaxis]
    found = {}
    for name, array in values.items():
        here, there = array[before], array[before + 1]
        found[name] = np.where(share > 0.0, here + share * (there - here), here)
    return Sampling(float(rate_hz), seq, 0.0), found


class _Numbered(NamedTuple):
    """Rows by number, the period of the straight line that fits, how far off it and late they are.

    What is late has no place of its own.
    """

    seq: Numbers
    period_s: float
    off: FloatArray
    late: Flags


def _cost(numbered: _Numbered) -> float:
    """How much must be believed of rows: jitter, and the share that is missing but in long gaps.

    From `_REFUSED` on it is too much.
    """
    kept = ~numbered.late
    jitter = float(np.abs(numbered.off).max())
    if not np.count_nonzero(numbered.late) <= LATE_MAX * len(kept) or not np.isfinite(jitter):
        return _REFUSED + jitter
    steps = np.diff(numbered.seq[kept])
    near = steps[steps <= _LONG]
    jitter = float(np.abs(numbered.off[kept]).max())
    return jitter + (1.0 - len(near) / float(near.sum()) if len(near) else 0.0)


def _find_late(seq: Numbers, off: FloatArray) -> Flags:
    """Rows that are too far from their places, and all but the nearest of those in one place."""
    far = np.abs(off)
    late: Flags = ~(far <= JITTER_MAX)
    if (np.diff(seq) > 0).all():
        return late
    # Sorted by place, then by distance: the first of each place is the nearest.
    order = np.lexsort((far, seq))
    is_first = np.diff(seq[order], prepend=seq[order[0]] - 1) != 0
    late[order[~is_first]] = True
    return late


def _numbered(t_s: FloatArray, tried: FloatArray) -> _Numbered:
    """Numbers of samples on the straight line that fits them best."""
    turns = _bridged(t_s, np.rint(_followed(t_s, tried)))
    found = []
    for _ in range(3):
        places = np.rint(turns)
        period_s, start_s = np.polynomial.polynomial.polyfit(places, t_s, 1)[::-1]
        # Many rows determine the period better than few: what was miscounted then shows.
        turns = (t_s - start_s) / period_s
        seq = (places - places[0]).astype(np.int64)
        off = turns - places
        found.append(_Numbered(seq, float(period_s), off, _find_late(seq, off)))
    return min(found, key=_cost)


def _followed(t_s: FloatArray, tried: FloatArray) -> FloatArray:
    """Return times in periods, by rows that are near each other: whole numbers but for jitter.

    The period is that of which few rows in a row, taken together, are the nearest to whole numbers.
    A group's remainder is the angle of Σ exp(2πi·t/period), and must not jump to the next group's.
    """
    length = min(_GROUP, len(t_s))
    starts = np.unique(np.linspace(0, len(t_s) - length, _GROUPS_MAX).astype(np.intp))
    some_s = t_s[starts[:, np.newaxis] + np.arange(length)]
    some_s = some_s - some_s[:, :1]
    steps_s = np.diff(some_s, axis=1)
    is_near = steps_s <= _LONG * np.median(steps_s)
    means_s = (steps_s * is_near).sum(axis=1) / np.maximum(is_near.sum(axis=1), 1)
    mean_s = float(np.median(means_s[is_near.any(axis=1)]))
    scores = [
        np.abs(np.exp(2j * np.pi * some_s / (each * mean_s)).sum(axis=1)).sum() for each in tried
    ]
    period_s = mean_s * float(tried[int(np.argmax(scores))])
    turns = t_s / period_s
    begins = np.diff(turns, prepend=-np.inf) > _LONG
    begins[::_GROUP] = True
    group = np.cumsum(begins) - 1
    sums = np.add.reduceat(np.exp(2j * np.pi * turns), np.flatnonzero(begins))
    remainder = np.unwrap(np.angle(sums)) / (2.0 * np.pi)
    result: FloatArray = turns - remainder[group]
    return result


def _bridged(t_s: FloatArray, places: FloatArray) -> FloatArray:
    """Places with long gaps measured by the period of what lies between them, all together.

    A period determined from few rows would miscount the many that are missing.
    """
    segment = np.cumsum(np.diff(places, prepend=places[0]) > _LONG)
    count = np.bincount(segment)
    mean_s, middle = (np.bincount(segment, some) / count for some in (t_s, places))
    beside = places - middle[segment]
    if not segment[-1] or not (beside @ beside) > 0.0:
        return places
    period_s = float(beside @ (t_s - mean_s[segment])) / float(beside @ beside)
    gaps = np.rint(np.diff(mean_s / period_s - middle, prepend=mean_s[0] / period_s - middle[0]))
    result: FloatArray = places + np.cumsum(gaps)[segment]
    return result


def _checked_steps(t_s: FloatArray) -> FloatArray:
    if len(t_s) < 2:
        raise DatasetError(f"{len(t_s)} samples: at least 2 have a rate", code="few-rows")
    wrong = np.flatnonzero(~np.isfinite(t_s))
    if wrong.size:
        raise DatasetError(
            f"the time of row {wrong[0]} is {t_s[wrong[0]]}, expected a number", code="not-finite"
        )
    step_s: FloatArray = np.diff(t_s)
    if not (step_s > 0.0).all():
        row = int((step_s > 0.0).argmin()) + 1
        raise DatasetError(
            f"time does not rise: row {row} is at {t_s[row]:.9g} s, the row before at "
            f"{t_s[row - 1]:.9g} s; choose rows with --rows A:B, or {IGNORE}",
            code="times-do-not-rise",
        )
    return step_s


def _check_rate(rate_hz: float, what: str) -> None:
    if not RATE_MIN_HZ <= rate_hz <= RATE_MAX_HZ:
        raise DatasetError(
            f"{what}: {rate_hz:.6g} samples per second, limits {RATE_MIN_HZ:g} to "
            f"{RATE_MAX_HZ:g}; --unit t_s=ms or us states the unit of time",
            code="bad-rate",
        )
