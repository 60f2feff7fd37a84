"""Which measured values are numbers at all: files may hold anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from daq.recording.tables.arrays import VALUE_MAX
from estimation.types import Flags, FloatArray


def is_number(values: Any, limit: float | FloatArray = VALUE_MAX) -> Flags:
    """Which values are finite, and no larger than any that is measured."""
    with np.errstate(invalid="ignore"):
        result: Flags = np.abs(values) <= limit
    return result


def only_numbers(values: FloatArray) -> FloatArray:
    """Return the same, with NaN for what is not a number."""
    is_known = is_number(values)
    return values if is_known.all() else np.where(is_known, values, np.nan)
