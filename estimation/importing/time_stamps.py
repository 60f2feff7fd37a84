"""Find the rows of foreign files whose time stamps can be used.

Loggers leave stamps out, write rows twice, or write stamps with too few digits. A few such rows are
left out; many mean that the stamps do not say when samples were taken.
"""

from __future__ import annotations

import numpy as np

from estimation.errors import DatasetError
from estimation.types import FloatArray, Rows

REPEATED_MAX = 0.05
"""Share of the rows that may have the time of the row before."""
IGNORE = "ignore them and state the rate, as --map t_s=none --rate HZ"


def rising_rows(t_s: FloatArray, rows_min: int) -> tuple[Rows, list[str]]:
    """Find at least `rows_min` rows whose times are numbers, and later than those before.

    Returns:
        Numbers of the rows, and sentences about the others.
    """
    rows = np.flatnonzero(np.isfinite(t_s))
    notes = []
    if len(rows) < rows_min:
        raise DatasetError(
            f"{len(rows)} of {len(t_s)} rows have a time that is a number, expected at least "
            f"{rows_min}; {IGNORE}",
            code="few-times",
        )
    if len(rows) < len(t_s):
        notes.append(f"rows without a time: {len(t_s) - len(rows)}, left out")
    step_s = np.diff(t_s[rows])
    if (step_s < 0.0).any():
        row = int((step_s < 0.0).argmax()) + 1
        raise DatasetError(
            f"time runs backwards: row {rows[row]} is at {t_s[rows[row]]:.9g} s, the row before at "
            f"{t_s[rows[row - 1]]:.9g} s; choose rows with --rows A:B, or, if the times are wrong, "
            f"{IGNORE}",
            code="times-do-not-rise",
        )
    is_new = np.concatenate([[True], step_s > 0.0])
    repeated = int(np.count_nonzero(~is_new))
    if repeated > REPEATED_MAX * len(rows) or len(rows) - repeated < rows_min:
        raise DatasetError(_too_coarse(t_s[rows], repeated), code="coarse-times")
    if repeated:
        notes.append(
            f"rows with the same time as the row before: {repeated}, left out (the first is row "
            f"{rows[int(is_new.argmin())]})"
        )
    return rows[is_new], notes


def _too_coarse(t_s: FloatArray, repeated: int) -> str:
    span_s = float(t_s[-1] - t_s[0])
    if not span_s > 0.0:
        return f"all {len(t_s)} rows have the same time: the time stamps are too coarse; {IGNORE}"
    step_s = np.diff(t_s)
    rate_hz = (len(t_s) - 1) / span_s
    return (
        f"{repeated} of {len(t_s)} rows have the same time as the row before, limit "
        f"{100 * REPEATED_MAX:g} %: the time stamps are too coarse (steps of "
        f"{np.median(step_s[step_s > 0.0]):.3g} s, though there are about {rate_hz:.4g} rows per "
        f"second); {IGNORE}"
    )
