"""Foreign files of measurements as named arrays: CSV, NPY, NPZ, MAT (v5 and v7.3) and plain HDF5.

What the numbers mean is decided elsewhere (`estimation.importing.mapping`). Files may come from
anywhere: sizes are checked before anything is unpacked, nothing is ever executed, and whatever a
library raises for damaged contents becomes a sentence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from daq.recording.text import plain
from estimation.errors import DatasetError
from estimation.importing.formats.csv import BYTES_MAX, read_csv
from estimation.importing.formats.hdf5 import read_hdf5
from estimation.importing.formats.matlab import read_mat5
from estimation.importing.formats.npz import read_npy, read_npz
from estimation.importing.found_arrays import DAMAGED, FloatArray, FoundArrays


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
    readers: dict[str, Callable[[FoundArrays], None]] = {
        ".npz": read_npz,
        ".mat": _read_mat,
        ".h5": read_hdf5,
        ".hdf5": read_hdf5,
    }
    texts = (".csv", ".txt", ".tsv", ".dat")
    tables = (*texts, *(f"{each}.gz" for each in texts), ".npy")
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = "".join(path.suffixes[-2:]).lower()
    if suffix not in readers and suffix not in tables:
        known = ", ".join((*tables, *readers))
        raise DatasetError(f"{path}: suffix {suffix!r}, expected one of {known}")
    found = FoundArrays(path)
    try:
        if not path.is_file():
            reason = "is no file" if path.exists() else "there is no such file"
            raise DatasetError(f"{path}: {reason}")
        size = path.stat().st_size
        if size > BYTES_MAX:
            raise DatasetError(f"{path}: {size} bytes, limit {BYTES_MAX}: cut it into parts")
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        has_names = True
        if suffix in tables:
            values, names = (read_npy(path), ()) if suffix == ".npy" else read_csv(path, delimiter)
            has_names = bool(names)
            found.fields = _table(path, values, names)
        else:
            readers[suffix](found)
    except DatasetError:
        raise
    except DAMAGED as error:
        raise DatasetError(f"{path}: damaged, or no {suffix} file: {error}") from error
    if not found.fields:
        others = "".join(f"; {each}" for each in list_left_out(found.left_out))
        raise DatasetError(f"{path}: has no arrays of numbers{others}")
    return ArrayFile(path, sha256, found.fields, suffix in tables, has_names, found.left_out)


def list_left_out(left_out: Mapping[str, str], shown: int = 10) -> list[str]:
    """What a file has besides numbers, in words; nothing if it has no such thing."""
    if not left_out:
        return []
    names = [f"{name} ({reason})" for name, reason in left_out.items()]
    more = f", … ({len(names) - shown} more)" if len(names) > shown else ""
    return [f"left out: {', '.join(names[:shown])}{more}"]


def _table(path: Path, values: FloatArray, names: tuple[str, ...]) -> dict[str, FloatArray]:
    names = names or tuple(str(number + 1) for number in range(values.shape[1]))
    fields: dict[str, FloatArray] = {}
    for number, name in enumerate(names):
        # Programs that put files together leave the byte order marks of each.
        key = plain(name.strip("\ufeff ")) or str(number + 1)
        if key in fields:
            raise DatasetError(f"{path}: two columns are called {key!r}: rename one of them")
        fields[key] = values[:, number : number + 1]
    if not np.isfinite(values).any():
        raise DatasetError(f"{path}: has no numbers")
    return fields


def _read_mat(found: FoundArrays) -> None:
    if h5py.is_hdf5(found.path):
        # MATLAB's first index is HDF5's last.
        read_hdf5(found, is_transposed=True)
        return
    for name, values in read_mat5(found.path, BYTES_MAX):
        if isinstance(values, str):
            found.leave_out(name, values)
        else:
            found.add(name, values)
