"""Arrays of HDF5 files, which MATLAB's are from v7.3 on."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from pathlib import Path

import h5py

from daq.recording.checks import StoredElsewhereError, own_items
from daq.recording.tables.arrays import Arrays, check_file, unusable
from daq.recording.tables.errors import TableError, damaged

_ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError)
"""What h5py raises for damaged contents; the last two for types that NumPy does not have."""
_DEPTH_MAX = 4


def read_hdf5(
    path: Path,
    *,
    only: Collection[str] | None = None,
    attributes: Collection[str] = (),
    is_transposed: bool = False,
) -> Arrays:
    """Read the arrays of an HDF5 file, those of its groups as GROUP.ARRAY.

    Args:
        path: The file.
        only: The names to read; None for all.
        attributes: The attributes to read, of the arrays and of the file.
        is_transposed: Whether the last index comes first, as in MATLAB's files.

    Raises:
        TableError: It is damaged, too large, or refers to another file.
    """
    check_file(path)
    found = Arrays(path)
    with damaged(path, *_ERRORS):
        file = h5py.File(path, "r")
    with file:
        total = count = 0
        waiting = deque([("", file, 0)])
        while waiting:
            prefix, group, depth = waiting.popleft()
            try:
                with damaged(path, *_ERRORS):
                    items = own_items(group)
            except StoredElsewhereError as error:
                problem = f"{error} is stored elsewhere: copy it into this file"
                raise TableError(path, problem, code="stored-elsewhere") from None
            count += len(items)
            found.check_count(count)
            if depth == 0:
                _read_attributes(found, "", group, attributes)
            for key, item in items.items():
                name = prefix + key
                if isinstance(item, h5py.Group):
                    if only is None and depth < _DEPTH_MAX and not key.startswith("#"):
                        waiting.append((f"{name}.", item, depth + 1))
                elif isinstance(item, h5py.Dataset) and (only is None or name in only):
                    total += _read(found, name, item, total, is_transposed=is_transposed)
                    _read_attributes(found, name, item, attributes)
    return found


def _read(
    found: Arrays, name: str, dataset: h5py.Dataset, before: int, *, is_transposed: bool
) -> int:
    """Read a dataset, if it is one of numbers; returns the bytes that this took."""
    with damaged(found.path, *_ERRORS, part=name):
        shape: tuple[int, ...] = dataset.shape or ()
        chunks: tuple[int, ...] | None = dataset.chunks
        dtype = dataset.dtype
    if reason := unusable(dtype, shape):
        found.leave_out(name, reason)
        return 0
    # A chunk is unpacked as a whole.
    lengths = zip(shape, chunks or (1,) * len(shape), strict=True)
    size = 8 * math.prod(-(-count // length) * length for count, length in lengths)
    found.check_bytes(before + size)
    with damaged(found.path, *_ERRORS, part=name):
        values = dataset[()]
    found.add(name, values.T if is_transposed else values)
    return size


def _read_attributes(
    found: Arrays, name: str, item: h5py.Group | h5py.Dataset, names: Collection[str]
) -> None:
    with damaged(found.path, *_ERRORS, part=name):
        found.attributes[name] = {key: item.attrs[key] for key in names if key in item.attrs}
