"""Sheets about parameters: friction laws, deviation from CAD, singular values.

τ_f(q̇) = fv·q̇ + fc·sign(q̇) + off + fva·|q̇|, and fst·sign(q̇) more at standstill (Stribeck), which
has faded away at the speeds a picture shows. Friction of coupled motors is at their own speeds and
is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from daq.robot.friction import FrictionShape
from estimation.identification.estimators.uncertainty import ESSENTIAL_PERCENT
from estimation.identification.evaluation.traces import Trace
from estimation.identification.report.layout import (
    Cells,
    finish_sheet,
    joint_panels,
    start_sheet,
)
from estimation.identification.report.table import condition_text
from estimation.identification.result import BaseParameter, Identification, ParameterValue
from estimation.reporting.axes import find_peak, note_if_empty
from estimation.reporting.palette import PALETTE
from estimation.reporting.sheet import Sheet, drawable, sheet_style
from estimation.types import FloatArray

_LAWS: Final[dict[str, dict[str, Any]]] = {
    "identified": {"color": PALETTE["forward"], "lw": 1.4},
    "CAD": {"color": PALETTE["backward"], "lw": 1.2, "ls": "--"},
    "truth": {"color": PALETTE["truth"], "lw": 1.0, "ls": ":"},
}
_FRICTION: Final = ("viscous", "coulomb", "offset", "asymmetric", "stribeck")
_SHAPE: Final = FrictionShape(stribeck_velocity_rad_s=math.nan)
"""Stribeck's friction, which alone needs the velocity, is not drawn over speed."""
_LEAST_SHARE: Final = 0.1
"""Of a unit's largest parameter: the least that a deviation is related to."""
_ROWS_IN_COLUMNS: Final = (26, 110)
"""More than so many lines take a second, and a third column."""
_LINEAR_PERCENT: Final = 200.0


def draw_friction(result: Identification, traces: Sequence[Trace]) -> Sheet:
    """Draw friction, identified and by CAD, over the speeds that were measured."""
    laws = find_friction(result)

    def draw(axes: Axes, joint: int) -> None:
        fastest = find_peak(*(trace.dq_rad_s[:, joint] for trace in traces))
        half = (fastest if fastest > 0.0 else 1.0) * np.linspace(0.0, 1.0, 50)
        # Twice almost 0: friction steps there, and a line would slope.
        speed = np.concatenate([-half[::-1], [math.nan], half])
        drawn = [_draw_law(axes, speed, law, label) for label, law in laws[joint].items()]
        axes.plot(speed, np.zeros_like(speed), color=PALETTE["muted"], lw=0.5)
        found = np.concatenate([[math.nan], *drawn])
        note_if_empty(axes, found, "no friction of this joint was identified")

    columns = 1 if len(laws) == 1 else 2
    labels = ("joint speed (rad/s)", "friction (N·m)")
    return joint_panels(result, "Friction laws", Cells(columns, 2.3), draw, labels=labels)


def find_friction(result: Identification) -> list[dict[str, dict[str, float]]]:
    """Return what is known of each joint's friction: by label of `_LAWS`, then by kind."""
    # A base parameter that is mixed with others is not the friction of one joint.
    base = [parameter for parameter in result.base_parameters if parameter.is_alone]
    known: tuple[BaseParameter | ParameterValue, ...] = (*base, *result.parameters)
    sources: dict[str, dict[tuple[str, str], float | None]] = {
        "identified": {(each.joint, each.kind): each.value for each in known},
        "CAD": {(each.joint, each.kind): each.cad for each in known},
        "truth": {(each.joint, each.kind): each.true for each in base},
    }
    laws = []
    for name in result.joint_names:
        found = {
            label: {kind: x for kind in _FRICTION if (x := values.get((name, kind))) is not None}
            for label, values in sources.items()
        }
        laws.append(
            {label: law for label, law in found.items() if {"viscous", "coulomb"} & set(law)}
        )
    return laws


def _draw_law(axes: Axes, speed: FloatArray, law: Mapping[str, float], label: str) -> FloatArray:
    look = _LAWS[label]
    sides = np.where(np.arange(len(speed)) < len(speed) // 2, -1.0, 1.0)
    moving = np.where(speed == 0.0, sides * np.finfo(np.float64).tiny, speed)
    torque = _SHAPE.torque_nm({k: v for k, v in law.items() if k != "stribeck"}, moving)
    axes.plot(speed, torque, label=label, **look)
    if law.get("stribeck"):
        offset, highest = law.get("offset", 0.0), law.get("coulomb", 0.0) + law["stribeck"]
        dots: dict[str, Any] = {"ls": "none", "marker": "D", "ms": 3.5, "color": look["color"]}
        breakaway = (offset - highest, offset + highest)
        axes.plot([0.0, 0.0], breakaway, label=f"{label}, at standstill", **dots)
    return torque


class _Row(NamedTuple):
    """A line of the dot plot: a unit's heading, or a parameter; in percent."""

    label: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    true: float = math.nan
    is_identifiable: bool = True
    is_heading: bool = False


def draw_parameters(result: Identification) -> Sheet:
    """Draw base parameters with intervals, as deviations from CAD; without CAD, as shares.

    Related to CAD's value, or to a tenth of the largest one of the same unit where that is more:
    else a parameter that is nearly 0 would fill the picture.
    """
    has_cad = any(base.cad is not None for base in result.base_parameters)
    rows = _rows(result.base_parameters, has_cad=has_cad)
    columns = 1 + sum(len(rows) > most for most in _ROWS_IN_COLUMNS)
    length = max(math.ceil(len(rows) / columns), 1)
    parts = [_part(rows, first, length) for first in range(0, len(rows), length)] or [[]]
    title = "Base parameters against CAD" if has_cad else "Base parameters"
    with sheet_style():
        sheet = start_sheet(result, title, 1.5 + 0.165 * max(length, 14))
        grid = sheet.add_gridspec(1, len(parts))
        panels = [sheet.add_subplot(grid[0, column]) for column in range(len(parts))]
        for axes, part in zip(panels, parts, strict=True):
            _draw_rows(axes, part, rows)
            axes.set_xlabel("deviation from CAD (%)" if has_cad else "share of the largest (%)")
            axes.set_ylabel("")
        panels[0].set_ylabel("base parameter (* combined with others)")
        finish_sheet(sheet, panels)
    return sheet


def _rows(parameters: Sequence[BaseParameter], *, has_cad: bool) -> list[_Row]:
    rows = []
    for unit in dict.fromkeys(base.unit for base in parameters):
        own = [base for base in parameters if base.unit == unit]
        rows.append(_Row(f"— {drawable(unit)} —", is_heading=True))
        sizes = [abs(base.cad or 0.0) if has_cad else abs(base.value) for base in own]
        largest = find_peak(np.array(sizes))
        for base, size in zip(own, sizes, strict=True):
            scale = max(size, _LEAST_SHARE * largest) if has_cad else largest
            middle = (base.cad or 0.0) if has_cad else 0.0
            percent = 100.0 / scale if scale > 0.0 else math.nan
            star = "" if base.is_alone else "*"
            true = math.nan if base.true is None else base.true
            value, low, high, true = (
                (number - middle) * percent for number in (base.value, base.low, base.high, true)
            )
            label = f"{drawable(base.symbol)}{star}"
            is_identifiable = base.relative_percent <= ESSENTIAL_PERCENT
            rows.append(_Row(label, value, low, high, true, is_identifiable))
    return rows


def _part(rows: Sequence[_Row], first: int, length: int) -> list[_Row]:
    """Return the lines of a column, which begins with a heading."""
    part = list(rows[first : first + length])
    if not part[0].is_heading:
        headings = [row for row in rows[:first] if row.is_heading]
        part.insert(0, headings[-1])
    return part[:-1] if part[-1].is_heading else part


def _draw_rows(axes: Axes, rows: Sequence[_Row], everything: Sequence[_Row]) -> None:
    y = np.arange(len(rows))
    value, low, high, true = (
        np.array([getattr(row, name) for row in rows], dtype=np.float64)
        for name in ("value", "low", "high", "true")
    )
    is_identifiable = np.array([row.is_identifiable for row in rows], dtype=bool)
    axes.axvline(0.0, color=PALETTE["muted"], lw=0.8)
    kinds = {
        "estimate and 95 % interval": (is_identifiable, PALETTE["forward"], PALETTE["forward"]),
        "the same, σ above 30 %": (~is_identifiable, PALETTE["muted"], PALETTE["paper"]),
    }
    for label, (mask, color, fill) in kinds.items():
        chosen = np.flatnonzero(mask & np.isfinite(value))
        bar: dict[str, Any] = {"elinewidth": 0.9, "fmt": "o", "ms": 3.4, "mew": 0.8}
        bar |= {"color": color, "mfc": fill, "capsize": 1.5}
        sides = np.nan_to_num([value[chosen] - low[chosen], high[chosen] - value[chosen]])
        widths = np.clip(sides, 0.0, None)
        if chosen.size:
            axes.errorbar(value[chosen], y[chosen], xerr=widths, label=label, **bar)
    if np.isfinite(true).any():
        cross: dict[str, Any] = {"marker": "x", "ms": 4.5, "mew": 1.1, "ls": "none", "zorder": 5}
        axes.plot(true, y, color=PALETTE["truth"], label="truth", **cross)
    axes.set_yticks(
        y, [row.label for row in rows], fontsize=7.5 if len(rows) < 50 else 7.0, parse_math=False
    )
    axes.tick_params(axis="y", length=0.0)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    _set_percents(axes, everything)
    note_if_empty(axes, value, "no base parameter")


def _set_percents(axes: Axes, rows: Sequence[_Row]) -> None:
    """Set a linear scale where all fits; else logarithmic beyond 100 %, so that all is visible."""
    peak = find_peak(np.array([row[1:5] for row in rows], dtype=np.float64).ravel())
    if not peak > 0.0:
        return
    if peak > _LINEAR_PERCENT:
        axes.set_xscale("symlog", linthresh=100.0, linscale=1.5)
        powers = range(2, math.ceil(math.log10(peak)) + 1, 1 + int(math.log10(peak)) // 3)
        ticks = [10.0**power for power in powers]
        axes.set_xticks([*(-tick for tick in reversed(ticks)), 0.0, *ticks])
        axes.set_xlim(-1.6 * peak, 1.6 * peak)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
        axes.set_xlim(-1.1 * peak, 1.1 * peak)
    axes.xaxis.set_major_formatter(FuncFormatter(_percent_tick))


def _percent_tick(value: float, _: int | None) -> str:
    if abs(value) < 1e4:
        return f"{value:.6g}".replace("-", "−")
    return rf"${'-' if value < 0.0 else ''}10^{{{round(math.log10(abs(value)))}}}$"


def draw_singular_values(result: Identification) -> Sheet:
    """Draw the singular values of the base regressor, with its condition."""
    values = np.array(result.singular_values, dtype=np.float64)
    shown = np.where(np.isfinite(values) & (values > 0.0), values, math.nan)
    title = (
        f"Singular values of the base regressor: condition {condition_text(result.condition)}, "
        f"{condition_text(result.condition_scaled)} with columns of length 1"
    )
    with sheet_style():
        sheet = start_sheet(result, title, 3.4, has_legend=False)
        axes = sheet.add_subplot()
        numbers = np.arange(1, len(values) + 1)
        axes.plot(numbers, shown, "o-", color=PALETTE["forward"], ms=3.5, lw=0.8)
        axes.set_xlim(0.0, max(len(values), 1) + 1.0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("number of the singular value (1)")
        axes.set_ylabel("singular value (N·m per SI unit)")
        if np.isfinite(shown).any():
            axes.set_yscale("log")
        missing = int(np.count_nonzero(~np.isfinite(shown)))
        if missing and len(values) > missing:
            axes.set_title(f"{missing} of {len(values)} are zero: not excited", loc="left")
        note_if_empty(axes, shown, "no singular values")
        finish_sheet(sheet, [axes])
    return sheet
