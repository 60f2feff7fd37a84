"""NPY and NPZ files, read without pickle and without believing what they say of their size."""

from __future__ import annotations

import math
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

from estimation.errors import DatasetError
from estimation.importing.found_arrays import DAMAGED, FIELDS_MAX, FloatArray, FoundArrays, unusable


def read_npy(path: Path) -> FloatArray:
    """Read the table of an NPY file."""
    # Mapped, so that no more is believed than the file has.
    found = FoundArrays(path)
    found.add("it", np.load(path, mmap_mode="r", allow_pickle=False))
    for reason in found.left_out.values():
        raise DatasetError(
            f"{path}: is no array of numbers in one or two dimensions, but has {reason}"
        )
    return found.fields["it"]


def read_npz(found: FoundArrays) -> None:
    """Read all arrays of an NPZ file."""
    with zipfile.ZipFile(found.path) as archive:
        entries = archive.infolist()
        # What a small file may unpack to is stated in it; NumPy would take any of it.
        found.check_bytes("it", sum(entry.file_size for entry in entries))
        if len(entries) > FIELDS_MAX:
            raise DatasetError(f"{found.path}: more than {FIELDS_MAX} arrays")
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
            except DAMAGED as error:
                raise DatasetError(f"{found.path}: {name} is damaged: {error}") from error


def _read_member(
    found: FoundArrays, archive: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo
) -> None:
    with archive.open(entry) as member:
        version = np.lib.format.read_magic(member)
        read_header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read_header(member)
    if reason := unusable(dtype, shape):
        found.leave_out(name, reason)
        return
    size = dtype.itemsize * math.prod(shape)
    if size > entry.file_size:
        raise ValueError(f"it says that it has shape {shape}, but has {entry.file_size} bytes")
    with archive.open(entry) as member:
        found.add(name, np.lib.format.read_array(member, allow_pickle=False))
