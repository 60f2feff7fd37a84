"""Arrays of MATLAB files: version 5 (`save -v6`, `save -v7`) by SciPy, v7.3 as the HDF5 it is.

A damaged file can crash the interpreter in SciPy's reader (found by changing single bytes), so that
runs in a process of its own, with bounds on its memory and time. Nothing is unpickled: the arrays
come back as NPY files.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import msgspec

from daq.recording.tables.arrays import Arrays, check_file
from daq.recording.tables.errors import TableError
from daq.recording.tables.hdf5 import read_hdf5
from daq.recording.tables.numpy_files import read_npy

_HEADER_BYTES = 128
_TIME_MAX_S = 120.0
_COMMAND = (sys.executable, "-P", "-m", "estimation.importing.matlab_child")


class Variable(msgspec.Struct, frozen=True):
    """A variable of the file, or a field of a structure.

    Attributes:
        name: The field after its structure and a dot.
        file: Its NPY file, if it is an array of numbers.
        left_out: What it is otherwise.
    """

    name: str
    file: str = ""
    left_out: str = ""


def read_mat(path: Path) -> Arrays:
    """Read the arrays of a MATLAB file; fields of structures as STRUCTURE.FIELD.

    Raises:
        TableError: It is of another version, damaged, or too large.
    """
    check_file(path)
    if h5py.is_hdf5(path):
        # MATLAB's first index is HDF5's last.
        return read_hdf5(path, is_transposed=True)
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(b"MATLAB") or header[126:] not in (b"IM", b"MI"):
        raise TableError(
            path,
            "not a MATLAB file of version 5 or 7.3; save it with `save -v7`",
            code="not-matlab",
        )
    if importlib.util.find_spec("scipy") is None:
        raise TableError(
            path, "reading it needs SciPy: pip install 'armature[estimation]'", code="no-scipy"
        )
    found = Arrays(path)
    with tempfile.TemporaryDirectory(prefix="armature-mat-") as folder:
        for variable in _variables(path, folder):
            if variable.left_out:
                found.leave_out(variable.name, variable.left_out)
            else:
                found.add(variable.name, read_npy(Path(folder, variable.file)))
    return found


def _variables(path: Path, folder: str) -> list[Variable]:
    # One thread: each would reserve memory, of which there is little.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [*_COMMAND, str(path.absolute()), folder],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=_TIME_MAX_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        problem = f"was not read within {_TIME_MAX_S:.0f} s: save it with `save -v7.3`"
        raise TableError(path, problem, code="timeout") from error
    except OSError as error:
        raise TableError(
            path, f"SciPy cannot be started: {error.strerror}", code="no-scipy"
        ) from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        if done.returncode < 0:
            reason = f"SciPy ended by {signal.Signals(-done.returncode).name}"
        raise TableError(path, f"damaged, or not a .mat file: {reason}", code="damaged")
    return msgspec.json.decode(done.stdout, type=list[Variable])
