"""The panels of the friction bench's figure, one function each.

Friction has five on a sheet, a load arm two. Sizes, fonts and files are up to `figure`.
"""

from __future__ import annotations

import math
from itertools import cycle
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from estimation.bench.report.axes import DIRECTIONS, draw_box, draw_points, pick_used, set_speeds
from estimation.bench.report.picture import (
    BenchPicture,
    PlateauColumns,
    plateau_columns,
    true_curve,
)
from estimation.bench.report.words import model_title
from estimation.bench.result import BenchResult
from estimation.reporting.axes import (
    find_peak,
    legend_above,
    note_if_empty,
    set_limits,
    write_label,
)
from estimation.reporting.numbers import number_text
from estimation.reporting.palette import PALETTE
from estimation.types import FloatArray

_OTHER_LINES: Final = (":", "-.", (0, (6, 1, 1, 1, 1, 1)))


def draw_friction(figure: Figure, result: BenchResult, picture: BenchPicture) -> None:
    """Draw the five panels of friction on an empty figure."""
    grid = figure.add_gridspec(5, 2, height_ratios=(3.5, 2.1, 1.25, 0.8, 1.45))
    points = plateau_columns(result, picture)
    _draw_torque(figure.add_subplot(grid[0, :]), result, picture, points)
    _draw_residuals(figure.add_subplot(grid[1, 0]), result, picture, points)
    _draw_angle(figure.add_subplot(grid[1, 1]), picture)
    speed = figure.add_subplot(grid[2, :])
    current = figure.add_subplot(grid[3, :], sharex=speed)
    drift = figure.add_subplot(grid[4, :], sharex=speed)
    _draw_timeline(speed, current, result, picture)
    _draw_drift(drift, result, points)
    for axes in (speed, current):
        axes.tick_params(labelbottom=False)
    drift.set_xlabel("time since the beginning of the recording (s)")
    drift.set_xlim(0.0, max(result.duration_s, 1e-3))


def _draw_torque(
    axes: Axes, result: BenchResult, picture: BenchPicture, points: PlateauColumns
) -> None:
    """Panel a, as Figure 4.4. Friction leaves two quadrants empty: there is room for words."""
    axes.set_title("(a) Motor torque against speed", loc="left")
    _draw_curves(axes, result, picture, np.zeros_like(picture.fit_nm))
    speed = set_speeds(axes, picture, points)
    torque = set_limits(
        axes, "motor torque", "N·m", pick_used(points, points.torque_nm), picture.fit_nm
    )
    x, y = points.motor_velocity_rad_s, points.torque_nm
    draw_points(axes, "a", points, x=x, y=y, sigma=points.sigma_nm)
    gear = result.gear_reduction
    top = axes.secondary_xaxis("top", functions=_times(1.0 / gear))
    right = axes.secondary_yaxis("right", functions=_times(gear))
    write_label(top.xaxis, "joint speed", "rad/s", speed / gear)
    write_label(right.yaxis, "load-side torque", "N·m", torque * gear)
    is_reversed = bool(np.nansum((x * y)[points.is_used]) < 0.0)
    handles, labels = axes.get_legend_handles_labels()
    pairs = sorted(zip(handles, labels, strict=True), key=lambda pair: _rank(pair[1]))
    corner: Any = "upper right" if is_reversed else "lower right"
    axes.legend([handle for handle, _ in pairs], [label for _, label in pairs], loc=corner)
    rows = (
        ("$b_{eq}$", result.b_eq_nms, "N·m·s/rad"),
        ("$f$", result.f_nm, "N·m at the load"),
        ("breakaway", result.breakaway_nm, "N·m at the load"),
        ("$J_{eq}$", result.inertia_kg_m2, "kg·m²"),
        ("$K_i$", result.torque_constant_nm_per_a, "N·m/A"),
    )
    draw_box(axes, rows, 0.04 if is_reversed else 0.96)
    note_if_empty(axes, np.append(y, picture.fit_nm), "no plateau was measured")


def _times(factor: float) -> Any:
    """Return a scale and its inverse, for a second axis."""
    return (lambda value: value * factor, lambda value: value / factor)


def _rank(label: str) -> int:
    """Return the order of the legend: what was measured comes first."""
    return [label.startswith(word) for word in (*DIRECTIONS, "rejected", "")].index(True)


def _draw_residuals(
    axes: Axes, result: BenchResult, picture: BenchPicture, points: PlateauColumns
) -> None:
    axes.set_title("(b) Residuals by speed", loc="left")
    _draw_curves(axes, result, picture, picture.fit_nm)
    truth = true_curve(result, picture.band_motor_velocity_rad_s)
    highest = points.residual_nm + np.copysign(np.nan_to_num(points.sigma_nm), points.residual_nm)
    bands = (picture.band_low_nm - picture.fit_nm, picture.band_high_nm - picture.fit_nm)
    lines = (None if truth is None else truth - picture.fit_nm, *bands)
    set_limits(axes, "residual motor torque", "N·m", pick_used(points, highest), *lines)
    peak = set_speeds(axes, picture, points)
    slowest = np.abs(points.motor_velocity_rad_s).min(initial=peak)
    if 0.0 < slowest < 0.1 * peak:  # speeds over decades: where friction bends, they are slow
        axes.set_xscale("symlog", linthresh=slowest, linscale=0.4)
        axes.set_xlim(-1.5 * peak, 1.5 * peak)
        write_label(axes.xaxis, "motor speed", "rad/s", peak, is_linear=False)
    x, y = points.motor_velocity_rad_s, points.residual_nm
    draw_points(axes, "b", points, x=x, y=y, sigma=points.sigma_nm)
    note_if_empty(axes, y, "no fit")


def _draw_curves(
    axes: Axes, result: BenchResult, picture: BenchPicture, offset_nm: FloatArray
) -> None:
    """Fit, band, other models and truth over speed, above an offset."""
    if not np.isfinite(picture.fit_nm).any():
        return
    x = picture.band_motor_velocity_rad_s
    low, high = picture.band_low_nm - offset_nm, picture.band_high_nm - offset_nm
    axes.fill_between(x, low, high, color=PALETTE["band"], lw=0, label="95 % band of the fit")
    fit = f"fit: {model_title(result.model)}"
    axes.plot(x, picture.fit_nm - offset_nm, color=PALETTE["fit"], lw=1.1, label=fit)
    for (name, curve), line in zip(picture.model_curves.items(), cycle(_OTHER_LINES)):
        title = model_title(name)
        axes.plot(x, curve - offset_nm, ls=line, lw=0.9, color=PALETTE["muted"], label=title)
    truth = true_curve(result, x)
    if truth is not None:
        axes.plot(x, truth - offset_nm, ls="--", lw=0.8, color=PALETTE["truth"], label="truth")


def _draw_angle(axes: Axes, picture: BenchPicture) -> None:
    axes.set_title("(c) Residuals by angle", loc="left")
    residuals = (picture.forward_residual_nm, picture.backward_residual_nm)
    both = dict(zip(DIRECTIONS, residuals, strict=True))
    lines = [
        axes.plot(picture.angle_rad, residual, ls=line, lw=1.0, color=PALETTE[name])[0]
        for (name, residual), line in zip(both.items(), ("-", "--"), strict=True)
    ]
    set_limits(axes, "residual motor torque", "N·m", *both.values())
    axes.set_xlabel("motor angle within a turn (rad)")
    axes.set_xlim(0.0, 2.0 * math.pi)
    axes.set_xticks(np.arange(5) * math.pi / 2.0, ["0", "π/2", "π", "3π/2", "2π"])
    legend_above(axes, lines, list(both))
    note_if_empty(axes, np.concatenate(list(both.values())), "no slow plateau")


def _draw_timeline(speed: Axes, current: Axes, result: BenchResult, picture: BenchPicture) -> None:
    """Panel d: speed and current, with what was averaged and what was rejected behind them."""
    speed.set_title("(d) Speed and current over time", loc="left")
    starts = [plateau.start_s for plateau in result.plateaus] + [result.duration_s]
    spans: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for plateau, following_s in zip(result.plateaus, starts[1:], strict=True):
        start_s, end_s = plateau.window_s or (plateau.start_s, following_s)
        spans[plateau.is_used].append((start_s, end_s - start_s))
    looks: dict[bool, dict[str, Any]] = {
        True: {"facecolor": PALETTE["accepted"], "lw": 0.0},
        False: {"facecolor": "none", "edgecolor": PALETTE["muted"], "lw": 0.0, "hatch": "/////"},
    }
    for axes in (speed, current):
        axes.grid(visible=False)
        for is_used, look in looks.items():
            across = axes.get_xaxis_transform()
            axes.broken_barh(spans[is_used], (0.0, 1.0), transform=across, **look)
    wide: dict[str, Any] = {"color": PALETTE["band"], "lw": 2.0}
    thin: dict[str, Any] = {"color": PALETTE["fit"], "lw": 0.6}
    (reference,) = speed.plot(picture.t_s, picture.reference_velocity_rad_s, **wide)
    (measured,) = speed.plot(picture.t_s, picture.joint_velocity_rad_s, **thin)
    current.plot(picture.t_s, picture.iq_a, **thin)
    set_limits(speed, "joint speed", "rad/s", picture.joint_velocity_rad_s)
    set_limits(current, "$i_q$", "A", picture.iq_a)
    handles = [reference, measured, *(Patch(**look) for look in looks.values())]
    legend_above(speed, handles, ["commanded", "measured", "accepted", "rejected"])


def _draw_drift(axes: Axes, result: BenchResult, points: PlateauColumns) -> None:
    axes.set_title("(e) Drift of friction", loc="left")
    f_nm = result.f_motor_nm.value if result.f_motor_nm else 0.0
    scale = 100.0 / f_nm if f_nm > 0.0 else math.nan
    change = points.residual_nm * np.sign(points.motor_velocity_rad_s) * scale
    sigma = points.sigma_nm * scale
    highest = change + np.copysign(np.nan_to_num(sigma), change)
    set_limits(axes, "change", "% of $f$", pick_used(points, highest), prefixed=False)
    draw_points(axes, "e", points, x=points.t_s, y=change, sigma=sigma)
    known = points.is_used & np.isfinite(change)
    if known.sum() > 1:
        half, middle = result.drift_percent / 2.0, float(change[known].mean())
        line, word = (
            ("-", "significant") if result.drift_is_significant else (":", "not significant")
        )
        ends = (points.t_s[known].min(), points.t_s[known].max())
        look: dict[str, Any] = {"ls": line, "color": PALETTE["fit"], "lw": 1.1}
        handles = axes.plot(ends, (middle - half, middle + half), **look)
        label = f"from first to last {result.drift_percent:+.2g} %, {word}".replace("-", "−")
        legend_above(axes, handles, [label])
    if np.isfinite(points.temperature_degc).any():
        right = axes.twinx()
        right.plot(points.t_s, points.temperature_degc, color=PALETTE["heat"], lw=0.8)
        right.set_ylabel("winding (°C)", color=PALETTE["heat"])
        right.grid(visible=False)
    note_if_empty(axes, change, "no fit")


def draw_load_arm(figure: Figure, result: BenchResult, picture: BenchPicture) -> None:
    """Torque over current with the straight line of equation 4.3, and the deviation from it."""
    current = np.asarray(picture.load_current_a, dtype=np.float64)
    order = np.argsort(current)
    current, unknown = current[order], np.full(current.shape, math.nan)
    torque, fit = (
        unknown if values is None else values[order]
        for values in (picture.load_torque_motor_nm, picture.load_fit_nm)
    )
    line = current * (picture.nominal_torque_constant_nm_per_a or math.nan)
    looks: tuple[tuple[str, FloatArray, dict[str, Any]], ...] = (
        ("$K_i$ by equation 4.3", line, {"color": PALETTE["backward"], "ls": "--"}),
        ("measured curve", fit, {"color": PALETTE["fit"]}),
        (
            "load arm, measured",
            torque,
            {"color": PALETTE["forward"], "ls": "none", "marker": "o", "ms": 3.5},
        ),
    )
    grid = figure.add_gridspec(2, 1, height_ratios=(3.2, 1.8))
    above = figure.add_subplot(grid[0])
    below = figure.add_subplot(grid[1], sharex=above)
    above.set_title("(a) Motor torque against current", loc="left")
    below.set_title("(b) Deviation from equation 4.3", loc="left")
    # Near 0 A the torque is noise: its relation to the line would fill the panel.
    divisor = np.where(np.abs(current) > 0.1 * find_peak(current), line, math.nan)
    percents = [100.0 * (y / divisor - 1.0) for _, y, _ in looks]
    for (label, y, look), percent in zip(looks, percents, strict=True):
        above.plot(current, y, lw=1.1, label=label, **look)
        below.plot(current, percent, lw=1.1, **look)
    set_limits(above, "motor torque", "N·m", torque, fit, line)
    set_limits(below, "deviation", "%", *percents, prefixed=False)
    write_label(below.xaxis, "motor current $i_q$", "A", find_peak(current))
    above.tick_params(labelbottom=False)
    above.legend(loc="lower right")
    loss = f"loss at {number_text(result.torque_constant_current_a, 3)} A"
    drop = result.torque_constant_drop
    rows = (
        ("$K_i$", result.torque_constant_nm_per_a, "N·m/A"),
        (loss, drop and drop.times(100.0), "%"),
    )
    draw_box(above, rows, 0.96)
    note_if_empty(above, torque, "no point was measured")
