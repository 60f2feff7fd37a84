"""Foreign files of measurements as named arrays: CSV, NPY, NPZ, MAT (v5 and v7.3) and plain HDF5.

What the numbers mean is decided elsewhere (`estimation.array_mapping`). Files may come from
anywhere: sizes are checked before anything is unpacked, nothing is ever executed, and whatever a
library raises for damaged contents becomes a sentence.
"""

from __future__ import annotations

import csv
import hashlib
import math
import zipfile
import zlib
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from daq.recording.checks import stored_elsewhere
from estimation.csv_file import BYTES_MAX, COLUMNS_MAX, ROWS_MAX, read_csv
from estimation.errors import DatasetError
from estimation.files import plain
from estimation.hdf5_bounds import bytes_to_read, storage_problem
from estimation.mat_file import read_mat5

FloatArray = NDArray[np.float64]

_FIELDS_MAX = 10_000
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


class _Found:
    """What was found in a file, under names that can be shown and typed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fields: dict[str, FloatArray] = {}
        self.left_out: dict[str, str] = {}

    def add(self, name: str, values: Any) -> None:
        """An array if it is one of numbers, in one or two dimensions, with samples as rows."""
        array = np.asarray(values)
        if reason := _unusable(array.dtype, array.shape):
            self.leave_out(name, reason)
            return
        name = plain(name)
        if name in self.fields:
            raise DatasetError(f"{self.path}: two arrays are called {name}: rename one of them")
        _check_bytes(self.path, name, 8 * array.size)
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


def read_array_file(path: Path, *, delimiter: str | None = None) -> ArrayFile:
    """Read a file by its suffix.

    Args:
        path: CSV (`.csv`, `.txt`, `.tsv`, `.dat`, or one of them with `.gz`), `.npy`, `.npz`,
            `.mat`, `.h5` or `.hdf5`.
        delimiter: Of a CSV file; None to find out.

    Raises:
        DatasetError: It is missing, too large, of another kind, damaged, or has no numbers.
    """
    readers: dict[str, Callable[[_Found], None]] = {
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
    found = _Found(path)
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
            found.fields = _table(path, values, names)
        else:
            readers[suffix](found)
    except DatasetError:
        raise
    except _DAMAGED as error:
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


def _read_npy(path: Path) -> tuple[FloatArray, tuple[str, ...]]:
    # Mapped, so that no more is believed than the file has.
    found = _Found(path)
    found.add("it", np.load(path, mmap_mode="r", allow_pickle=False))
    for reason in found.left_out.values():
        raise DatasetError(
            f"{path}: is no array of numbers in one or two dimensions, but has {reason}"
        )
    return found.fields["it"], ()


def _read_npz(found: _Found) -> None:
    with zipfile.ZipFile(found.path) as archive:
        entries = archive.infolist()
        # What a small file may unpack to is stated in it; NumPy would take any of it.
        _check_bytes(found.path, "it", sum(entry.file_size for entry in entries))
        if len(entries) > _FIELDS_MAX:
            raise DatasetError(f"{found.path}: more than {_FIELDS_MAX} arrays")
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise DatasetError(f"{found.path}: two arrays are called {twice[0]}: save it anew")
        for name, entry in zip(names, entries, strict=True):
            if not entry.filename.endswith(".npy"):
                found.leave_out(name, "no array")
                continue
            try:
                _read_member(found, archive, name, entry)
            except DatasetError:
                raise
            except _DAMAGED as error:
                raise DatasetError(f"{found.path}: {name} is damaged: {error}") from error


def _read_member(
    found: _Found, archive: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo
) -> None:
    with archive.open(entry) as member:
        version = np.lib.format.read_magic(member)
        read_header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read_header(member)
    if reason := _unusable(dtype, shape):
        found.leave_out(name, reason)
        return
    size = dtype.itemsize * math.prod(shape)
    if size > entry.file_size:
        raise ValueError(f"it says that it has shape {shape}, but has {entry.file_size} bytes")
    with archive.open(entry) as member:
        found.add(name, np.lib.format.read_array(member, allow_pickle=False))


def _read_mat(found: _Found) -> None:
    if h5py.is_hdf5(found.path):
        # MATLAB's first index is HDF5's last.
        _read_hdf5(found, is_transposed=True)
        return
    for name, values in read_mat5(found.path, BYTES_MAX):
        if isinstance(values, str):
            found.leave_out(name, values)
        else:
            found.add(name, values)


def _read_hdf5(found: _Found, *, is_transposed: bool = False) -> None:
    path = found.path
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
                elif isinstance(item, h5py.Dataset) and item.shape:
                    if reason := _unusable(item.dtype, item.shape):
                        found.leave_out(f"{prefix}{name}", reason)
                        continue
                    total += bytes_to_read(item)
                    _check_bytes(path, "it", total)
                    if problem := storage_problem(item):
                        raise DatasetError(f"{path}: {prefix}{name} {problem}")
                    found.add(f"{prefix}{name}", item[()].T if is_transposed else item[()])


def _address(item: h5py.Group) -> int:
    """Where an object is in its file: the same by whatever name."""
    return int(h5py.h5o.get_info(item.id).addr)


def _unusable(dtype: np.dtype[Any], shape: Sequence[int]) -> str:
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


def _check_bytes(path: Path, name: str, size: int) -> None:
    if size > BYTES_MAX:
        raise DatasetError(f"{path}: {name} unpacks to {size} bytes, limit {BYTES_MAX}")
