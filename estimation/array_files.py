"""Foreign files of measurements as named arrays: CSV, NPY, NPZ, MAT (v5 and v7.3) and plain HDF5.

What the numbers mean is decided elsewhere (`estimation.array_mapping`). Files may come from
anywhere: sizes are checked before anything is unpacked, nothing is ever executed, and whatever a
library raises for damaged contents becomes a sentence.
"""

from __future__ import annotations

import csv
import hashlib
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from daq.recording.checks import stored_elsewhere
from estimation.csv_file import BYTES_MAX, COLUMNS_MAX, ROWS_MAX, read_csv
from estimation.errors import DatasetError
from estimation.mat_file import read_mat5

FloatArray = NDArray[np.float64]

_FIELDS_MAX = 10_000
_DEPTH_MAX = 4
_DAMAGED = (
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


@dataclass(frozen=True, slots=True)
class ArrayFile:
    """The numbers of a file.

    Attributes:
        path: The file.
        sha256: Of its bytes.
        fields: Arrays of shape (rows, columns) by name; a CSV file's columns one by one.
        is_table: Whether fields are the columns of one table, in order.
        has_names: Whether the names are the file's own; else columns are called 1, 2, …
    """

    path: Path
    sha256: str
    fields: Mapping[str, FloatArray]
    is_table: bool
    has_names: bool


def read_array_file(path: Path, *, delimiter: str | None = None) -> ArrayFile:
    """Read a file by its suffix.

    Args:
        path: CSV (`.csv`, `.txt`, `.tsv`, `.dat`, or one of them with `.gz`), `.npy`, `.npz`,
            `.mat`, `.h5` or `.hdf5`.
        delimiter: Of a CSV file; None to find out.

    Raises:
        DatasetError: It is missing, too large, of another kind, damaged, or has no numbers.
    """
    readers: dict[str, Callable[[Path], dict[str, FloatArray]]] = {
        ".npz": _read_npz,
        ".mat": _read_mat,
        ".h5": _read_hdf5,
        ".hdf5": _read_hdf5,
    }
    texts = (".csv", ".txt", ".tsv", ".dat")
    tables = (*texts, *(f"{each}.gz" for each in texts), ".npy")
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = "".join(path.suffixes[-2:]).lower()
    if suffix not in readers and suffix not in tables:
        known = ", ".join((*tables, *readers))
        raise DatasetError(f"{path}: suffix {suffix!r}, expected one of {known}")
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
            values, names = _read_npy(path) if suffix == ".npy" else read_csv(path, delimiter)
            has_names = bool(names)
            fields = _table(path, values, names)
        else:
            fields = readers[suffix](path)
    except DatasetError:
        raise
    except _DAMAGED as error:
        raise DatasetError(f"{path}: damaged, or no {suffix} file: {error}") from error
    if not fields:
        raise DatasetError(f"{path}: has no arrays of numbers")
    return ArrayFile(path, sha256, fields, suffix in tables, has_names)


def _table(path: Path, values: FloatArray, names: tuple[str, ...]) -> dict[str, FloatArray]:
    names = names or tuple(str(number + 1) for number in range(values.shape[1]))
    fields: dict[str, FloatArray] = {}
    for number, name in enumerate(names):
        key = name or str(number + 1)
        if key in fields:
            raise DatasetError(f"{path}: two columns are called {key!r}: rename one of them")
        fields[key] = values[:, number : number + 1]
    if not np.isfinite(values).any():
        raise DatasetError(f"{path}: has no numbers")
    return fields


def _read_npy(path: Path) -> tuple[FloatArray, tuple[str, ...]]:
    # Mapped, so that no more is believed than the file has.
    fields = _fields(path, [(path.name, np.load(path, mmap_mode="r", allow_pickle=False))])
    if not fields:
        raise DatasetError(f"{path}: is no array of numbers in one or two dimensions")
    return fields[path.name], ()


def _read_npz(path: Path) -> dict[str, FloatArray]:
    with zipfile.ZipFile(path) as archive:
        # What a small file may unpack to is stated in it; NumPy would take any of it.
        _check_bytes(path, "it", sum(entry.file_size for entry in archive.infolist()))
        if len(archive.infolist()) > _FIELDS_MAX:
            raise DatasetError(f"{path}: more than {_FIELDS_MAX} arrays")
    with np.load(path, allow_pickle=False) as arrays:
        found = {}
        for name in arrays.files:
            try:
                found[name] = arrays[name]
            except ValueError:  # text or objects, which are not looked at
                continue
    return _fields(path, found.items())


def _read_mat(path: Path) -> dict[str, FloatArray]:
    if h5py.is_hdf5(path):
        # MATLAB's first index is HDF5's last.
        return {name: _upright(values.T) for name, values in _hdf5_arrays(path)}
    return _fields(path, read_mat5(path, BYTES_MAX))


def _read_hdf5(path: Path) -> dict[str, FloatArray]:
    return {name: _upright(values) for name, values in _hdf5_arrays(path)}


def _hdf5_arrays(path: Path) -> Iterator[tuple[str, FloatArray]]:
    with h5py.File(path, "r") as file:
        waiting = deque([("", file, 0)])
        seen = {_address(file)}
        total = count = 0
        while waiting:
            prefix, group, depth = waiting.popleft()
            count += len(group)
            if count > _FIELDS_MAX:
                raise DatasetError(f"{path}: more than {_FIELDS_MAX} arrays")
            if (name := stored_elsewhere(group)) is not None:
                raise DatasetError(f"{path}: {name} is stored elsewhere: copy it into this file")
            for name in group:
                item = group[name]
                if isinstance(item, h5py.Group):
                    # A group may hold itself, by links in a circle.
                    is_new = _address(item) not in seen
                    seen.add(_address(item))
                    if is_new and depth < _DEPTH_MAX and not name.startswith("#"):
                        waiting.append((f"{prefix}{name}.", item, depth + 1))
                elif isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu" and item.shape:
                    total += 8 * _product(item.shape)
                    _check_bytes(path, "it", total)
                    yield from _field(path, f"{prefix}{name}", item[()])


def _address(item: h5py.Group) -> int:
    """Where an object is in its file: the same by whatever name."""
    return int(h5py.h5o.get_info(item.id).addr)


def _fields(path: Path, arrays: Any) -> dict[str, FloatArray]:
    found: dict[str, FloatArray] = {}
    for name, values in arrays:
        for key, array in _field(path, name, values):
            found[key] = _upright(array)
    return found


def _field(path: Path, name: str, values: Any) -> Iterator[tuple[str, FloatArray]]:
    """An array if it is one of numbers, in one or two dimensions."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2) or array.size < 2:
        return
    _check_bytes(path, name, 8 * array.size)
    rows, columns = sorted(array.reshape(len(array), -1).shape, reverse=True)
    if rows > ROWS_MAX or columns > COLUMNS_MAX:
        raise DatasetError(
            f"{path}: {name} has shape {array.shape}, limits {ROWS_MAX} × {COLUMNS_MAX}"
        )
    with np.errstate(over="ignore"):  # of long doubles; infinite is no number of ours
        numbers = array.astype(np.float64, copy=False)
    yield name, numbers


def _upright(values: FloatArray) -> FloatArray:
    """Samples as rows: there are always more of them than joints."""
    table = values.reshape(len(values), -1)
    return table.T if table.shape[0] < table.shape[1] else table


def _check_bytes(path: Path, name: str, size: int) -> None:
    if size > BYTES_MAX:
        raise DatasetError(f"{path}: {name} unpacks to {size} bytes, limit {BYTES_MAX}")


def _product(shape: tuple[int, ...]) -> int:
    # Plain integers: those of NumPy would wrap around.
    result = 1
    for length in shape:
        result *= int(length)
    return result
