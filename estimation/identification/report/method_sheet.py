"""The sheet that compares methods: bars of ε_τ, in total and per joint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes

from estimation.identification.report.layout import finish_sheet, start_sheet
from estimation.identification.report.table import percent_text
from estimation.identification.result import Identification
from estimation.reporting.axes import find_peak
from estimation.reporting.numbers import shorten
from estimation.reporting.palette import PALETTE
from estimation.reporting.sheet import HEIGHT_MAX_IN, Sheet, drawable, sheet_style

_COLUMNS: Final = 4
_SCALE_MAX_PERCENT: Final = 130.0
"""The bar of a useless method must not flatten the others; its number is written."""
_BAR: Final = 0.38

_Values = Sequence[float | None]


def draw_methods(result: Identification) -> Sheet:
    """Draw the errors of all methods on identification and validation, with the floor."""
    names = [drawable(shorten(name, 16)) for name in result.joint_names]
    methods = result.methods
    columns = min(_COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    each_in, total_in = 0.42 + 0.26 * len(methods), 0.5 + 0.3 * len(methods)
    height_in = 1.1 + total_in + rows * each_in
    # Where it is too narrow for numbers, they are in the page's table.
    is_wide = height_in <= 1.15 * HEIGHT_MAX_IN
    with sheet_style():
        sheet = start_sheet(result, "Errors of all methods", min(height_in, HEIGHT_MAX_IN))
        grid = sheet.add_gridspec(1 + rows, columns, height_ratios=(total_in, *(each_in,) * rows))
        total = sheet.add_subplot(grid[0, :])
        total.set_title("all joints together", loc="left")
        labels = [f"{m.name} ✓" if m.name == result.chosen else m.name for m in methods]
        _draw_bars(
            total,
            labels,
            [method.identification.moving for method in methods],
            [method.validation.moving if method.validation else None for method in methods],
            has_numbers=True,
            font=8.0,
        )
        if math.isfinite(result.floor_percent):
            look: dict[str, Any] = {"color": PALETTE["truth"], "ls": "--", "lw": 1.0}
            floor = f"floor on identification, {percent_text(result.floor_percent)} %"
            total.axvline(result.floor_percent, label=floor, **look)
        total.set_xlabel("error $\\varepsilon_\\tau$ (% of the torque)")
        for joint, name in enumerate(names):
            row, column = divmod(joint, columns)
            axes = sheet.add_subplot(grid[1 + row, column])
            axes.set_title(name, loc="left", parse_math=False)
            _draw_bars(
                axes,
                labels if column == 0 else [""] * len(labels),
                [method.identification.per_joint[joint] for method in methods],
                [
                    method.validation.per_joint[joint] if method.validation else None
                    for method in methods
                ],
                has_numbers=is_wide,
                font=7.0,
            )
            axes.set_xlabel("error (%)" if joint + columns >= len(names) else "")
            axes.locator_params(axis="x", nbins=4)
        finish_sheet(sheet, [total])
    return sheet


def _draw_bars(
    axes: Axes,
    labels: Sequence[str],
    known: _Values,
    unknown: _Values,
    *,
    has_numbers: bool,
    font: float,
) -> None:
    """Draw two bars per method, with the numbers behind them."""
    y = np.arange(len(labels))
    both = [
        np.array([math.nan if value is None else value for value in values], dtype=np.float64)
        for values in (known, unknown)
    ]
    has_both = not np.isnan(both[1]).all()
    peak = find_peak(*both)
    end = min(peak, _SCALE_MAX_PERCENT) if peak > 0.0 else 1.0
    looks = (("identification", "forward"), ("validation", "backward"))
    for (name, color), values, side in zip(looks, both, (-1.0, 1.0), strict=True):
        if name == "validation" and not has_both:
            continue
        place = y + side * _BAR / 2.0 if has_both else y
        height = _BAR if has_both else 2.0 * _BAR * 0.8
        shown = np.clip(np.nan_to_num(values, posinf=end), 0.0, end)
        axes.barh(place, shown, height, color=PALETTE[color], label=name)
        for at, width, value in zip(place, shown, values, strict=True):
            if has_numbers and not math.isnan(value):
                text = percent_text(value) + ("" if value <= end else " →")
                look: dict[str, Any] = {"va": "center", "ha": "left", "fontsize": 7.0}
                axes.text(width + 0.01 * end, at, text, clip_on=False, **look)
    axes.set_xlim(0.0, 1.18 * end if font > 7.5 else 1.35 * end)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_yticks(y, labels, fontsize=font, parse_math=False)
    axes.tick_params(axis="y", length=0.0)
    axes.grid(visible=False, axis="y")
