"""Arrays of foreign HDF5 files, which MATLAB's are from v7.3 on."""

from __future__ import annotations

from collections import deque

import h5py

from daq.recording.checks import stored_elsewhere
from estimation.errors import DatasetError
from estimation.importing.formats.hdf5_bounds import bytes_to_read, storage_problem
from estimation.importing.found_arrays import FIELDS_MAX, FoundArrays, unusable

_DEPTH_MAX = 4


def read_hdf5(found: FoundArrays, *, is_transposed: bool = False) -> None:
    """Read all arrays of an HDF5 file; MATLAB's are transposed."""
    path = found.path
    with h5py.File(path, "r") as file:
        waiting = deque([("", file, 0)])
        seen = {_address(file)}
        total = count = 0
        while waiting:
            prefix, group, depth = waiting.popleft()
            count += len(group)
            if count > FIELDS_MAX:
                raise DatasetError(f"{path}: more than {FIELDS_MAX} arrays")
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
                    if reason := unusable(item.dtype, item.shape):
                        found.leave_out(f"{prefix}{name}", reason)
                        continue
                    total += bytes_to_read(item)
                    found.check_bytes("it", total)
                    if problem := storage_problem(item):
                        raise DatasetError(f"{path}: {prefix}{name} {problem}")
                    found.add(f"{prefix}{name}", item[()].T if is_transposed else item[()])


def _address(item: h5py.Group) -> int:
    """Where an object is in its file: the same by whatever name."""
    return int(h5py.h5o.get_info(item.id).addr)
