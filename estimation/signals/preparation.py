"""From measured samples to the rows of a regression: filtered, trimmed, thinned out.

Positions, velocities, accelerations and torques pass the same filter without delay, at the full
rate: a model that holds for the samples then holds for the rows (as far as it is linear in what is
filtered), and what the filter takes from one side it takes from the other. Borders, where the
filter had to invent what lies beyond, are dropped; an untrimmed border turned an error of 0.08 %
into 13.6 %. Then every n-th row is kept: above the cut-off nothing is left that could fold back.

Filtered torques make an error look smaller than it is: `Prepared.tau_raw_nm` has the unfiltered
ones beside them, to state the error against.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from estimation.errors import DatasetError
from estimation.recordings.segment import Segment
from estimation.recordings.uniform_rows import widened
from estimation.signals.filters import (
    STENCIL_ROWS,
    central_difference,
    check_cutoff,
    derivative,
    low_pass,
    second_difference,
)
from estimation.signals.settings import PreparationSettings, choose_settings
from estimation.signals.spectra import derivative_fft, low_pass_fft
from estimation.types import Flags, FloatArray, Rows

__all__ = [
    "PeriodAverage",
    "PreparationSettings",
    "Prepared",
    "average_periods",
    "choose_settings",
    "prepare",
]

_PERIOD_TOLERANCE_ROWS = 0.01
_WIDER, _WIDEST = 5.0, 0.2
"""Band in which a velocity's sign is taken: so many times the cut-off, at most so much of the
rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Rows of a regression; arrays of shape (n,) or (n, joints).

    Attributes:
        source: The recording.
        period_s: Time between two rows.
        t_s: Since the recording's first sample.
        q_rad: Joint angles.
        dq_rad_s: Joint velocities.
        ddq_rad_s2: Joint accelerations.
        tau_nm: Torques at the joints, filtered like the angles.
        tau_raw_nm: The same, unfiltered.
        use: Whether a joint counts in a row.
        switching: Columns of friction that switches with a velocity's sign, filtered like the
            torques, shape (n, k); None where nobody asked for them.
    """

    source: Path
    period_s: float
    t_s: FloatArray
    q_rad: FloatArray
    dq_rad_s: FloatArray
    ddq_rad_s2: FloatArray
    tau_nm: FloatArray
    tau_raw_nm: FloatArray
    use: Flags
    switching: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.t_s)

    def select(self, rows: slice | Flags | Rows) -> Prepared:
        """Return some of the rows."""
        names = ("t_s", "q_rad", "dq_rad_s", "ddq_rad_s2", "tau_nm", "tau_raw_nm", "use")
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in names}
        if self.switching is not None:
            parts["switching"] = self.switching[rows]
        return replace(self, **parts)


class PeriodAverage(NamedTuple):
    """The mean period of a repeated motion.

    Attributes:
        prepared: Its rows.
        periods: How many were averaged.
    """

    prepared: Prepared
    periods: int


def prepare(
    segment: Segment,
    settings: PreparationSettings,
    switching: Callable[[FloatArray], FloatArray] | None = None,
) -> Prepared:
    """Filter, differentiate, trim and thin out a segment.

    The lags of the board's own filters are taken out: y + τ·dy/dt. Rows are counted from the
    beginning of the segment, so that parts of a long one give the same rows as the whole.

    Args:
        segment: Samples without a gap.
        settings: How.
        switching: From velocities to columns that jump with their sign
            (`switching` of `estimation.model.regressor`).

    Returns:
        Rows; none where the segment is too short for anything to be left.

    Raises:
        DatasetError: The settings do not fit: cut-off above half the rate, no measured velocity.
    """
    rate_hz = segment.rate_hz
    kept = _kept_rows(segment, settings)
    filters = _Filters(settings, rate_hz)
    if not len(kept) or len(segment) <= filters.rows_min:
        kept = kept[:0]
        nothing = np.empty((0, segment.q_rad.shape[1]))
        q = dq = ddq = tau = nothing
        jumps = None if switching is None else switching(nothing)
    else:
        angle = filters.smooth(segment.q_rad)
        q = angle[kept]
        if settings.velocity == "measured":
            if segment.dq_rad_s is None:
                raise DatasetError(
                    f"{segment.source}: has no measured velocity; use velocity 'differentiated'",
                    code="no-velocity",
                )
            speed = filters.without_lag(filters.smooth(segment.dq_rad_s), segment.velocity_lag_s)
            bend = filters.slope(speed)
        else:
            speed, bend = filters.slope_and_bend(angle)
        del angle
        dq, ddq = speed[kept], bend[kept]
        jumps = None
        if switching is not None:
            jumps = filters.smooth(switching(filters.quick_slope(segment.q_rad)))[kept]
        del speed, bend
        tau = filters.without_lag(filters.smooth(segment.tau_nm), segment.torque_lag_s)[kept]
    slow = settings.exclude_slow_rad_s
    use = np.ones(q.shape, bool) if slow is None else np.abs(dq) >= np.asarray(slow)
    if segment.is_in_gap is not None:
        use &= ~widened(segment.is_in_gap)[kept][:, np.newaxis]
    return Prepared(
        source=segment.source,
        period_s=segment.period_s * settings.decimation,
        t_s=segment.t_s[kept],
        q_rad=q,
        dq_rad_s=dq,
        ddq_rad_s2=ddq,
        tau_nm=tau,
        tau_raw_nm=segment.tau_nm[kept],
        use=use,
        switching=jumps,
    )


def average_periods(prepared: Prepared, period_s: float) -> PeriodAverage:
    """Return the mean over whole periods of a repeated motion; an incomplete last one is dropped.

    Args:
        prepared: Rows without a gap.
        period_s: Of the motion; a whole number of rows.

    Returns:
        One period. A joint counts in a row only where it did in every period.

    Raises:
        DatasetError: A period is not a whole number of rows, or there is none.
    """
    rows_per_period = period_s / prepared.period_s
    rows = round(rows_per_period)
    if not period_s > 0.0 or abs(rows_per_period - rows) > _PERIOD_TOLERANCE_ROWS:
        raise DatasetError(
            f"a period of {period_s:g} s is {rows_per_period:.3f} rows of {prepared.period_s:g} s: "
            "choose a decimation that divides it",
            code="period-not-whole-rows",
        )
    periods = len(prepared) // rows
    if not periods:
        raise DatasetError(
            f"{prepared.source}: {len(prepared)} rows are less than one period of {rows}",
            code="less-than-a-period",
        )
    whole = slice(0, periods * rows)
    names = ["q_rad", "dq_rad_s", "ddq_rad_s2", "tau_nm", "tau_raw_nm"]
    if prepared.switching is not None:
        names.append("switching")

    def folded(name: str) -> Any:
        return getattr(prepared, name)[whole].reshape(periods, rows, -1)

    means: dict[str, Any] = {name: folded(name).mean(axis=0) for name in names}
    use: Flags = folded("use").all(axis=0)
    mean = replace(prepared, t_s=prepared.t_s[:rows], use=use, **means)
    return PeriodAverage(mean, periods)


class _Filters:
    """The same filter for every signal."""

    def __init__(self, settings: PreparationSettings, rate_hz: float) -> None:
        self._settings = settings
        self._rate_hz = rate_hz
        self.rows_min = max(3 * settings.order, 4 * STENCIL_ROWS)
        check_cutoff(settings.cutoff_hz, rate_hz)

    def smooth(self, values: FloatArray) -> FloatArray:
        settings = self._settings
        if settings.method == "fft":
            return low_pass_fft(values, cutoff_hz=settings.cutoff_hz, rate_hz=self._rate_hz)
        return low_pass(
            values, order=settings.order, cutoff_hz=settings.cutoff_hz, rate_hz=self._rate_hz
        )

    def slope(self, smooth: FloatArray) -> FloatArray:
        if self._settings.method == "fft":
            return derivative_fft(smooth, cutoff_hz=self._settings.cutoff_hz, rate_hz=self._rate_hz)
        if self._settings.differences == "second":
            return central_difference(smooth, rate_hz=self._rate_hz)
        return derivative(smooth, rate_hz=self._rate_hz)

    def slope_and_bend(self, smooth: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope = self.slope(smooth)
        settings = self._settings
        if settings.method == "butterworth" and settings.differences == "second":
            return slope, second_difference(smooth, rate_hz=self._rate_hz)
        return slope, self.slope(slope)

    def quick_slope(self, values: FloatArray) -> FloatArray:
        """Return the slope within a wider band: when its sign changes matters more than noise."""
        wide_hz = min(_WIDER * self._settings.cutoff_hz, _WIDEST * self._rate_hz)
        cutoff_hz = max(wide_hz, self._settings.cutoff_hz)
        smooth = low_pass(values, order=2, cutoff_hz=cutoff_hz, rate_hz=self._rate_hz)
        return derivative(smooth, rate_hz=self._rate_hz)

    def without_lag(self, smooth: FloatArray, lag_s: FloatArray | float) -> FloatArray:
        return smooth + lag_s * self.slope(smooth) if np.any(lag_s) else smooth


def _kept_rows(segment: Segment, settings: PreparationSettings) -> Rows:
    """Which rows stay: none of a border, none of another part, every n-th of the segment."""
    trim = math.ceil(settings.trim_s / segment.period_s)
    first = trim if segment.is_beginning else segment.lead_rows
    # A border is felt beyond a part that is shorter than that.
    first = max(first, trim - segment.rows_before)
    last = len(segment) - (trim if segment.is_end else segment.tail_rows)
    last = min(last, len(segment) + segment.rows_after - trim)
    rows = np.arange(first, max(first, last))
    kept: Rows = rows[(rows + segment.rows_before) % settings.decimation == 0]
    return kept
