"""Gets the numbers of a trajectory out of HDF5, NPZ or CSV, in the right shapes.

What the numbers mean is not looked at: `daq.motion.trajectory_file`.
"""

from __future__ import annotations

import csv
import difflib
import itertools
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daq.motion.errors import TrajectoryFileError
from daq.stream.messages import ROWS_MAX

Array = NDArray[np.float64]

BYTES_MAX = 512 << 20
"""Of a file: more than ten minutes of a 16-joint arm as text."""


class Quantity(NamedTuple):
    """What a file may contain.

    Attributes:
        dataset: Its name in HDF5 and NPZ, which also states its unit.
        units: Ways to write the unit; the first is ours.
    """

    dataset: str
    units: tuple[str, ...]


QUANTITIES: Final = {
    "t": Quantity("t_s", ("s",)),
    "q": Quantity("q_rad", ("rad",)),
    "dq": Quantity("dq_rad_s", ("rad/s", "rad s-1", "rad*s^-1")),
    "tau": Quantity("tau_nm", ("N·m", "N*m", "N m", "Nm")),
}


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a file.

    Attributes:
        path: The file.
        names: What it calls each quantity, or each joint's column of it.
        t: Shape (rows,).
        q: Shape (rows, joints).
        dq: Likewise, where given.
        tau: Likewise, where given.
    """

    path: Path
    names: Mapping[str, tuple[str, ...]]
    t: Array
    q: Array
    dq: Array | None
    tau: Array | None

    def name(self, key: str, joint: int = 0) -> str:
        """What the file calls a quantity of a joint."""
        names = self.names[key]
        return names[joint] if len(names) > joint else f"{names[0]}[:, {joint}]"


def read_table(path: Path, joints: tuple[str, ...]) -> Table:
    """Reads a file by its suffix.

    Args:
        path: The file.
        joints: Names of the joints, in the order of the columns.

    Returns:
        Its numbers.

    Raises:
        TrajectoryFileError: It is missing, too large, of another format, or its contents are not
            what they should be.
    """
    readers: dict[str, Callable[[Path, tuple[str, ...]], Table]] = {
        ".h5": _read_hdf5,
        ".hdf5": _read_hdf5,
        ".npz": _read_npz,
        ".csv": _read_csv,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(readers)
        raise TrajectoryFileError(path, f"suffix {path.suffix!r}, expected one of {known}")
    try:
        if not path.is_file():
            message = "it is no file" if path.exists() else "there is no such file"
            raise TrajectoryFileError(path, message)
        size = path.stat().st_size
        if size > BYTES_MAX:
            raise TrajectoryFileError(path, f"{size} bytes, limit {BYTES_MAX}")
        return reader(path, joints)
    except TrajectoryFileError:
        raise
    except (OSError, zipfile.BadZipFile, EOFError) as error:
        raise TrajectoryFileError(path, f"it cannot be read: {error}") from error
    except (ValueError, LookupError, RuntimeError, TypeError, MemoryError, csv.Error) as error:
        # What the libraries raise for damaged contents.
        raise TrajectoryFileError(path, f"it is damaged: {error}") from error


def _read_hdf5(path: Path, joints: tuple[str, ...]) -> Table:
    # Only who reads or writes files needs it.
    import h5py  # noqa: PLC0415

    from daq.recording.checks import stored_elsewhere  # noqa: PLC0415

    with h5py.File(path, "r") as file:
        if (name := stored_elsewhere(file)) is not None:
            raise TrajectoryFileError(path, f"{name} is stored elsewhere: copy it into this file")
        named = file.attrs.get("joints")
        if named is not None and tuple(map(str, np.atleast_1d(named))) != joints:
            found = ", ".join(map(str, np.atleast_1d(named)))
            raise TrajectoryFileError(
                path, f"it is for joints {found}; the robot has {', '.join(joints)}"
            )
        datasets = {n: d for n in file if isinstance(d := file.get(n), h5py.Dataset)}
        return _table_of_arrays(path, joints, datasets)


def _read_npz(path: Path, joints: tuple[str, ...]) -> Table:
    with zipfile.ZipFile(path) as archive:
        # What a small file may unpack to is stated in it; numpy would take any of it.
        size = sum(entry.file_size for entry in archive.infolist())
        if size > BYTES_MAX:
            raise TrajectoryFileError(path, f"unpacks to {size} bytes, limit {BYTES_MAX}")
    with np.load(path, allow_pickle=False) as arrays:
        known = {name for key, q in QUANTITIES.items() for name in (key, q.dataset)}
        found = {name: arrays[name] for name in arrays.files if name in known}
        return _table_of_arrays(path, joints, found)


def _table_of_arrays(path: Path, joints: tuple[str, ...], arrays: Mapping[str, Any]) -> Table:
    names: dict[str, tuple[str, ...]] = {}
    columns: dict[str, Any] = {}
    for key, quantity in QUANTITIES.items():
        both = [name for name in (quantity.dataset, key) if name in arrays]
        if len(both) == 2:
            raise TrajectoryFileError(path, f"it has both {both[0]} and {both[1]}")
        names[key] = (both[0] if both else quantity.dataset,)
        if not both:
            if key in ("t", "q"):
                message = f"dataset {quantity.dataset} (or {key}) is missing"
                raise TrajectoryFileError(path, message)
            columns[key] = None
            continue
        columns[key] = _numbers(path, both[0], arrays[both[0]], quantity)
    rows = len(columns["t"]) if columns["t"] is not None and columns["t"].ndim else 0
    for key, array in columns.items():
        expected: tuple[int, ...] = (rows,) if key == "t" else (rows, len(joints))
        if array is not None and array.shape != expected:
            raise TrajectoryFileError(
                path, f"{names[key][0]} has shape {array.shape}, expected {expected}"
            )
    return Table(path, names, **columns)


def _numbers(path: Path, name: str, dataset: Any, quantity: Quantity) -> Array:
    if dataset.dtype.kind not in "fiu":
        raise TrajectoryFileError(path, f"{name} has type {dataset.dtype}, expected numbers")
    if len(dataset.shape) > 0 and dataset.shape[0] > ROWS_MAX:
        raise TrajectoryFileError(path, f"{name} has {dataset.shape[0]} rows, limit {ROWS_MAX}")
    if dataset.dtype.itemsize * int(np.prod(dataset.shape)) > BYTES_MAX:
        shape = " × ".join(map(str, dataset.shape))
        raise TrajectoryFileError(path, f"{name} has {shape} values, limit {BYTES_MAX} bytes")
    attributes = getattr(dataset, "attrs", {})
    for attribute in ("units", "unit"):
        unit = attributes.get(attribute)
        unit = unit.decode(errors="replace") if isinstance(unit, bytes) else unit
        if unit is not None and str(unit) not in quantity.units:
            expected = quantity.units[0]
            raise TrajectoryFileError(path, f"{name} is in {unit!s}, expected {expected}")
    return np.asarray(dataset[()], dtype=np.float64)


def _read_csv(path: Path, joints: tuple[str, ...]) -> Table:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = enumerate(file, 1)
        content = ((n, line) for n, line in lines if line.strip() and not line.startswith("#"))
        _, first = next(content, (0, ""))
        header = [cell.strip() for cell in next(csv.reader([first]), [])]
        places, names = _csv_columns(path, joints, header)
        values = _csv_values(path, header, list(itertools.islice(content, ROWS_MAX + 1)))
    columns = {
        key: None if not where else values[:, where[0]] if key == "t" else values[:, where]
        for key, where in places.items()
    }
    return Table(path, names, **columns)  # type: ignore[arg-type] # t and q are always there


def _csv_columns(
    path: Path, joints: tuple[str, ...], header: list[str]
) -> tuple[dict[str, list[int]], dict[str, tuple[str, ...]]]:
    """Which columns hold each quantity, and what they are called."""
    meaning = {"t_s": ("t", 0), "t": ("t", 0)}
    for key in ("q", "dq", "tau"):
        unit = QUANTITIES[key].dataset.removeprefix(f"{key}_")
        for number, name in enumerate(joints):
            for spelling in (
                f"{key}{number + 1}_{unit}",
                f"{key}{number + 1}",
                f"{key}_{name}_{unit}",
            ):
                meaning[spelling] = (key, number)
    found: dict[tuple[str, int], int] = {}
    for place, cell in enumerate(header):
        if cell not in meaning:
            close = difflib.get_close_matches(cell[:100], meaning, n=1)
            hint = f"did you mean {close[0]}?" if close else "expected t_s, q1_rad, dq1_rad_s, …"
            raise TrajectoryFileError(path, f"column {place + 1} is called {cell[:60]!r}; {hint}")
        if meaning[cell] in found:
            raise TrajectoryFileError(
                path, f"columns {header[found[meaning[cell]]]} and {cell} are the same"
            )
        found[meaning[cell]] = place
    places, names = {}, {}
    for key, quantity in QUANTITIES.items():
        wanted = [(key, number) for number in range(1 if key == "t" else len(joints))]
        absent = [number for number, pair in enumerate(wanted) if pair not in found]
        is_left_out = len(absent) == len(wanted) and key in ("dq", "tau")
        if absent and not is_left_out:
            prefix, unit = quantity.dataset.split("_", 1)
            missing = quantity.dataset if key == "t" else f"{prefix}{absent[0] + 1}_{unit}"
            raise TrajectoryFileError(path, f"column {missing} is missing")
        places[key] = [] if is_left_out else [found[pair] for pair in wanted]
        names[key] = tuple(header[place] for place in places[key]) or (quantity.dataset,)
    return places, names


def _csv_values(path: Path, header: list[str], lines: list[tuple[int, str]]) -> Array:
    if len(lines) > ROWS_MAX:
        raise TrajectoryFileError(path, f"more than {ROWS_MAX} rows")
    if not lines:
        return np.empty((0, len(header)))
    try:
        values = np.loadtxt([line for _, line in lines], delimiter=",", comments=None, ndmin=2)
        if values.shape[1] == len(header):
            return values
    except ValueError:
        pass
    # Slower, to say where.
    for number, line in lines:
        cells = next(csv.reader([line]), [])
        if len(cells) != len(header):
            raise TrajectoryFileError(
                path, f"line {number} has {len(cells)} values, the header {len(header)}"
            )
        for name, cell in zip(header, cells, strict=True):
            try:
                float(cell)
            except ValueError:
                raise TrajectoryFileError(
                    path, f"column {name} line {number}: {cell[:40]!r}, expected a number"
                ) from None
    raise TrajectoryFileError(path, "its values cannot be read as numbers")
