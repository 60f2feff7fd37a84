"""The tables of the page, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from estimation.identification.estimators.uncertainty import ESSENTIAL_PERCENT
from estimation.identification.report.table import COLUMNS, comparison_rows, percent_text
from estimation.identification.result import (
    BaseParameter,
    ErrorsPercent,
    Identification,
    PayloadResult,
    RecordingSummary,
)
from estimation.reporting.html import as_text, make_table
from estimation.reporting.numbers import interval_text, number_text


def comparison_table(result: Identification) -> str:
    """Return all methods beside each other."""
    rows = []
    for method, cells in zip(result.methods, comparison_rows(result), strict=True):
        name = f"{as_text(cells[0])}<br><small>{as_text(method.summary)}</small>"
        look = ' class="selected"' if method.name == result.chosen else ""
        rows.append((look, (name, *(_flagged(cell) for cell in cells[1:]))))
    head = (as_text(column[0].upper() + column[1:]) for column in COLUMNS)
    return make_table("comparison", head, rows)


def _flagged(cell: str) -> str:
    return '<span class="no">no</span>' if cell == "no" else as_text(cell)


def joints_table(result: Identification) -> str:
    """Return the errors of all methods per joint, in percent."""
    names = [as_text(name) for name in result.joint_names]

    def rows() -> Iterator[tuple[str, Iterable[str]]]:
        for method in result.methods:
            look = ' class="selected"' if method.name == result.chosen else ""
            both = (("identification", method.identification), ("validation", method.validation))
            for data, errors in both:
                if errors is not None:
                    values = (percent_text(value) for value in errors.per_joint)
                    yield look, (as_text(method.name), data, *values)

    table = make_table("per-joint", ("Method", "ε<sub>τ</sub> (%) on", *names), rows())
    return f'<div class="joints">{table}</div>'


def chosen_table(result: Identification) -> str:
    """Return more of the chosen method's errors per joint, and its links' least eigenvalues."""
    names = [as_text(name) for name in result.joint_names]
    method = result.method(result.chosen)

    def rows() -> Iterator[tuple[str, Iterable[str]]]:
        both: tuple[tuple[str, ErrorsPercent | None], ...] = (
            ("identification", method.identification),
            ("validation", method.validation),
        )
        for data, errors in both:
            if errors is None:
                continue
            yield "", (data, "rms (N·m)", *(number_text(value, 3) for value in errors.rms_nm))
            values = (percent_text(value) for value in errors.all_rows_per_joint)
            yield "", (data, "all rows (%)", *values)
            values = (percent_text(value) for value in errors.raw_per_joint)
            yield "", (data, "all rows, raw torque (%)", *values)
        least = (number_text(value, 3) for value in method.pseudo_inertia_eigenvalues)
        links = "one such arm" if method.theta is None else "its links"
        yield "", (links, "least eigenvalue", *least)

    table = make_table("chosen-joints", ("On", "What", *names), rows())
    return f'<div class="joints">{table}</div>'


def base_table(parameters: Sequence[BaseParameter]) -> str:
    """Return base parameters with intervals, beside CAD and the truth where they are known."""
    has_cad = any(base.cad is not None for base in parameters)
    has_truth = any(base.true is not None for base in parameters)
    head = [
        *("Base parameter", "Value [95 % interval]", "Unit", "σ", "σ ordinary", "σ (%)"),
        "Essential",
    ]
    head += ["CAD"] if has_cad else []
    head += ["Truth"] if has_truth else []

    def cells(base: BaseParameter) -> Iterator[str]:
        yield f"<code>{as_text(base.expression)}</code>"
        yield interval_text(base.value, base.low, base.high)
        yield as_text(base.unit)
        yield from (number_text(value, 2) for value in (base.sigma, base.sigma_ordinary))
        yield number_text(base.relative_percent, 2) + ("" if _is_identifiable(base) else " ✗")
        yield "yes" if base.essential else "no"
        if has_cad:
            yield number_text(base.cad, 3)
        if has_truth:
            is_outside = base.true is not None and not base.low <= base.true <= base.high
            mark = ' <span class="no">outside</span>' if is_outside else ""
            yield number_text(base.true, 3) + mark

    rows = (
        ("" if _is_identifiable(base) else ' class="rejected"', cells(base)) for base in parameters
    )
    return make_table("base", head, rows)


def _is_identifiable(base: BaseParameter) -> bool:
    return base.relative_percent <= ESSENTIAL_PERCENT


def parameters_table(result: Identification) -> str:
    """Return all of θ."""
    rows = (
        (
            "",
            (
                as_text(parameter.joint),
                f"<code>{as_text(parameter.symbol)}</code>",
                as_text(parameter.unit),
                number_text(parameter.value),
                number_text(parameter.sigma, 2),
                number_text(parameter.cad),
                "alone" if parameter.is_identifiable else _combined(parameter.symbol, result.lost),
            ),
        )
        for parameter in result.parameters
    )
    return make_table(
        "all", ("Joint", "Parameter", "Unit", "Value", "σ", "CAD", "Identifiable"), rows
    )


def _combined(symbol: str, lost: Sequence[str]) -> str:
    return "not at all" if symbol in lost else "in combination"


def residuals_table(result: Identification) -> str:
    """Return the tests of whether residuals look like noise."""
    rows = (
        (
            "",
            (
                as_text(test.joint),
                number_text(test.mean_nm, 2),
                number_text(test.rms_nm, 3),
                number_text(test.memory_s, 2),
                number_text(test.kurtosis, 2),
                number_text(test.velocity_correlation, 2),
            ),
        )
        for test in result.residuals
    )
    head = (
        "Joint",
        "Mean (N·m)",
        "Rms (N·m)",
        "Memory (s)",
        "Excess kurtosis",
        "Correlation with sign of speed",
    )
    return make_table("residuals", head, rows)


def simulation_table(result: Identification) -> str:
    """Return how well the simulated arm moves like the real one; empty where not simulated."""
    tried = result.simulation
    if tried is None:
        return ""
    window = number_text(tried.open_loop_window_s, 2)
    kinds = (
        ("position, closed loop (rad rms)", tried.closed_loop_position_rms_rad),
        (f"position, open loop after {window} s (rad rms)", tried.open_loop_position_rms_rad),
    )
    rows = [
        ("", (name, *(number_text(value, 3) for value in values)))
        for name, values in kinds
        if values is not None
    ]
    names = (as_text(name) for name in result.joint_names)
    parts = [make_table("simulation", ("Simulated less measured", *names), rows)] if rows else []
    if tried.closed_loop_torque_percent is not None:
        percent = percent_text(tried.closed_loop_torque_percent)
        parts.append(f"<p>Torque in the closed loop: {percent} % off.</p>")
    return "\n".join((*parts, notes_list(tried.notes)))


def payload_table(payload: PayloadResult) -> str:
    """Return what the arm carries, with intervals."""
    centre = zip("xyz", payload.centre_m, strict=True)
    inertia = zip(("xx", "xy", "yy", "xz", "yz", "zz"), payload.inertia_kg_m2, strict=True)
    found = (
        ("Mass", payload.mass_kg, "kg"),
        *((f"Centre of mass, {axis}", part, "m") for axis, part in centre),
        *((f"Inertia, {axes}", part, "kg·m²") for axes, part in inertia),
    )
    rows = (
        ("", (name, interval_text(part.value, part.low, part.high), unit))
        for name, part, unit in found
    )
    return make_table("payload", ("Payload", "Value [95 % interval]", "Unit"), rows)


def recordings_table(result: Identification) -> str:
    """Return how much of each recording was used, and what was left out."""
    both = (("identification", result.recordings), ("validation", result.validation_recordings))
    rows = (
        ("", (use, *_recording_cells(recording)))
        for use, recordings in both
        for recording in recordings
    )
    head = ("For", "File", "Length (s)", "Rows", "Used", "Left out")
    return make_table("recordings", head, rows)


def _recording_cells(recording: RecordingSummary) -> tuple[str, ...]:
    left_out = ", ".join(f"{as_text(why)}: {count}" for why, count in recording.left_out.items())
    return (
        f"<code>{as_text(recording.file)}</code>",
        number_text(recording.seconds, 4),
        str(recording.rows),
        str(recording.rows_used),
        left_out or "nothing",
    )


def notes_list(notes: Iterable[str]) -> str:
    """Return notes (text, not HTML) one below the other; empty if there are none."""
    items = "".join(f"<li>{as_text(note)}</li>" for note in notes)
    return f"<ul>{items}</ul>" if items else ""
