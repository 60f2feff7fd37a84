"""Arrays that were found in a foreign file, and what else there is and why it is not used."""

from __future__ import annotations

import csv
import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daq.recording.text import plain
from estimation.errors import DatasetError
from estimation.importing.formats.csv import BYTES_MAX, COLUMNS_MAX, ROWS_MAX

FloatArray = NDArray[np.float64]

FIELDS_MAX = 10_000
_KINDS = {
    "b": "true or false",
    "c": "complex numbers",
    "m": "durations",
    "M": "dates",
    "O": "text or objects",
    "S": "text",
    "U": "text",
    "V": "records",
}
"""What arrays that are left out have, by their kind in NumPy."""
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    AssertionError,
    MemoryError,
    AttributeError,
    zlib.error,
    zipfile.BadZipFile,
    csv.Error,
)
"""What NumPy, h5py and the standard library raise for contents that are not as they say."""


class FoundArrays:
    """What was found in a file, under names that can be shown and typed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fields: dict[str, FloatArray] = {}
        self.left_out: dict[str, str] = {}

    def add(self, name: str, values: Any) -> None:
        """An array if it is one of numbers, in one or two dimensions, with samples as rows."""
        array = np.asarray(values)
        if reason := unusable(array.dtype, array.shape):
            self.leave_out(name, reason)
            return
        name = plain(name)
        if name in self.fields:
            raise DatasetError(f"{self.path}: two arrays are called {name}: rename one of them")
        self.check_bytes(name, 8 * array.size)
        rows, columns = sorted(array.reshape(len(array), -1).shape, reverse=True)
        if rows > ROWS_MAX or columns > COLUMNS_MAX:
            raise DatasetError(
                f"{self.path}: {name} has shape {array.shape}, limits {ROWS_MAX} × {COLUMNS_MAX}"
            )
        with np.errstate(over="ignore"):  # of long doubles; infinite is no number of ours
            numbers = array.astype(np.float64, copy=False)
        self.fields[name] = _upright(numbers)

    def leave_out(self, name: str, reason: str) -> None:
        """Something that is not used."""
        self.left_out[plain(name)] = reason

    def check_bytes(self, name: str, size: int) -> None:
        """Refuse what would take too much memory, before it does.

        Raises:
            DatasetError: It would.
        """
        if size > BYTES_MAX:
            raise DatasetError(f"{self.path}: {name} unpacks to {size} bytes, limit {BYTES_MAX}")


def unusable(dtype: np.dtype[Any], shape: Sequence[int]) -> str:
    """Why an array is not used; empty if it is."""
    if dtype.kind not in "fiu":
        return _KINDS.get(dtype.kind, "no numbers")
    if len(shape) not in (1, 2):
        return f"{len(shape)} dimensions"
    return "fewer than two numbers" if math.prod(shape) < 2 else ""


def _upright(values: FloatArray) -> FloatArray:
    """Samples as rows: there are always more of them than joints."""
    table = values.reshape(len(values), -1)
    return table.T if table.shape[0] < table.shape[1] else table
