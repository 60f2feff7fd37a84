"""The result of an identification as tables for people."""

from __future__ import annotations

import math

from rich.markup import escape
from rich.table import Table

from estimation.identification.report.table import combination_note
from estimation.identification.result import Identification, MethodResult, PayloadResult
from tools.shared.cli import make_console


def show(result: Identification) -> None:
    """Print the comparison and the verdict."""
    console = make_console()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    console.print(
        f"{result.rank} of {result.parameter_count} parameters are identifiable; condition "
        f"{result.condition:.1f}, {result.condition_scaled:.1f} with columns of length 1"
    )
    if result.lost:
        say(f"lost, no torque depends on them: {', '.join(result.lost)}")
    say("combinations: `armature robot show` lists them; base_parameters.csv and page (--out)")
    console.print(_comparison(result))
    say(
        f"Errors in % of the torque, over rows that count because joints move "
        f"({result.moving_rows_percent:.0f} % of all); the floor of this model, unconstrained "
        f"least squares, is {result.floor_percent:.2f} %."
    )
    combined = combination_note(result)
    if combined:
        say(f"consistent: {combined}")
    console.print(_per_joint(result))
    for failed in result.failed:
        say(f"{failed.name}: {failed.reason}")
    for note in dict.fromkeys((*result.preparation, *result.method(result.chosen).notes)):
        say(f"note: {note}")
    unsure = [p.symbol for p in result.base_parameters if p.relative_percent > 30.0]
    if unsure:
        say(
            f"note: {len(unsure)} of {result.rank} base parameters have σ above 30 %, the data "
            f"hardly determine them: {', '.join(unsure)}"
        )
    for line in () if result.payload is None else _payload_lines(result.payload):
        say(line)
    verdict = result.verdict
    word = "Usable with doubts" if verdict.doubts else "Usable"
    say(f"{word if verdict.is_usable else 'Not usable'}: {verdict.text}.")
    say(f"It holds for {verdict.scope}.")


def _payload_lines(payload: PayloadResult) -> list[str]:
    mass = payload.mass_kg
    centre = ", ".join(
        f"{letter} {part.value:.4f} ({part.low:.4f} to {part.high:.4f})"
        for letter, part in zip("xyz", payload.centre_m, strict=True)
    )
    return [
        f"payload: {mass.value:.4f} kg ({mass.low:.4f} to {mass.high:.4f}), its centre of mass at "
        f"{centre} m in the frame of the last joint",
        *(f"payload: {note}" for note in payload.notes),
    ]


def _comparison(result: Identification) -> Table:
    table = Table(title=f"Identification of {result.robot}")
    table.add_column("method", no_wrap=True)
    headings = ["ident. %", "valid. %", "all rows %", "phys.\ncons.", "cond.\nB(q)", "time\ns"]
    has_truth = any(row.base_parameters_in_interval is not None for row in result.methods)
    if has_truth:
        headings.append("truth\nin %")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in result.methods:
        table.add_row(*_cells(row, result.chosen, has_truth=has_truth))
    return table


def _cells(row: MethodResult, chosen: str, *, has_truth: bool) -> list[str]:
    judged = row.judged
    low, high = row.inertia_matrix_condition
    cells = [
        f"{row.name} ←" if row.name == chosen else row.name,
        f"{row.identification.moving:.2f}",
        "–" if row.validation is None else f"{row.validation.moving:.2f}",
        f"{judged.all_rows:.2f}",
        "yes" if row.consistent else "no",
        f"{low:.0f}–{high:.0f}" if math.isfinite(high) else "not > 0",
        f"{row.seconds:.2f}",
    ]
    if has_truth:
        share = row.base_parameters_in_interval
        cells.append("–" if share is None else f"{100.0 * share:.0f}")
    return cells


def _per_joint(result: Identification) -> Table:
    data = "identification" if result.methods[0].validation is None else "validation"
    table = Table(title=f"Error of each joint's torque, % ({data})")
    table.add_column("method")
    for name in result.joint_names:
        table.add_column(escape(name), justify="right")
    for row in result.methods:
        table.add_row(row.name, *(f"{error:.2f}" for error in row.judged.per_joint))
    return table
