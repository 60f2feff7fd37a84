"""A trajectory on its way into the loop: rows in order, each checked before it is taken."""

from __future__ import annotations

import numpy as np

from daq.motion.limits import RowChecker
from daq.motion.playback import Playback
from daq.robot.description import DrivenRobot
from daq.stream.errors import RefusedError


class Upload:
    """Collects an announced trajectory in `playback`."""

    def __init__(self, robot: DrivenRobot, *, rows: int, has_torque: bool, period_s: float) -> None:
        self._announced = rows
        self._columns = len(robot.joints) * (3 if has_torque else 2)
        self._checker = RowChecker(robot, period_s=period_s)
        self._previous: list[float] | None = None
        self._joints = robot.joints
        self._lowest = np.full(len(robot.joints), np.inf)
        self._highest = -self._lowest
        self.playback = Playback(len(robot.joints), has_torque=has_torque)

    @property
    def missing(self) -> int:
        """Rows still to come."""
        return self._announced - self.playback.rows

    @property
    def ways_rad(self) -> list[tuple[float, float]]:
        """How far down and up it takes each joint."""
        return list(zip(self._lowest.tolist(), self._highest.tolist(), strict=True))

    def add(self, first: int, payload: bytes) -> int:
        """Take some rows and return how many there are now.

        Raises:
            RefusedError: They are not the next ones, or not whole rows.
            MotionLimitError: A row is beyond a limit; nothing of the payload is taken.
        """
        size = 8 * self._columns
        count, rest = divmod(len(payload), size)
        if rest or not count:
            text = f"{len(payload)} bytes of rows, expected a multiple of {size}, at least one row"
            raise RefusedError("malformed", text, reason="broken-rows")
        if first != self.playback.rows:
            text = f"row {first} came, expected row {self.playback.rows}"
            raise RefusedError("malformed", text, reason="wrong-row")
        if count > self.missing:
            text = f"{count} rows came, {self.missing} of {self._announced} are still expected"
            raise RefusedError("malformed", text, reason="too-many-rows")
        rows = np.frombuffer(payload, "<f8").reshape(count, self._columns)
        self._checker.check(rows, first_row=first, previous_row=self._previous)
        self._previous = rows[-1].tolist()
        joints = len(self._joints)
        positions = rows[:, :joints]
        self._lowest = np.minimum(self._lowest, positions.min(axis=0))
        self._highest = np.maximum(self._highest, positions.max(axis=0))
        self.playback.append(payload)
        return self.playback.rows
