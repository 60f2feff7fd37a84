"""Sheets over time and frequency: torques, residuals, and their spectra.

Curves of many thousand rows are thinned to few points that look the same on paper.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from scipy import signal

from estimation.identification.evaluation.traces import Trace
from estimation.identification.report.layout import Cells, joint_panels
from estimation.identification.result import Identification
from estimation.reporting.axes import find_peak, note_if_empty
from estimation.reporting.palette import PALETTE
from estimation.reporting.sheet import Sheet
from estimation.types import Flags, FloatArray, Rows

_POINTS: Final = 1500
"""Of a curve over the width of a sheet."""
_SHOWN_S: Final = 40.0
"""Of torques: over a longer time, two curves that nearly agree could not be told apart."""
_OUTLIER: Final = 3.0
_ARRAYS: Final = ("t_s", "dq_rad_s", "measured_nm", "raw_nm", "predicted_nm", "use")
_JOINTS_IN_A_COLUMN: Final = 6
_TIME_LABEL: Final = "time since the first sample (s)"
_SEGMENT_S: Final = 10.0
"""One period of the usual excitation: its harmonics then have bins of their own."""
_SEGMENT_ROWS_MIN: Final = 16
_GAP: Final = 1.5
"""Rows further apart than so many periods have something missing between them."""
_DECADES: Final = 6
"""Of a spectrum; below is what a filter leaves of nothing."""

_LOOKS: Final[dict[str, dict[str, Any]]] = {
    "measured, unfiltered": {"color": PALETTE["band"], "lw": 0.5, "alpha": 0.7},
    "measured, filtered": {"color": PALETTE["forward"], "lw": 1.6},
    "predicted": {"color": PALETTE["backward"], "lw": 0.8},
}


def draw_torques(result: Identification, trace: Trace) -> Sheet:
    """Draw measured and predicted torque over time."""
    first = _first_part(trace)
    trace = replace(trace, **{name: getattr(trace, name)[first] for name in _ARRAYS})
    curves = dict(zip(_LOOKS, (trace.raw_nm, trace.measured_nm, trace.predicted_nm), strict=True))
    cells = _cells(result)

    def draw(axes: Axes, joint: int) -> None:
        for label, values in curves.items():
            _plot(axes, trace, values[:, joint], cells, label=label, **_LOOKS[label])
        # Unfiltered outliers must not flatten the rest.
        _set_heights(axes, trace.measured_nm[:, joint], trace.predicted_nm[:, joint])
        note_if_empty(axes, trace.measured_nm[:, joint], "no torque was measured")

    part = f", first {_SHOWN_S:g} s" if first.stop is not None else ""
    title = f"Measured and predicted torques: {trace.title}{part}"
    return joint_panels(result, title, cells, draw, labels=(_TIME_LABEL, "torque (N·m)"))


def draw_residuals(result: Identification, trace: Trace) -> Sheet:
    """Draw residual torques over time; rows that do not count are shaded."""
    left = trace.measured_nm - trace.predicted_nm
    cells = _cells(result)

    def draw(axes: Axes, joint: int) -> None:
        spans = [
            (trace.t_s[first], trace.t_s[end - 1] - trace.t_s[first] + trace.period_s)
            for first, end in runs(~trace.use[:, joint])
        ]
        across = axes.get_xaxis_transform()
        shade: dict[str, Any] = {"facecolor": PALETTE["band"], "alpha": 0.45, "lw": 0.0}
        axes.broken_barh(spans, (0.0, 1.0), transform=across, label="too slow: not fitted", **shade)
        axes.grid(visible=False)
        axes.axhline(0.0, color=PALETTE["muted"], lw=0.5)
        look: dict[str, Any] = {"color": PALETTE["forward"], "lw": 0.7}
        _plot(axes, trace, left[:, joint], cells, label="measured less predicted", **look)
        # Where a joint sticks, residuals may be much larger: that must not flatten the rest.
        used = find_peak(left[trace.use[:, joint], joint])
        most = _OUTLIER * used if used > 0.0 else np.inf
        _set_heights(axes, np.clip(left[:, joint], -most, most))
        note_if_empty(axes, left[:, joint], "no torque was measured")

    title = f"Residual torques: {trace.title}"
    return joint_panels(result, title, cells, draw, labels=(_TIME_LABEL, "residual (N·m)"))


def draw_spectra(result: Identification, trace: Trace) -> Sheet:
    """Draw the amplitude density of the torque and of its residual, over frequency.

    Of the longest segment without a gap.
    """
    part = longest_part(trace.t_s, trace.period_s)
    curves: dict[str, tuple[FloatArray, dict[str, Any]]] = {
        "measured torque, filtered": (
            trace.measured_nm,
            {"color": PALETTE["forward"], "lw": 0.9},
        ),
        "residual": (
            trace.measured_nm - trace.predicted_nm,
            {"color": PALETTE["backward"], "lw": 0.8},
        ),
    }
    columns = 1 if len(result.joint_names) == 1 else 2

    def draw(axes: Axes, joint: int) -> None:
        shown = []
        for label, (values, look) in curves.items():
            frequency_hz, density = _density(values[part, joint], trace.period_s)
            axes.plot(frequency_hz, density, label=label, **look)
            shown.append(density)
        everything = np.concatenate(shown)
        peak = find_peak(everything)
        if peak > 0.0:
            axes.set_xscale("log")
            axes.set_yscale("log")
            lowest = max(float(np.nanmin(everything)), peak * 10.0**-_DECADES)
            axes.set_ylim(0.5 * lowest, 3.0 * peak)
        if np.isfinite(result.cutoff_hz) and result.cutoff_hz > 0.0:
            look = {"color": PALETTE["truth"], "ls": "--", "lw": 0.9}
            axes.axvline(result.cutoff_hz, label=f"cut-off, {result.cutoff_hz:.3g} Hz", **look)
        note_if_empty(axes, everything, "too short for a spectrum")

    title = f"Spectra of torque and residual: {trace.title}"
    labels = ("frequency (Hz)", "density (N·m/√Hz)")
    return joint_panels(result, title, Cells(columns, 2.3), draw, labels=labels)


def _cells(result: Identification) -> Cells:
    return Cells(1 if len(result.joint_names) <= _JOINTS_IN_A_COLUMN else 2, 2.0)


def _first_part(trace: Trace) -> slice:
    """Return the rows that are shown of torques; all of them without an end."""
    after = np.flatnonzero(trace.t_s - trace.t_s[:1] > _SHOWN_S)
    return slice(None, int(after[0]) if len(after) else None)


def _plot(axes: Axes, trace: Trace, values: FloatArray, cells: Cells, **look: Any) -> None:
    t_s, shown = with_gaps(trace.t_s, values, trace.period_s)
    axes.plot(*thin(t_s, shown, _POINTS // cells.columns), **look)
    if len(trace.t_s) > 1:
        axes.set_xlim(trace.t_s[0], trace.t_s[-1])


def _set_heights(axes: Axes, *curves: FloatArray) -> None:
    peak = find_peak(*curves)
    if not peak > 0.0:
        return
    finite = np.concatenate([values[np.isfinite(values)] for values in curves])
    low, high = float(finite.min()), float(finite.max())
    room = 0.08 * (high - low) or peak
    axes.set_ylim(low - room, high + room)


def _density(values: FloatArray, period_s: float) -> tuple[FloatArray, FloatArray]:
    """Return frequencies and amplitude density, without the mean; NaN where there is too little."""
    rows = min(len(values), round(_SEGMENT_S / period_s))
    if rows < _SEGMENT_ROWS_MIN or not np.isfinite(values).all():
        return np.full(1, np.nan), np.full(1, np.nan)
    frequency_hz, power = signal.welch(values, 1.0 / period_s, nperseg=rows)
    density = np.sqrt(power[1:])
    return frequency_hz[1:], np.where(density > 0.0, density, np.nan)


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
