"""Foreign files of measurements as named arrays: CSV, NPY, NPZ, MAT (v5 and v7.3) and plain HDF5.

What the numbers mean is decided elsewhere (`estimation.importing.mapping`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from daq.recording.tables.arrays import Arrays, check_file
from daq.recording.tables.errors import TableError, UnevenRowsError
from daq.recording.tables.hdf5 import read_hdf5
from daq.recording.tables.numpy_files import read_npy, read_npz
from daq.recording.tables.text import TextTable, read_text
from daq.recording.text import plain
from estimation.errors import DatasetError
from estimation.importing.matlab import read_mat
from estimation.types import FloatArray

_VALUES_MIN = 2
"""Fewer are a constant, not measurements."""
_TEXTS = (".csv", ".txt", ".tsv", ".dat")
_TABLES = (*_TEXTS, *(f"{each}.gz" for each in _TEXTS), ".npy")
_ARRAYS: Mapping[str, Callable[[Path], Arrays]] = {
    ".npz": read_npz,
    ".mat": read_mat,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
}


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """The numbers of a file.

    Attributes:
        path: The file.
        sha256: Of its bytes.
        fields: Arrays of shape (rows, columns) by name; a CSV file's columns one by one.
        is_table: Whether fields are the columns of one table, in order.
        has_names: Whether the names are the file's own; else columns are called 1, 2, …
        left_out: What else there is, by name, and why it is not among the fields.
    """

    path: Path
    sha256: str
    fields: Mapping[str, FloatArray]
    is_table: bool
    has_names: bool
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For people."""
        return plain(self.path.name)


def read_array_file(path: Path, *, delimiter: str | None = None) -> ArrayFile:
    """Read a file by its suffix.

    Args:
        path: CSV (`.csv`, `.txt`, `.tsv`, `.dat`, or one of them with `.gz`), `.npy`, `.npz`,
            `.mat`, `.h5` or `.hdf5`.
        delimiter: Of a CSV file; None to find out.

    Raises:
        DatasetError: It is missing, too large, of another kind, damaged, or has no numbers.
    """
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = "".join(path.suffixes[-2:]).lower()
    if suffix not in _TABLES and suffix not in _ARRAYS:
        known = ", ".join((*_TABLES, *_ARRAYS))
        raise DatasetError(
            f"{path}: suffix {suffix!r}, expected one of {known}", code="unknown-suffix"
        )
    try:
        check_file(path)
        if suffix in _ARRAYS:
            return _arrays(_ARRAYS[suffix](path))
        table = (
            TextTable(_upright(read_npy(path)), ())
            if suffix == ".npy"
            else read_text(path, delimiter)
        )
    except UnevenRowsError as error:
        raise DatasetError(f"{error} --delimiter names another", code=error.code) from error
    except TableError as error:
        raise DatasetError(str(error), code=error.code) from error
    return _columns(path, table)


def _arrays(found: Arrays) -> ArrayFile:
    fields: dict[str, FloatArray] = {}
    for name, values in found.values.items():
        if values.size < _VALUES_MIN:
            found.leave_out(name, "fewer than two numbers")
        else:
            fields[name] = _upright(values)
    if not fields:
        others = "".join(f"; {each}" for each in list_left_out(found.left_out))
        raise DatasetError(f"{found.path}: has no arrays of numbers{others}", code="no-arrays")
    return ArrayFile(
        found.path,
        _sha256(found.path),
        fields,
        is_table=False,
        has_names=True,
        left_out=found.left_out,
    )


def _columns(path: Path, table: TextTable) -> ArrayFile:
    values, names = table
    if not len(values):
        reason = "names of columns, but no values" if names else "no values"
        raise DatasetError(f"{path}: has {reason}", code="no-numbers")
    fields: dict[str, FloatArray] = {}
    for number, name in enumerate(names or range(1, values.shape[1] + 1)):
        # Programs that put files together leave the byte order marks of each.
        key = plain(str(name).strip("\ufeff ")) or str(number + 1)
        if key in fields:
            raise DatasetError(
                f"{path}: two columns are called {key!r}: rename one of them", code="same-name"
            )
        fields[key] = values[:, number : number + 1]
    if not np.isfinite(values).any():
        raise DatasetError(f"{path}: has no numbers", code="no-numbers")
    return ArrayFile(path, _sha256(path), fields, is_table=True, has_names=bool(names))


def _upright(values: FloatArray) -> FloatArray:
    """Return a table with samples as rows: there are always more of them than joints."""
    table = values.reshape(len(values), -1)
    return table.T if table.shape[0] < table.shape[1] else table


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_left_out(left_out: Mapping[str, str], shown: int = 10) -> list[str]:
    """Return what a file has besides numbers, in words; nothing if it has no such thing."""
    if not left_out:
        return []
    names = [f"{name} ({reason})" for name, reason in left_out.items()]
    more = f", … ({len(names) - shown} more)" if len(names) > shown else ""
    return [f"left out: {', '.join(names[:shown])}{more}"]
