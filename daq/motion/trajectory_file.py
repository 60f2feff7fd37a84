"""Reads a joint-space trajectory from a file, checks it, and brings it to the loop's rate.

HDF5 (`.h5`, `.hdf5`), NumPy (`.npz`) or text (`.csv`), the same contents in each:

| HDF5 dataset, NPZ array  | CSV column, joint i named NAME             | unit  |                 |
|--------------------------|--------------------------------------------|-------|-----------------|
| `t_s` or `t`             | `t_s` or `t`                               | s     | one per row     |
| `q_rad` or `q`           | `q1_rad`, `q1` or `q_NAME_rad`, …          | rad   | rows × joints   |
| `dq_rad_s` or `dq`       | `dq1_rad_s`, `dq1` or `dq_NAME_rad_s`, …   | rad/s | rows × joints   |
| `tau_nm` or `tau`        | `tau1_nm`, `tau1` or `tau_NAME_nm`, …      | N·m   | may be left out |

Joint side, time rising. Where dq is left out it is worked out from q by central differences. Rows
at another rate, or at uneven times, are brought to the loop's by cubic Hermite interpolation of q
and dq (torque linearly); less than a period at the end may be lost by that. Limits of the robot are
not checked here: `daq.motion.limits`. A file whose q and dq are both in degrees agrees with itself
and is found only there.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daq.motion.errors import TrajectoryFileError
from daq.motion.playback import ROWS_MAX
from daq.motion.table_file import QUANTITIES, Table, read_table
from daq.recording.tables.arrays import VALUE_MAX
from daq.recording.whole_files import replace_file

Array = NDArray[np.float64]

TIME_TOLERANCE = 0.01
"""How far a row may be from its place in the loop's rate, in periods, to be taken as it is."""
SCALE_TOLERANCE = 0.05
"""How far the speeds may be from the slope of the positions, over the whole file."""
_JUMP = 0.25
_ROUNDING_RAD = 2e-4
"""Positions may have been rounded to four decimals."""
_STILL_RAD = 1e-3
_DEGREES = float(np.rad2deg(1.0))


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A trajectory at the loop's rate.

    Attributes:
        rows: Shape (rows, 2 or 3 times joints): q, dq and, where there is one, torque.
        is_resampled: Whether the file had another rate.
    """

    rows: Array
    joints: int
    period_s: float
    is_resampled: bool

    @property
    def has_torque(self) -> bool:
        """Whether rows carry a feed-forward torque."""
        return bool(self.rows.shape[1] == 3 * self.joints)

    @property
    def duration_s(self) -> float:
        """From the first row to the last."""
        return (len(self.rows) - 1) * self.period_s


def read_trajectory(
    path: str | Path, joint_names: Sequence[str], *, period_s: float = 1e-3
) -> Trajectory:
    """Read a trajectory file, by its suffix, and bring it to the loop's rate.

    The joints are in the order of the columns.

    Raises:
        TrajectoryFileError: It cannot be used; says why, with dataset or column, row and value.
    """
    table = read_table(Path(path), tuple(joint_names))
    _check_time(table, period_s)
    for quantity in QUANTITIES:
        _check_finite(table, quantity)
    speeds = table.dq
    if speeds is None:
        # Exact for a parabola, also between uneven times; one-sided at the ends.
        edge_order: Literal[1, 2] = 2 if len(table.t) > 2 else 1
        slopes = [np.gradient(column, table.t, edge_order=edge_order) for column in table.q.T]
        speeds = np.column_stack(slopes)
    else:
        _check_speed(table, speeds)
    parts = [table.q, speeds] + ([] if table.tau is None else [table.tau])
    places = (table.t - table.t[0]) / period_s
    is_resampled = bool(np.abs(places - np.arange(len(places))).max() > TIME_TOLERANCE)
    if is_resampled:
        parts = _resampled(table.t - table.t[0], parts, period_s)
    return Trajectory(
        rows=np.hstack(parts),
        joints=len(joint_names),
        period_s=period_s,
        is_resampled=is_resampled,
    )


def write_trajectory(
    path: str | Path,
    *,
    t_s: ArrayLike,
    q_rad: ArrayLike,
    dq_rad_s: ArrayLike,
    tau_nm: ArrayLike | None = None,
    joint_names: Sequence[str] = (),
    attributes: Mapping[str, str | float] | None = None,
) -> None:
    """Write a trajectory as HDF5, under a temporary name first.

    Args:
        path: The file; an existing one is replaced.
        t_s: Times, shape (rows,).
        q_rad: Positions, shape (rows, joints).
        dq_rad_s: Speeds, of the same shape.
        tau_nm: Feed-forward torques, of the same shape; none to leave them out.
        joint_names: Whose columns they are; checked when the file is read.
        attributes: How it was made; for people, not looked at when the file is read.

    Raises:
        TrajectoryFileError: The shapes do not fit together.
        OSError: It could not be written.
    """
    import h5py  # noqa: PLC0415 - only callers that read or write files need it

    path = Path(path)
    given = {"t": t_s, "q": q_rad, "dq": dq_rad_s, "tau": tau_nm}
    arrays = {key: np.asarray(a, dtype=np.float64) for key, a in given.items() if a is not None}
    rows = arrays["t"].shape
    shape = arrays["q"].shape
    for key, array in arrays.items():
        expected = rows if key == "t" else shape
        if array.shape != expected or len(rows) != 1 or len(shape) != 2 or shape[0] != rows[0]:
            raise TrajectoryFileError(
                path,
                f"{QUANTITIES[key].dataset} has shape {array.shape}, t_s {rows}, q_rad {shape}",
                code="wrong-shape",
            )
    # In memory, since HDF5 leaves files open that it cannot write, and complains at length.
    data = io.BytesIO()
    with h5py.File(data, "w") as file:
        file.attrs.update(attributes or {})
        for key, array in arrays.items():
            dataset = file.create_dataset(
                QUANTITIES[key].dataset, data=array, compression="gzip", shuffle=True
            )
            dataset.attrs["units"] = QUANTITIES[key].units[0]
        if joint_names:
            file.attrs["joints"] = list(joint_names)
    try:
        replace_file(path, data.getvalue())
    except OSError as error:
        raise OSError(f"{path}: cannot be written: {error.strerror}") from error


def _check_time(table: Table, period_s: float) -> None:
    name, t = table.name("t"), table.t
    if len(t) < 2:
        raise TrajectoryFileError(
            table.path, f"{name} has {len(t)} rows, expected at least 2", code="few-rows"
        )
    _check_finite(table, "t")
    steps = np.diff(t)
    if not (steps > 0.0).all():
        row = int((steps > 0.0).argmin()) + 1
        raise TrajectoryFileError(
            table.path,
            f"{name} row {row}: {t[row]:.9g} s after {t[row - 1]:.9g} s; time must rise",
            code="time-falls",
        )
    rows = (t[-1] - t[0]) / period_s + 1.0
    if not rows <= ROWS_MAX:
        raise TrajectoryFileError(
            table.path,
            f"{name} spans {t[-1] - t[0]:.6g} s, {rows:.0f} rows at {1.0 / period_s:.0f} Hz,"
            f" limit {ROWS_MAX}; is it in seconds?",
            code="too-long",
        )


def _check_finite(table: Table, key: str) -> None:
    array = getattr(table, key)
    if array is None:
        return
    # False for NaN, too.
    is_sound = np.abs(array) <= VALUE_MAX
    if is_sound.all():
        return
    place = tuple(int(i) for i in np.unravel_index(int(is_sound.argmin()), array.shape))
    raise TrajectoryFileError(
        table.path,
        f"{table.name(key, *place[1:])} row {place[0]}: {array[place]}, expected a finite number"
        f" of at most {VALUE_MAX:g}",
        code="not-finite",
    )


def _check_speed(table: Table, speeds: Array) -> None:
    """Check that dq is the slope of q: finds files in degrees and swapped columns."""
    times = np.diff(table.t)[:, np.newaxis]
    steps = np.diff(table.q, axis=0)
    explained = 0.5 * times * (speeds[1:] + speeds[:-1])
    for joint in range(steps.shape[1]):
        own = _slope(steps[:, joint], explained[:, joint])
        if own is not None and not abs(own - 1.0) <= SCALE_TOLERANCE:
            others = [_slope(steps[:, joint], column) for column in explained.T]
            code, message = _speed_mistake(table, joint, own, others)
            raise TrajectoryFileError(table.path, message, code=code)
    allowed = _JUMP * times * np.abs(speeds).max(axis=0) + _ROUNDING_RAD
    is_smooth = np.abs(steps - explained) <= allowed
    if not is_smooth.all():
        row, joint = (int(i) for i in np.unravel_index(int(is_smooth.argmin()), is_smooth.shape))
        raise TrajectoryFileError(
            table.path,
            f"{table.name('q', joint)} row {row + 1}: a step of {steps[row, joint]:.6g} rad where"
            f" {table.name('dq', joint)} explains {explained[row, joint]:.6g} rad; the trajectory"
            " jumps",
            code="position-jump",
        )


def _slope(steps: Array, explained: Array) -> float | None:
    """Return the factor by which dq explains q; 0 when it does not, None when both rest."""
    moved, said = float(np.linalg.norm(steps)), float(np.linalg.norm(explained))
    if max(np.abs(steps).sum(), np.abs(explained).sum()) <= _STILL_RAD:
        return None
    if not moved or not said:
        return 0.0
    factor = float(steps @ explained) / said**2
    # Rounded positions agree less in each step than over many.
    blur = _ROUNDING_RAD * np.sqrt(len(steps)) / moved
    return factor if abs(factor) * said / moved >= 0.98 - blur else 0.0


def _speed_mistake(
    table: Table, joint: int, own: float, others: list[float | None]
) -> tuple[str, str]:
    """Return the code and the message for a dq that is not the slope of q."""
    q, dq = table.name("q", joint), table.name("dq", joint)
    message = f"{dq} is not the slope of {q}"
    twin = next(
        (n for n, f in enumerate(others) if n != joint and f and abs(f - 1.0) <= SCALE_TOLERANCE),
        None,
    )
    if twin is not None:
        return (
            "swapped-columns",
            f"{message}, but {table.name('dq', twin)} is: are columns swapped?",
        )
    if abs(own / _DEGREES - 1.0) <= SCALE_TOLERANCE:
        return "position-in-degrees", f"{message} (57.3 times too small): is q in degrees?"
    if abs(own * _DEGREES - 1.0) <= SCALE_TOLERANCE:
        return "speed-in-degrees", f"{message} (57.3 times too large): is dq in degrees per second?"
    if abs(own + 1.0) <= SCALE_TOLERANCE:
        return "opposite-sign", f"{message}: its sign is opposite"
    factor = f"q moves {own:.4g} times as fast" if own else "they do not belong together"
    return "speed-not-slope", f"{message}: {factor}, limit 1 ± {SCALE_TOLERANCE}"


def _resampled(t: Array, parts: list[Array], period_s: float) -> list[Array]:
    q, dq, *torque = parts
    times = np.arange(int(t[-1] / period_s + TIME_TOLERANCE) + 1) * period_s
    times = np.minimum(times, t[-1])
    place = np.clip(np.searchsorted(t, times, side="right") - 1, 0, len(t) - 2)
    length = np.diff(t)[place][:, np.newaxis]
    s = (times - t[place])[:, np.newaxis] / length
    before, after = q[place], q[place + 1]
    slope, next_slope = length * dq[place], length * dq[place + 1]
    way = after - before
    # q = q₀ + s·u₀ + s²(3Δ - 2u₀ - u₁) + s³(u₀ + u₁ - 2Δ), and its derivative.
    second, third = 3.0 * way - 2.0 * slope - next_slope, slope + next_slope - 2.0 * way
    resampled = [
        before + s * (slope + s * (second + s * third)),
        (slope + s * (2.0 * second + 3.0 * s * third)) / length,
    ]
    for tau in torque:
        resampled.append(tau[place] + s * (tau[place + 1] - tau[place]))
    return resampled
