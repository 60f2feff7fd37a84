"""One HTML page about a joint on the friction bench, which needs nothing but itself.

The script only adds to it: pointing at a plateau shows its numbers and finds it in all panels and
in the table. Whatever comes from outside is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from estimation.bench.report.figure import draw_bench
from estimation.bench.report.page_style import SCRIPT, STYLE
from estimation.bench.report.picture import BenchPicture
from estimation.bench.report.words import (
    UNITS,
    QuantityRow,
    date_text,
    model_title,
    quantity_rows,
    quantity_text,
    unit_suffix,
)
from estimation.bench.result import BenchResult, EstimatedQuantity, FrictionModel, Plateau
from estimation.reporting.html import (
    as_text,
    make_document,
    make_figure,
    make_list,
    make_table,
    make_warnings,
)
from estimation.reporting.numbers import fixed_text, number_text
from estimation.reporting.sheet import make_svg
from estimation.reporting.style import style_sheet


def make_page(result: BenchResult, picture: BenchPicture) -> str:
    """Write everything about one joint as one HTML page; the same result gives the same text."""
    title = as_text(f"{'Torque constant' if _has_arm(picture) else 'Friction'} of {result.joint}")
    sections = (
        ("Result", _summary(result, picture)),
        ("Figure", _figure(result, picture)),
        ("Models compared", _models(result.models)),
        (
            f"Plateaus: {result.plateaus_used} used, {result.plateaus_rejected} rejected",
            _plateaus(result.plateaus),
        ),
        ("Conditions", _conditions(result)),
        ("How this was made", _origin(result)),
    )
    body = "".join(f"<h2>{name}</h2>\n{text}\n" for name, text in sections if text)
    about = as_text(f"{result.robot}, {result.motor}, {result.kind}")
    lead = f'<p class="muted">{about}, {as_text(date_text(result.recorded_utc))}</p>\n'
    warnings = make_warnings(result.warnings)
    return make_document(title, style_sheet(STYLE), f"{lead}{warnings}{body}", SCRIPT)


def _has_arm(picture: BenchPicture) -> bool:
    return picture.load_current_a is not None


def _summary(result: BenchResult, picture: BenchPicture) -> str:
    rows = quantity_rows(result)
    nominal = picture.nominal_torque_constant_nm_per_a
    if nominal is not None:  # a load arm's result begins with the torque constant
        by_equation = EstimatedQuantity(value=nominal)
        rows.insert(1, QuantityRow("", "The same by equation 4.3", UNITS["_nm_per_a"], by_equation))
    cells = (
        ("", (row.title, _cell(row.motor, row.unit), _cell(row.load, row.unit))) for row in rows
    )
    gear = f"Gear {result.gear_reduction:g}:1. In brackets: 95&nbsp;% intervals."
    table = make_table("summary", ("Quantity", "At the motor", "At the load"), cells)
    return f'{table}\n<p class="muted">{gear}</p>'


def _cell(quantity: EstimatedQuantity | None, unit: str) -> str:
    text = quantity_text(quantity, unit)
    if quantity is None or quantity.truth is None:
        return text
    truth = f"truth {number_text(quantity.truth)}"
    if quantity.low is not None and quantity.high is not None:
        is_inside = quantity.low <= quantity.truth <= quantity.high
        truth += ", in the interval" if is_inside else ", outside the interval"
    return f"{text}<br><small>{truth}</small>"


def _figure(result: BenchResult, picture: BenchPicture) -> str:
    """Return the figure in the page's colours, every mark with its plateau's numbers."""
    label = f"Figure: {result.joint}. All its numbers are in the tables of this page."
    figure = make_figure(make_svg(draw_bench(result, picture)), label)
    numbers = {str(plateau.number): plateau for plateau in result.plateaus}

    def tell(mark: re.Match[str]) -> str:
        words = "\n".join(as_text(line) for line in _plateau_lines(numbers[mark[1]]))
        return f'{mark[0][:-1]} data-plateau="{mark[1]}"><title>{words}</title>'

    hint = '<p class="muted screen">Point at a plateau to see its numbers.</p>\n'
    hint = hint if result.plateaus and not _has_arm(picture) else ""
    return hint + re.sub(r'<g id="plateau-[a-z]-(\d+)">', tell, figure)


def _plateau_lines(plateau: Plateau) -> list[str]:
    """Return what pointing at a plateau shows."""
    sigma = number_text(_times(1e3, plateau.iq_sigma_a), 2)
    lines = [
        f"Plateau {plateau.number}, pass {plateau.repetition}",
        f"joint {number_text(plateau.joint_velocity_rad_s)} rad/s, "
        f"motor {number_text(plateau.motor_velocity_rad_s)} rad/s",
        f"whole turns {plateau.turns}",
        f"current {number_text(_times(1e3, plateau.iq_a))} ± {sigma} mA",
        f"motor torque {number_text(_times(1e3, plateau.motor_torque_nm))} mN·m",
    ]
    if plateau.winding_temperature_degc is not None:
        lines.append(f"winding {number_text(plateau.winding_temperature_degc, 3)} °C")
    return lines if plateau.is_used else [*lines, f"rejected: {plateau.reason}"]


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def _models(models: Sequence[FrictionModel]) -> str:
    if not models:
        return ""
    rows = (
        (
            ' class="selected"' if model.is_selected else "",
            (
                as_text(model_title(model.name)) + (" ✓" if model.is_selected else ""),
                "<br>".join(
                    f"<code>{as_text(name)}</code> {quantity_text(value, UNITS[unit_suffix(name)])}"
                    for name, value in model.parameters.items()
                ),
                number_text(model.residual_rms_nm * 1e6, 3),
                number_text(model.held_out_rms_nm * 1e6, 3),
            ),
        )
        for model in models
    )
    head = ("Model", "Parameters", "Residual (µN·m)", "Held-out (µN·m)")
    note = "Root mean squares of motor torque. ✓: selected, by plateaus that the fit had not seen."
    return f'{make_table("models", head, rows)}\n<p class="muted">{note}</p>'


_PLATEAU_HEAD = (
    "No.", "Used", "Pass", "Start (s)", "Settled after (s)", "Joint (rad/s)", "Motor (rad/s)",
    "Turns", "<i>i<sub>q</sub></i> (mA)", "σ (mA)", "Correction (mA)", "Torque (mN·m)",
    "Winding (°C)", "Bus (V)", "Power (W)", "Energy (J)",
)  # fmt: skip


def _plateaus(plateaus: Sequence[Plateau]) -> str:
    rows = (
        (
            f' data-plateau="{plateau.number}"' + ("" if plateau.is_used else ' class="rejected"'),
            (
                str(plateau.number),
                "yes" if plateau.is_used else f"no: {as_text(plateau.reason)}",
                str(plateau.repetition),
                fixed_text(plateau.start_s, 2),
                fixed_text(plateau.settle_s, 2),
                fixed_text(plateau.joint_velocity_rad_s, 3),
                fixed_text(plateau.motor_velocity_rad_s, 3),
                str(plateau.turns),
                fixed_text(_times(1e3, plateau.iq_a), 2),
                fixed_text(_times(1e3, plateau.iq_sigma_a), 2),
                fixed_text(plateau.iq_correction_a * 1e3, 3),
                fixed_text(_times(1e3, plateau.motor_torque_nm), 4),
                fixed_text(plateau.winding_temperature_degc, 1),
                fixed_text(plateau.bus_voltage_v, 2),
                fixed_text(plateau.input_power_w, 3),
                fixed_text(plateau.energy_j, 2),
            ),
        )
        for plateau in plateaus
    )
    return make_table("plateaus", _PLATEAU_HEAD, rows) if plateaus else ""


def _conditions(result: BenchResult) -> str:
    warm, volts = result.temperature_degc, result.bus_voltage_v
    word = "significant" if result.drift_is_significant else "not significant"
    drift = (
        f"{number_text(result.drift_percent, 2)} % of <i>f</i> from first to last plateau, {word}"
    )
    return make_list(
        (
            ("Winding", f"{warm[0]:.1f} to {warm[1]:.1f} °C" if warm else "no sensor"),
            ("Bus voltage", f"{volts[0]:.2f} to {volts[1]:.2f} V" if volts else "unknown"),
            (
                "Electrical energy",
                f"{number_text(result.energy_j)} J" if result.energy_j else "unknown",
            ),
            *((("Drift of friction", drift),) if result.f_nm else ()),
            ("Recorded", f"{result.duration_s:.1f} s at {number_text(result.rate_hz, 5)} Hz"),
        )
    )


def _origin(result: BenchResult) -> str:
    return make_list(
        (
            ("Recording", f"<code>{as_text(result.recording)}</code>"),
            ("Date", as_text(date_text(result.recorded_utc))),
            ("Made by", f"armature {as_text(result.made_by)}"),
            ("Robot", as_text(result.robot)),
            ("Joint", as_text(f"{result.joint}, {result.kind}, motor {result.motor}")),
            ("Wire format", as_text(result.profile)),
            ("Link", f"<code>{as_text(result.link)}</code>"),
            ("File format", as_text(f"{result.format} {result.version}")),
        )
    )
