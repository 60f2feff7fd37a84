"""Parts shared by the panels of the friction bench's figure: plateaus, speeds, a box of numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes

from estimation.bench.report.picture import BenchPicture, PlateauColumns
from estimation.bench.report.words import quantity_text
from estimation.bench.result import EstimatedQuantity
from estimation.reporting.axes import find_peak, write_label
from estimation.reporting.palette import PALETTE
from estimation.types import FloatArray

DIRECTIONS: Final = ("forward", "backward")
"""Their colours have these names, and their legends begin with them."""
_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def draw_points(
    axes: Axes,
    panel: str,
    points: PlateauColumns,
    *,
    x: FloatArray,
    y: FloatArray,
    sigma: FloatArray,
) -> None:
    """Plateaus with ± σ; the rejected as hollow crosses, at the edge as arrows when beyond it.

    Args:
        axes: With limits already, from `set_limits`.
        panel: Its letter, for the marks' names `plateau-x-NUMBER`.
        points: The plateaus, (n,).
        x: Where they stand, (n,).
        y: How high; those that are NaN are left out, (n,).
        sigma: Its standard deviation, (n,).
    """
    forward = points.motor_velocity_rad_s > 0.0
    marks = dict(zip(DIRECTIONS, ((forward, "o", 3.8), (~forward, "s", 3.5)), strict=True))
    for name, (mask, marker, size) in marks.items():
        chosen = np.flatnonzero(mask & points.is_used & np.isfinite(y))
        bar: dict[str, Any] = {"elinewidth": 0.8, "capsize": 1.8, "capthick": 0.8, "zorder": 3}
        bar |= {"color": PALETTE[name], "ls": "none"}
        dot: dict[str, Any] = {"marker": marker, "ms": size, "mec": PALETTE["paper"], "mew": 0.4}
        axes.errorbar(x[chosen], y[chosen], yerr=np.nan_to_num(sigma[chosen]), **bar)
        if chosen.size:
            axes.errorbar([], [], yerr=[], label=f"{name} plateaus ± σ", **bar, **dot)
        for index in chosen:
            gid = f"plateau-{panel}-{points.number[index]}"
            axes.plot(x[index], y[index], color=PALETTE[name], zorder=4, gid=gid, **dot)
    bottom, top = axes.get_ylim()
    low, high = (0.97 * end + 0.03 * other for end, other in ((bottom, top), (top, bottom)))
    hollow: dict[str, Any] = {"mfc": PALETTE["paper"], "mec": PALETTE["muted"], "mew": 0.7}
    rejected = np.flatnonzero(~points.is_used & np.isfinite(y))
    for index in rejected:
        marker = "^" if y[index] > high else "v" if y[index] < low else "X"
        label = "rejected plateaus (arrow: off scale)" if index == rejected[0] else None
        gid = f"plateau-{panel}-{points.number[index]}"
        height = min(max(y[index], low), high)
        axes.plot(x[index], height, marker, ms=5.0, zorder=3, label=label, gid=gid, **hollow)


def pick_used(points: PlateauColumns, values: FloatArray) -> FloatArray:
    """Return the values of what the fit uses; all, when it uses nothing."""
    return values[points.is_used] if points.is_used.any() else values


def set_speeds(axes: Axes, picture: BenchPicture, points: PlateauColumns) -> float:
    """Make a level axis of motor speed, with 0 in the middle; return the highest one in rad/s."""
    peak = find_peak(picture.band_motor_velocity_rad_s, points.motor_velocity_rad_s)
    write_label(axes.xaxis, "motor speed", "rad/s", peak)
    if peak > 0.0:
        axes.set_xlim(-1.05 * peak, 1.05 * peak)
    return peak


def draw_box(
    axes: Axes, rows: Sequence[tuple[str, EstimatedQuantity | None, str]], y: float
) -> None:
    """Draw a box of numbers at the left.

    Args:
        axes: The panel.
        rows: Name in mathtext, quantity and unit; those without a quantity are left out.
        y: Its height in the panel, 0 to 1: of its top in the upper half, else of its bottom.
    """
    known = [(name, value, unit) for name, value, unit in rows if value is not None]
    lines = [f"{name} = {quantity_text(value, unit)}" for name, value, unit in known]
    if any(value.low is not None for _, value, _ in known):
        lines.append("[ ] 95 % interval")
    # Mathtext knows no raised digits of Unicode.
    text = re.sub("×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", _power_in_mathtext, "\n".join(lines))
    frame = {"facecolor": PALETTE["paper"], "edgecolor": PALETTE["muted"], "linewidth": 0.5}
    place: dict[str, Any] = {"va": "top" if y > 0.5 else "bottom", "transform": axes.transAxes}
    frame |= {"boxstyle": "round,pad=0.45"}
    axes.text(0.018, y, text, fontsize=8.5, linespacing=1.35, bbox=frame, **place)


def _power_in_mathtext(power: re.Match[str]) -> str:
    return rf"$\times10^{{{power[1].translate(_SUPERSCRIPTS)}}}$"
