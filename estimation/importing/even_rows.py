"""Rows of foreign files as samples at a constant rate: what is left out, joined or interpolated.

Angles that were written within one turn are joined: a step of about 2π from row to row is a wrap,
as no joint makes a turn from one row to the next while it hardly moves between the others. Fewer
steps are taken for wraps than `numpy.unwrap` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from estimation.errors import OptionError
from estimation.importing.sampling import (
    JITTER_MAX,
    JITTER_SAID,
    Sampling,
    constant_rate,
    find_rate,
    resample,
)
from estimation.importing.time_stamps import rising_rows
from estimation.types import FloatArray, Rows

ROWS_MIN = 10
"""Of a file, and of those with a time."""
_TURN = 2.0 * np.pi
_NEAR_RAD = 0.5
"""How far a wrap may be from a turn, and how little a joint moves from row to row otherwise."""


def make_even(
    values: dict[str, FloatArray],
    joints: Sequence[str],
    *,
    rate_hz: float | None,
    is_resampled: bool,
) -> tuple[Sampling, dict[str, FloatArray], list[str]]:
    """Bring rows to a constant rate.

    Args:
        values: Arrays of shape (rows, columns) by quantity, t_s among them if there are times.
        joints: Their names.
        rate_hz: Samples per second; None to take it from the times.
        is_resampled: Whether to interpolate linearly.

    Returns:
        When the samples are, their values, and sentences about what was done.

    Raises:
        OptionError: Without times there is no rate.
        DatasetError: The times are not those of samples at one rate, or there are none.
    """
    values = dict(values)
    t_s = values.pop("t_s", None)
    rows, notes = np.arange(len(values["q_rad"])), list[str]()
    if t_s is not None:
        rows, notes = rising_rows(t_s[:, 0], ROWS_MIN)
        t_s, values = t_s[rows, 0], {key: array[rows] for key, array in values.items()}
    notes += _unwrap(values, joints, rows)  # before anything is interpolated
    if t_s is None:
        if rate_hz is None or is_resampled:
            raise OptionError(
                "--resample needs times (--map t_s=…); without them, give --rate alone",
                code="no-times",
            )
        return constant_rate(len(values["q_rad"]), rate_hz), values, notes
    if is_resampled:
        sampling, values = resample(t_s, values, rate_hz)
        notes.append(
            f"{len(t_s)} rows over {t_s[-1] - t_s[0]:.4g} s were interpolated linearly to "
            f"{len(sampling.seq)} at {sampling.rate_hz:.6g} per second: what lies above some "
            "tenths of the old rate is no longer what was measured"
        )
    else:
        sampling = find_rate(t_s, rate_hz)
        values = {key: np.delete(array, sampling.late, axis=0) for key, array in values.items()}
        notes += _jitter(sampling, rows)
    if sampling.missing:
        notes.append(
            f"{sampling.missing} samples are missing, {sampling.missing / sampling.rate_hz:.3g} s "
            f"in {sampling.gaps} gap{'s' if sampling.gaps > 1 else ''}"
        )
    return sampling, values, notes


def _jitter(sampling: Sampling, rows: Rows) -> list[str]:
    notes = []
    if sampling.late.size:
        notes.append(
            f"rows more than {JITTER_MAX:.2g} periods from their places, or in that of another: "
            f"{sampling.late.size}, left out (the first is row {rows[sampling.late[0]]})"
        )
    if sampling.jitter > JITTER_SAID:
        notes.append(
            f"the time stamps jitter by up to {sampling.jitter:.2g} periods "
            f"({1e3 * sampling.jitter / sampling.rate_hz:.2g} ms): rows were put in their "
            "places at a constant rate, as stamps jitter and samples hardly do; if samples "
            "do, too: --resample"
        )
    return notes


def _unwrap(values: dict[str, FloatArray], joints: Sequence[str], rows: Rows) -> list[str]:
    notes = []
    for key in ("q_rad", "q_ref_rad"):
        if key not in values:
            continue
        unwrapped = [unwrap(column) for column in values[key].T]
        values[key] = np.column_stack([column for column, _ in unwrapped])
        for joint, (_, wraps) in zip(joints, unwrapped, strict=True):
            if wraps:
                times = f"{len(wraps)} times, first" if len(wraps) > 1 else "once,"
                notes.append(
                    f"joint {joint}: its {key} wraps by a turn {times} at row {rows[wraps[0]]}: "
                    "unwrapped"
                )
    return notes


def unwrap(q_rad: FloatArray) -> tuple[FloatArray, list[int]]:
    """Join angles, (n,), at their wraps; return them and the rows before which they wrapped."""
    known = np.flatnonzero(np.isfinite(q_rad))
    steps = np.diff(q_rad[known])
    is_wrap = np.abs(np.abs(steps) - _TURN) < _NEAR_RAD
    if not is_wrap.any() or np.median(np.abs(steps)) >= _NEAR_RAD:
        return q_rad, []
    turns = np.concatenate([[0.0], np.cumsum(np.where(is_wrap, -np.sign(steps), 0.0))])
    joined = q_rad.copy()
    joined[known] += _TURN * turns
    return joined, [int(row) for row in known[1:][is_wrap]]
