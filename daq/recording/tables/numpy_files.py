"""NPY and NPZ files, read without pickle and without believing what they say of their size."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daq.recording.tables.arrays import Arrays, check_file, unusable
from daq.recording.tables.errors import TableError, damaged

_ERRORS = (OSError, EOFError, ValueError, OverflowError, tokenize.TokenError)
"""What NumPy raises for damaged contents."""
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
"""What else the archive raises: other kinds of compression, passwords."""


def read_npy(path: Path) -> NDArray[np.float64]:
    """Read the array of an NPY file.

    Raises:
        TableError: It is damaged, too large, or not an array of numbers.
    """
    check_file(path)
    found = Arrays(path)
    # Mapped, so that no more is believed than the file has.
    with damaged(path, *_ERRORS):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise TableError(path, "is an archive of arrays: call it .npz", code="archive")
    found.add("it", array)
    for reason in found.left_out.values():
        problem = f"not an array of numbers in one or two dimensions: it has {reason}"
        raise TableError(path, problem, code="not-numbers")
    return found.values["it"]


def read_npz(path: Path, *, only: Collection[str] | None = None) -> Arrays:
    """Read the arrays of an NPZ file, or only those named.

    Raises:
        TableError: It is damaged or too large.
    """
    check_file(path)
    found = Arrays(path)
    with damaged(path, *_ERRORS, *_ZIP_ERRORS):
        archive = zipfile.ZipFile(path)
    with archive:
        entries = archive.infolist()
        # What a small file may unpack to is stated in it; NumPy would take any of it.
        found.check_bytes(sum(entry.file_size for entry in entries))
        found.check_count(len(entries))
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            problem = f"two arrays are called {twice[0]}: save it anew"
            raise TableError(path, problem, code="same-name")
        for name, entry in zip(names, entries, strict=True):
            if only is not None and name not in only:
                continue
            if entry.filename.endswith(".npy"):
                _read_member(found, archive, name, entry)
            else:
                found.leave_out(name, "not an array")
    return found


def _read_member(
    found: Arrays, archive: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo
) -> None:
    with damaged(found.path, *_ERRORS, *_ZIP_ERRORS, part=name), archive.open(entry) as member:
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
    if dtype.itemsize * math.prod(shape) > entry.file_size:
        problem = f"it says that it has shape {shape}, but has {entry.file_size} bytes"
        raise TableError(found.path, f"{name} is damaged: {problem}", code="damaged")
    with damaged(found.path, *_ERRORS, *_ZIP_ERRORS, part=name), archive.open(entry) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
    found.add(name, array)
