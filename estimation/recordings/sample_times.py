"""When the values of a recording's rows were taken, which is not when their commands were sent."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from daq.recording import Recording
from estimation.types import Flags, FloatArray

UNUSUAL_S = 0.3e-3
"""An exchange that takes so much longer than usual leaves open when values were taken."""
IN_TIME_S, IN_TIME_RAD = 0.25e-3, 5e-4
"""How much earlier or later than it should be a value may have been taken, and what the board's
filtered velocity and an encoder's counts may be off by on top."""
_FEW_ROWS = 1 << 16


class RowTimes(NamedTuple):
    """Of some rows, shape (n,) each, since the recording's first sample.

    Attributes:
        sent_s: When their commands were sent.
        taken_s: When their values were taken.
        is_sure: Whether that is known; elsewhere it is a guess.
    """

    sent_s: FloatArray
    taken_s: FloatArray
    is_sure: Flags


class SampleTimes:
    """The times of a recording's rows.

    Fresh replies are of the moment before their exchange: `reply_age_s` before it, on average.
    Others (None, in recordings of formats 1.0 and 1.1) are of the end of the exchange before. Where
    that exchange is missing, or the one that counts took unusually long (which board it waited for
    is not known), the time is a guess. Values of an imported recording were taken when it says.
    """

    def __init__(self, recording: Recording, reply_age_s: float | None = None) -> None:
        self._recording = recording
        self._reply_age_s = reply_age_s
        self._period_s = recording.period_ns * 1e-9
        self._start_t_ns = int(recording.attributes["start_t_ns"])
        self._is_import = recording.is_import
        few = recording["transfer_ns"][:_FEW_ROWS] if recording.sample_count else np.zeros(1)
        self._usual_exchange_s = float(np.median(few)) * 1e-9

    def taken_s(self, row: int) -> float:
        """When the values of a row were taken, also of the one that would follow the last."""
        if row < self._recording.sample_count:
            return float(self.of(slice(row, row + 1)).taken_s[0])
        return float(self.of(slice(row - 1, row)).taken_s[0] + self._period_s)

    def of(self, rows: slice) -> RowTimes:
        """Return the times of some rows."""
        before = slice(max(rows.start - 1, 0), rows.stop)
        sent_s = (self._recording["t_ns"][before] - self._start_t_ns) * 1e-9
        if self._is_import:
            sent_s = sent_s[-(rows.stop - rows.start) :]
            return RowTimes(sent_s, sent_s, np.ones(len(sent_s), bool))
        if self._reply_age_s is not None:
            sent_s = sent_s[-(rows.stop - rows.start) :]
            exchange_s = self._recording["transfer_ns"][rows] * 1e-9
            is_usual = exchange_s <= self._usual_exchange_s + UNUSUAL_S
            return RowTimes(sent_s, sent_s - self._reply_age_s, is_usual)
        seq = self._recording["seq"][before].astype(np.int64)
        exchange_s = self._recording["transfer_ns"][before] * 1e-9
        if before.start == rows.start:
            sent_s = np.concatenate([sent_s[:1] - self._period_s, sent_s])
            seq = np.concatenate([seq[:1] - 1, seq])
            exchange_s = np.concatenate([[self._usual_exchange_s], exchange_s])
        is_sure = (np.diff(seq) == 1) & (exchange_s[:-1] <= self._usual_exchange_s + UNUSUAL_S)
        taken_s = np.where(
            is_sure,
            sent_s[:-1] + exchange_s[:-1],
            sent_s[1:] - self._period_s + self._usual_exchange_s,
        )
        return RowTimes(sent_s[1:], taken_s, is_sure)


def is_in_time(q_rad: FloatArray, dq_rad_s: FloatArray, taken_s: FloatArray) -> Flags:
    """Whether positions have moved on by what the velocities say, for every joint.

    If not, a value was not taken when it should have been: a computer, or a mock board's process,
    was away in the middle of an exchange.

    Args:
        q_rad: Joint angles, shape (n, joints).
        dq_rad_s: Joint velocities, the same shape.
        taken_s: When they should have been taken, shape (n,).

    Returns:
        Shape (n,); the first row always is.
    """
    speed_rad_s = 0.5 * (dq_rad_s[1:] + dq_rad_s[:-1])
    surplus_rad = np.diff(q_rad, axis=0) - speed_rad_s * np.diff(taken_s)[:, np.newaxis]
    allowed_rad = IN_TIME_S * np.abs(speed_rad_s) + IN_TIME_RAD
    is_wrong = (np.abs(surplus_rad) > allowed_rad).any(axis=1)
    return np.concatenate([[True], ~is_wrong])
