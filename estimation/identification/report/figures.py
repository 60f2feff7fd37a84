"""Draws all sheets of an identification, in reading order."""

from __future__ import annotations

from collections.abc import Sequence

from estimation.identification.evaluation.traces import Trace
from estimation.identification.report.layout import NamedSheet
from estimation.identification.report.method_sheet import draw_methods
from estimation.identification.report.parameter_sheets import (
    draw_friction,
    draw_parameters,
    draw_singular_values,
)
from estimation.identification.report.time_sheets import (
    draw_residuals,
    draw_spectra,
    draw_torques,
)
from estimation.identification.result import Identification
from estimation.reporting.sheet import Sheet


def draw_figures(result: Identification, traces: Sequence[Trace]) -> tuple[NamedSheet, ...]:
    """Draw everything.

    Args:
        result: What was identified.
        traces: Torques of the chosen method; usually identification, then validation. Without
            any, what is over time is left out.

    Returns:
        The sheets: methods, torques of each trace, residuals, spectra, friction, parameters and
        singular values.
    """
    sheets = [_named("methods", draw_methods(result))]
    for number, trace in enumerate(traces, start=1):
        sheets.append(_named(f"torques{number}", draw_torques(result, trace)))
    for number, trace in enumerate(traces, start=1):
        sheets.append(_named(f"residuals{number}", draw_residuals(result, trace)))
    if traces:
        sheets.append(_named("spectra", draw_spectra(result, traces[0])))
    sheets += [
        _named("friction", draw_friction(result, traces)),
        _named("parameters", draw_parameters(result)),
        _named("singular-values", draw_singular_values(result)),
    ]
    return tuple(sheets)


def _named(name: str, sheet: Sheet) -> NamedSheet:
    return NamedSheet(name, sheet.description["Subject"], sheet)
