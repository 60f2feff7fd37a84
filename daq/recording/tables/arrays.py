"""Arrays that were found in a file, what else there is and why it is not used, and how large."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daq.recording.tables.errors import TableError
from daq.recording.text import plain

BYTES_MAX = 512 << 20
"""Of a file, and of what it unpacks to."""
ROWS_MAX = 10_000_000
COLUMNS_MAX = 1000
ARRAYS_MAX = 10_000
VALUE_MAX = 1e9
"""Of any number: beyond it, arithmetic with its squares would overflow some day."""
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


@dataclass(slots=True)
class Arrays:
    """What was found in a file, under names that can be shown and typed.

    Attributes:
        path: The file.
        values: Arrays of float64 in one or two dimensions.
        left_out: What else there is, and why it is not used.
        attributes: What was asked for of an array; the file's own under the empty name.
    """

    path: Path
    values: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Add an array if it is one of numbers, in one or two dimensions.

        Raises:
            TableError: It is too large, or there are two of that name.
        """
        if reason := unusable(array.dtype, array.shape):
            self.leave_out(name, reason)
            return
        name = plain(name)
        if name in self.values:
            problem = f"two arrays are called {name}: rename one of them"
            raise TableError(self.path, problem, code="same-name")
        self.check_bytes(8 * array.size, name)
        rows, columns = sorted((array.shape[0], math.prod(array.shape[1:])), reverse=True)
        if rows > ROWS_MAX or columns > COLUMNS_MAX:
            shape, limits = " × ".join(map(str, array.shape)), f"{ROWS_MAX} × {COLUMNS_MAX}"
            problem = f"{name} has {shape} values, limits {limits}"
            raise TableError(self.path, problem, code="too-large")
        with np.errstate(over="ignore"):  # of long doubles; infinity is not one of our numbers
            self.values[name] = array.astype(np.float64, copy=False)

    def leave_out(self, name: str, reason: str) -> None:
        """Note something that is not used."""
        self.left_out[plain(name)] = reason

    def check_bytes(self, size: int, name: str = "it") -> None:
        """Refuse what would take too much memory, before it does.

        Raises:
            TableError: It would.
        """
        if size > BYTES_MAX:
            problem = f"{name} unpacks to {size} bytes, limit {BYTES_MAX}"
            raise TableError(self.path, problem, code="too-large")

    def check_count(self, count: int) -> None:
        """Refuse what would take too long to look through.

        Raises:
            TableError: It would.
        """
        if count > ARRAYS_MAX:
            raise TableError(self.path, f"more than {ARRAYS_MAX} arrays", code="too-many-arrays")


def unusable(dtype: np.dtype[Any], shape: Sequence[int]) -> str:
    """Return why an array is not used; empty if it is."""
    if dtype.kind not in "fiu":
        return _KINDS.get(dtype.kind, "other values")
    return "" if len(shape) in (1, 2) else f"{len(shape)} dimensions"


def check_file(path: Path) -> None:
    """Check that there is a file that can be read and is not too large.

    Raises:
        TableError: There is not.
    """
    try:
        if not path.is_file():
            if path.exists():
                raise TableError(path, "is not a file", code="not-a-file")
            raise TableError(path, "there is no such file", code="no-such-file")
        with path.open("rb") as file:
            size = file.seek(0, 2)
    except OSError as error:
        raise TableError(path, f"cannot be read: {error.strerror}", code="unreadable") from error
    if size > BYTES_MAX:
        problem = f"{size} bytes, limit {BYTES_MAX}: cut it into parts"
        raise TableError(path, problem, code="too-large")
