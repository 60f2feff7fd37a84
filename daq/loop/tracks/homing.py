"""Homes all joints at once: feeds each joint's search with what its board measures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from daq.loop.io.axis import Axis
from daq.loop.io.loop_board import LoopBoard
from daq.motion.errors import HomingError
from daq.motion.homing import SPEED_RAD_S, TRAVEL_TURNS, IndexSearch, locate_zero
from daq.motion.planning import check_reach

_SPEED_SHARE = 0.5
"""Of the joint's speed limit, where that is lower than the usual speed."""


class HomingRun:
    """The searches of all joints; one on the bench has no zero to find and stays where it is.

    Args:
        axes: All joints, in the robot's order.
        start_rad: Where each joint's reference is.
        hints_rad: About where each joint really is.

    Attributes:
        problems: Why joints could not be homed, by their names, once it is over.

    Raises:
        HomingError: A joint has no room to turn.
        MotionLimitError: Its motor's position would wrap on the wire.
    """

    def __init__(
        self,
        units: Sequence[LoopBoard],
        axes: Sequence[Axis],
        start_rad: Sequence[float],
        hints_rad: Sequence[float],
        *,
        period_s: float,
    ) -> None:
        unit_of = {axis: unit for unit in units for axis in unit.axes}
        self._searched = [
            (axis, unit_of[axis], _search(axis, start, hint, period_s), hint)
            for axis, start, hint in zip(axes, start_rad, hints_rad, strict=True)
        ]
        self._references = [
            (start * axis.motor_per_joint, 0.0) for axis, start in zip(axes, start_rad, strict=True)
        ]
        self.problems: dict[str, str] = {}

    @property
    def is_over(self) -> bool:
        """Whether every joint is back where it began."""
        return all(search is None or search.is_done for _, _, search, _ in self._searched)

    def step(self) -> list[tuple[float, float]]:
        """Take in the last replies; return motor position and speed to command, per joint."""
        for number, (axis, unit, search, _) in enumerate(self._searched):
            if search is not None:
                found, toggle = unit.index_bits(axis)
                self._references[number] = search.step(
                    axis.motor_position_rad, found, toggle, not unit.missed
                )
        return self._references

    def zeros(self) -> list[float | None]:
        """Return what to add to each joint's motor offset; None where it could not be homed."""
        return [
            None if search is None else self._zero(axis, search, hint)
            for axis, _, search, hint in self._searched
        ]

    def _zero(self, axis: Axis, search: IndexSearch, hint_rad: float) -> float | None:
        if search.index_motor_rad is None:
            self.problems[axis.joint.name] = str(search.failure or f"{axis.joint.name}: no index")
            return None
        try:
            return locate_zero(
                axis.joint,
                index_motor_rad=search.index_motor_rad,
                start_motor_rad=search.start_motor_rad,
                hint_rad=hint_rad,
            )
        except HomingError as error:
            self.problems[axis.joint.name] = str(error)
            return None


def _search(axis: Axis, start_rad: float, hint_rad: float, period_s: float) -> IndexSearch | None:
    if axis.joint.is_on_bench:
        return None
    travel_rad = TRAVEL_TURNS * math.tau / abs(axis.motor_per_joint)
    for end_rad in (start_rad - travel_rad, start_rad + travel_rad):
        check_reach(axis.joint.name, end_rad, axis.reach_rad)
    start_motor_rad = start_rad * axis.motor_per_joint
    slow_rad_s = _SPEED_SHARE * axis.speed_max_rad_s * abs(axis.motor_per_joint)
    return IndexSearch(
        axis.joint,
        start_motor_rad=start_motor_rad,
        hint_rad=hint_rad,
        period_s=period_s,
        speed_rad_s=min(SPEED_RAD_S, slow_rad_s),
    )
