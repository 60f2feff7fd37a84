"""Which measured values are numbers at all: files may hold anything."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daq.recording.tables.arrays import VALUE_MAX


def is_number(values: Any, limit: float | NDArray[np.float64] = VALUE_MAX) -> NDArray[np.bool_]:
    """Which values are finite, and no larger than any that is measured."""
    with np.errstate(invalid="ignore"):
        result: NDArray[np.bool_] = np.abs(values) <= limit
    return result


def only_numbers(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same, with NaN for what is no number."""
    is_known = is_number(values)
    return values if is_known.all() else np.where(is_known, values, np.nan)
