"""A trajectory as it was uploaded: packed rows, played one per cycle. Checks nothing."""

from __future__ import annotations

import struct
from bisect import bisect_right

from daq.motion.errors import MotionError
from daq.motion.moves import Row

ROWS_MAX = 600_000
"""Of a trajectory: ten minutes at 1 kHz."""


class Playback:
    """Rows of little-endian doubles, in chunks as they came.

    A chunk stays as it is: joining them would hold up the loop for as long as copying takes.
    """

    __slots__ = ("_chunk", "_chunks", "_ends", "_first", "_none", "_pack", "_until")

    def __init__(self, joints: int, *, has_torque: bool) -> None:
        self._pack = struct.Struct(f"<{joints * (3 if has_torque else 2)}d")
        self._none = () if has_torque else (0.0,) * joints
        self._chunks: list[bytes] = []
        self._ends: list[int] = []
        self._chunk, self._first, self._until = b"", 0, 0

    def append(self, chunk: bytes) -> None:
        """Add whole rows at the end.

        Raises:
            MotionError: The chunk does not hold whole rows.
        """
        rows, rest = divmod(len(chunk), self._pack.size)
        if rest or not rows:
            raise MotionError(
                f"a chunk of {len(chunk)} bytes, expected whole rows of {self._pack.size} bytes",
                code="broken-rows",
            )
        self._chunks.append(chunk)
        self._ends.append(self.rows + rows)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._ends[-1] if self._ends else 0

    @property
    def cycles(self) -> int:
        """Periods until the last row, where it ends."""
        return self.rows - 1

    @property
    def end_row(self) -> Row:
        """The last row as it is, with its speed."""
        return self._stored(self.cycles)

    def row(self, k: int) -> Row:
        """Return the reference in cycle k."""
        if self._first <= k < self._until:
            unpacked = self._pack.unpack_from(self._chunk, (k - self._first) * self._pack.size)
            return unpacked + self._none
        if k < self.cycles:
            return self._stored(k)
        last, joints = self._stored(self.cycles), self._pack.size // 8
        joints = joints // 2 if self._none else joints // 3
        return (*last[:joints], *(0.0,) * joints, *last[2 * joints :])

    def _stored(self, k: int) -> Row:
        number = bisect_right(self._ends, k)
        self._chunk = self._chunks[number]
        self._first = self._ends[number - 1] if number else 0
        # The very last row is left to `row`, which plays it at rest.
        self._until = min(self._ends[number], self.cycles)
        unpacked = self._pack.unpack_from(self._chunk, (k - self._first) * self._pack.size)
        return unpacked + self._none
