"""`python -m estimation.importing.matlab_child FILE FOLDER`: what `matlab` has SciPy do.

Writes each array of numbers as an NPY file into the folder, and what it found to stdout, as JSON.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatlabOpaque

from daq.recording.tables.arrays import ARRAYS_MAX, BYTES_MAX

_MEMORY_MAX = 4 * BYTES_MAX
"""Of the process: a file, what it unpacks to, a copy, and the libraries."""
_DEPTH_MAX = 4


def main(path: Path, folder: Path) -> None:
    """Convert a file."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX, _MEMORY_MAX))
    resource.setrlimit(resource.RLIMIT_FSIZE, (BYTES_MAX, BYTES_MAX))
    variables: list[dict[str, str]] = []
    try:
        for name, value in _fields("", loadmat(path, chars_as_strings=False), 0):
            if len(variables) >= ARRAYS_MAX:
                sys.exit(f"more than {ARRAYS_MAX} arrays")
            if isinstance(value, str):
                variables.append({"name": name, "left_out": value})
            else:
                file = f"{len(variables)}.npy"
                np.save(folder / file, value, allow_pickle=False)
                variables.append({"name": name, "file": file})
    except MemoryError:
        sys.exit(f"unpacks to more than {BYTES_MAX} bytes")
    sys.stdout.buffer.write(msgspec.json.encode(variables))


def _fields(
    prefix: str, content: Mapping[str, Any], depth: int
) -> Iterator[tuple[str, np.ndarray[Any, np.dtype[Any]] | str]]:
    """Arrays of numbers, and in words what is none."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        if not depth and key.startswith("__"):
            continue
        if isinstance(value, MatlabOpaque):  # has its name inside
            yield prefix + value["s0"].item().decode("ascii", "replace"), "an object"
        elif type(value) is not np.ndarray:
            yield name, "a sparse matrix" if hasattr(value, "tocoo") else "an object"
        elif value.dtype.names:
            if value.size == 1 and depth < _DEPTH_MAX:
                record = value.reshape(-1)[0]
                fields = {field: record[field] for field in value.dtype.names}
                yield from _fields(f"{name}.", fields, depth + 1)
            else:
                yield name, "several or nested structures"
        elif value.dtype.kind == "O":
            yield name, "a cell array"
        elif value.dtype.kind in "US":
            yield name, "text"
        elif value.dtype.kind == "c":
            yield name, "complex numbers"
        else:
            yield name, value.astype(np.uint8) if value.dtype.kind == "b" else value


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
