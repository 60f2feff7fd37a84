"""The comparison of methods as plain text cells, for the page and for the terminal alike."""

from __future__ import annotations

import math
from typing import Final

from estimation.identification.result import Identification, MethodResult
from estimation.reporting.numbers import number_text

COLUMNS: Final = (
    "method",
    "identification %",
    "validation %",
    "cross-validation %",
    "all rows %",
    "raw %",
    "consistent",
    "least eigenvalue",
    "B(q) ≻ 0",
    "condition of B(q)",
    "time s",
)
"""Of `comparison_rows`; the first is text, the others are numbers or yes and no."""


def comparison_rows(result: Identification) -> list[tuple[str, ...]]:
    """Return one row per method, in the order of `COLUMNS`; the chosen method's name ends in ✓.

    All rows and raw are of the validation where there is one: that is the honest number.
    """
    return [_row(method, is_chosen=method.name == result.chosen) for method in result.methods]


def floor_text(result: Identification) -> str:
    """Return the sentence on the floor that stands below the comparison."""
    return (
        f"Floor of unconstrained least squares on the identification data: "
        f"{percent_text(result.floor_percent)} % where joints move, "
        f"{percent_text(result.floor_all_rows_percent)} % over all rows. "
        "No estimator of this model can be below it there."
    )


def combination_note(result: Identification) -> str:
    """Return what consistent means for methods that determine base parameters only.

    Empty where all methods are of one kind.
    """
    names = [method.name for method in result.methods if method.theta is None]
    if len(names) in {0, len(result.methods)}:
        return ""
    verb = "determines" if len(names) == 1 else "determine"
    return (
        f"{', '.join(names)} {verb} combinations of parameters only, not single links: there, "
        "yes means that some arm has these."
    )


def percent_text(value: float | None) -> str:
    """Return three significant digits, `41.0` or `5.98`; NaN and None are an en dash."""
    return number_text(value, 3)


def condition_text(value: float) -> str:
    """Return a condition number, without meaningless digits."""
    if math.isfinite(value) and 100.0 <= value < 1e5:
        return f"{value:.0f}"
    return number_text(value, 3)


def range_text(low: float, high: float) -> str:
    """Return a range of condition numbers."""
    one, two = condition_text(low), condition_text(high)
    return one if one == two else f"{one} to {two}"


def seconds_text(value: float) -> str:
    """Return a time, without powers of ten: `0.012`, `3.20`, `< 0.001`."""
    if value < 0.0005:
        return "< 0.001"
    return f"{value:.3f}" if value < 1.0 else f"{value:.2f}"


def yes_or_no(value: bool) -> str:
    """Return yes or no."""
    return "yes" if value else "no"


def _row(method: MethodResult, *, is_chosen: bool) -> tuple[str, ...]:
    judged = method.judged
    return (
        method.name + (" ✓" if is_chosen else ""),
        percent_text(method.identification.moving),
        percent_text(method.validation.moving if method.validation else None),
        percent_text(method.cross_validation_percent),
        percent_text(judged.all_rows),
        percent_text(judged.raw),
        yes_or_no(method.consistent),
        number_text(method.min_pseudo_inertia_eigenvalue, 3),
        yes_or_no(method.inertia_matrix_positive),
        range_text(*method.inertia_matrix_condition),
        seconds_text(method.seconds),
    )
