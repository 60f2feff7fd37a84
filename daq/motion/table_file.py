"""Reads the arrays of a trajectory from HDF5, NPZ or CSV and checks their names, units and shapes.

Whether the numbers make sense is checked by `daq.motion.trajectory_file`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daq.motion.errors import TrajectoryFileError
from daq.recording.tables.arrays import Arrays
from daq.recording.tables.errors import TableError
from daq.recording.tables.numpy_files import read_npz
from daq.recording.tables.text import TextTable, read_text
from daq.recording.text import plain

Array = NDArray[np.float64]

SUFFIXES = (".h5", ".hdf5", ".npz", ".csv")


class TableQuantity(NamedTuple):
    """What a file may contain.

    Attributes:
        dataset: Its name in HDF5 and NPZ, which also states its unit.
        units: Ways to write the unit; the first is ours.
    """

    dataset: str
    units: tuple[str, ...]


QUANTITIES: Final = {
    "t": TableQuantity("t_s", ("s",)),
    "q": TableQuantity("q_rad", ("rad",)),
    "dq": TableQuantity("dq_rad_s", ("rad/s", "rad s-1", "rad*s^-1")),
    "tau": TableQuantity("tau_nm", ("N·m", "N*m", "N m", "Nm")),
}

_NAMES = frozenset(name for key, q in QUANTITIES.items() for name in (key, q.dataset))


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a file.

    Attributes:
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
        """Return what the file calls a quantity of a joint."""
        names = self.names[key]
        return names[joint] if len(names) > joint else f"{names[0]}[:, {joint}]"


def read_table(path: Path, joints: tuple[str, ...]) -> Table:
    """Read a file by its suffix; `joints` are in the order of its columns.

    Raises:
        TrajectoryFileError: It is missing, too large, of another format, or its contents are not
            what they should be.
    """
    if path.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise TrajectoryFileError(
            path, f"suffix {path.suffix!r}, expected one of {known}", code="unknown-format"
        )
    try:
        if path.suffix.lower() == ".csv":
            return _table_of_columns(path, joints, read_text(path))
        if path.suffix.lower() == ".npz":
            return _table_of_arrays(path, joints, read_npz(path, only=_NAMES))
        # Imported here: nothing else of this module needs HDF5.
        from daq.recording.tables.hdf5 import read_hdf5  # noqa: PLC0415

        found = read_hdf5(path, only=_NAMES, attributes=("joints", "units", "unit"))
        return _table_of_arrays(path, joints, found)
    except TableError as error:
        raise TrajectoryFileError(path, error.problem, code=error.code) from error


def _table_of_arrays(path: Path, joints: tuple[str, ...], found: Arrays) -> Table:
    named = found.attributes.get("", {}).get("joints")
    if named is not None and tuple(map(str, np.atleast_1d(named))) != joints:
        others = plain(", ".join(map(str, np.atleast_1d(named))))
        raise TrajectoryFileError(
            path,
            f"it is for joints {others}; the robot has {', '.join(joints)}",
            code="other-joints",
        )
    names: dict[str, tuple[str, ...]] = {}
    columns: dict[str, Array] = {}
    for key, quantity in QUANTITIES.items():
        both = [n for n in (quantity.dataset, key) if n in found.values or n in found.left_out]
        if len(both) == 2:
            raise TrajectoryFileError(
                path, f"it has both {both[0]} and {both[1]}", code="named-twice"
            )
        names[key] = (both[0] if both else quantity.dataset,)
        if both:
            columns[key] = _numbers(found, both[0], quantity)
        elif key in ("t", "q"):
            raise TrajectoryFileError(
                path, f"dataset {quantity.dataset} (or {key}) is missing", code="missing"
            )
    rows = len(columns["t"])
    for key, array in columns.items():
        expected: tuple[int, ...] = (rows,) if key == "t" else (rows, len(joints))
        if array.shape != expected:
            raise TrajectoryFileError(
                path,
                f"{names[key][0]} has shape {array.shape}, expected {expected}",
                code="wrong-shape",
            )
    return Table(path, names, columns["t"], columns["q"], columns.get("dq"), columns.get("tau"))


def _numbers(found: Arrays, name: str, quantity: TableQuantity) -> Array:
    if name in found.left_out:
        reason = found.left_out[name]
        raise TrajectoryFileError(
            found.path, f"{name} has {reason}, expected numbers", code="not-numbers"
        )
    for unit in found.attributes.get(name, {}).values():
        text = unit.decode(errors="replace") if isinstance(unit, bytes) else str(unit)
        if text not in quantity.units:
            expected = quantity.units[0]
            raise TrajectoryFileError(
                found.path, f"{name} is in {plain(text)}, expected {expected}", code="unknown-unit"
            )
    return found.values[name]


def _table_of_columns(path: Path, joints: tuple[str, ...], text: TextTable) -> Table:
    if len(text.values) and not text.names:
        problem = "its columns have no names; expected t_s, q1_rad, dq1_rad_s, …"
        raise TrajectoryFileError(path, problem, code="no-header")
    places, names = _csv_columns(path, joints, [plain(name) for name in text.names])
    columns = {key: text.values[:, where] for key, where in places.items() if where}
    t = columns["t"][:, 0]
    return Table(path, names, t, columns["q"], columns.get("dq"), columns.get("tau"))


def _csv_columns(
    path: Path, joints: tuple[str, ...], header: list[str]
) -> tuple[dict[str, list[int]], dict[str, tuple[str, ...]]]:
    """Return which columns hold each quantity, and what they are called."""
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
            raise TrajectoryFileError(
                path, f"column {place + 1} is called {cell[:60]!r}; {hint}", code="no-such-column"
            )
        if meaning[cell] in found:
            raise TrajectoryFileError(
                path,
                f"columns {header[found[meaning[cell]]]} and {cell} are the same",
                code="named-twice",
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
            raise TrajectoryFileError(path, f"column {missing} is missing", code="missing")
        places[key] = [] if is_left_out else [found[pair] for pair in wanted]
        names[key] = tuple(header[place] for place in places[key]) or (quantity.dataset,)
    return places, names
