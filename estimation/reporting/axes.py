"""Parts that the panels of all figures share: limits, labels with units, legends, notes.

Data stay in SI; only ticks and labels have prefixes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, MaxNLocator

from estimation.reporting.palette import PALETTE
from estimation.types import FloatArray

_PREFIXES = {-15: "f", -12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}


def _scale(peak: float, unit: str) -> tuple[float, str]:
    """Return a factor, and the unit with a prefix where the highest value needs one to be read."""
    if not 1e-300 < peak < math.inf or 0.05 <= peak < 5e4:
        return 1.0, unit
    exponent = 3 * math.floor(math.log10(peak) / 3.0)
    if exponent in _PREFIXES:
        return 10.0**-exponent, _PREFIXES[exponent] + unit
    return 10.0**-exponent, rf"$10^{{{exponent}}}$ {unit}"


def find_peak(*arrays: FloatArray | None) -> float:
    """Return the largest magnitude of all that is known; NaN when nothing is."""
    finite = [values[np.isfinite(values)] for values in arrays if values is not None]
    return max((float(np.abs(values).max()) for values in finite if values.size), default=math.nan)


def set_limits(
    axes: Axes, text: str, unit: str, *values: FloatArray | None, prefixed: bool = True
) -> float:
    """Give the upright axis 0, room around all values, and a label.

    The unit gets a prefix if it may. Returns the largest magnitude, in the unit without prefix.
    """
    finite = [column[np.isfinite(column)] for column in values if column is not None]
    low, high = (reach(np.concatenate([[0.0], *finite])) for reach in (np.min, np.max))
    room = 0.12 * (high - low) or 1.0
    axes.set_ylim(low - room, high + room)
    peak = max(high, -low)
    write_label(axes.yaxis, text, unit, peak if prefixed else 1.0)
    return float(peak)


def write_label(axis: Axis, text: str, unit: str, peak: float, *, is_linear: bool = True) -> None:
    """Write ticks and label with a prefix that suits the highest value."""
    factor, prefixed_unit = _scale(peak, unit)

    def tick(value: float, _: int | None) -> str:
        return f"{value * factor:.6g}".replace("-", "−")

    if is_linear:
        axis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 3, 5, 10]))
    axis.set_major_formatter(FuncFormatter(tick))
    axis.set_label_text(f"{text} ({prefixed_unit})")


def legend_above(axes: Axes, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Draw a legend in one line above the panel, at the right."""
    tight: dict[str, Any] = {"borderaxespad": 0.35, "borderpad": 0.0, "columnspacing": 1.0}
    tight |= {"handletextpad": 0.4, "handlelength": 1.5}
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
    axes.legend(handles, labels, ncols=len(labels), **place, **tight)


def note_if_empty(axes: Axes, values: FloatArray, note: str) -> None:
    """Say in the middle of the panel why it shows nothing, if so."""
    if not np.isfinite(values).any():
        middle: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes.transAxes}
        axes.text(0.5, 0.5, note, color=PALETTE["muted"], **middle)
