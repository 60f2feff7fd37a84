"""The result of a bench test as tables for people."""

from __future__ import annotations

from estimation.bench.report.words import model_title, quantity_rows, quantity_text
from estimation.bench.result import BenchResult
from estimation.reporting.numbers import number_text
from tools.shared.cli import make_console


def show_result(result: BenchResult) -> None:
    """Print the tables."""
    from rich.table import Table

    console = make_console()
    table = Table(title=f"Joint {result.joint} of {result.robot} ({result.motor}, {result.kind})")
    table.add_column("quantity")
    table.add_column("estimate [95 % interval]")
    rows = [
        (f"{row.name}, {side}" if row.load else row.name, quantity, row.unit)
        for row in quantity_rows(result)
        for side, quantity in (("motor", row.motor), ("load", row.load))
        if quantity is not None
    ]
    has_truth = any(quantity.truth is not None for _, quantity, _ in rows)
    if has_truth:
        table.add_column("truth", justify="right")
    for name, quantity, unit in rows:
        truth = [number_text(quantity.truth)] if has_truth else []
        table.add_row(name, quantity_text(quantity, unit), *truth)
    console.print(table)
    if result.models:
        models = Table(title="Models, judged by plateaus that their fit had not seen")
        for heading in ("model", "fit rms µN·m", "held-out rms µN·m", "selected"):
            models.add_column(heading, justify="left" if heading == "model" else "right")
        for model in result.models:
            models.add_row(
                model_title(model.name),
                f"{1e6 * model.residual_rms_nm:.1f}",
                f"{1e6 * model.held_out_rms_nm:.1f}",
                "✓" if model.is_selected else "",
            )
        console.print(models)
    rejected = [plateau for plateau in result.plateaus if not plateau.is_used]
    if result.plateaus:
        drift = "" if result.drift_is_significant else ", no more than chance"
        console.print(
            f"{result.plateaus_used} plateaus used, {result.plateaus_rejected} rejected; drift "
            f"{result.drift_percent:+.2f} % of f{drift}"
        )
    for plateau in rejected:
        console.print(
            f"  plateau {plateau.number} ({plateau.joint_velocity_rad_s:+.3f} rad/s): "
            f"{plateau.reason}",
            markup=False,
            highlight=False,
        )
    facts = []
    if result.temperature_degc is not None:
        facts.append("winding {:.0f} to {:.0f} °C".format(*result.temperature_degc))
    if result.bus_voltage_v is not None:
        facts.append("bus {:.2f} to {:.2f} V".format(*result.bus_voltage_v))
    if result.energy_j is not None:
        facts.append(f"{result.energy_j:.1f} J electrical")
    skipped = f", {result.skipped} periods skipped" if result.skipped else ""
    facts.append(f"{result.duration_s:.0f} s at {result.rate_hz:.0f} Hz{skipped}")
    console.print("; ".join(facts))
    for warning in result.warnings:
        console.print(f"warning: {warning}", markup=False, highlight=False)
