"""Which plateau of a free joint is driven next: one that has room before positions wrap. Pure.

A plateau that starts too near to the wrap must drive back first, which takes seconds. So one soon
after it goes first if that has room; none waits for long, and the order stays random.
"""

from __future__ import annotations

from daq.bench.plan import BenchPlan, PlannedPlateau
from daq.bench.room import has_room, settle_s
from daq.motion.planning import Reach
from daq.robot import DrivenJoint

_SOON, _PASSED_MAX = 4, 3
"""The next plateau is one of so many, and each is passed over at most so often."""
_SETTLED_MIN, _SETTLE_LATE = 3, 1.3
"""So many plateaus tell how long settling takes; it may take so many times as long as ever."""


class PlateauQueue:
    """The plateaus of a plan that wait to be driven; a mounted joint keeps to their order."""

    def __init__(self, plan: BenchPlan, joint: DrivenJoint) -> None:
        self._waiting = list(plan.plateaus)
        self._joint = joint
        self._settle_max_s = plan.settle_max_s
        self._is_free = plan.header.window_rad is None
        self._settled_s: list[float] = []
        self._passed_over = 0

    def take(self, here_rad: float, reach: Reach) -> PlannedPlateau:
        """Take the next plateau of a joint that is here."""
        chosen = 0
        if self._is_free and self._passed_over < _PASSED_MAX:
            fitting = (
                n for n, p in enumerate(self._waiting[:_SOON]) if self._fits(p, here_rad, reach)
            )
            chosen = next(fitting, 0)
        self._passed_over = self._passed_over + 1 if chosen else 0
        return self._waiting.pop(chosen)

    def note_settled(self, after_s: float) -> None:
        """Note how long a plateau took to settle."""
        self._settled_s.append(after_s)

    def duration_s(self, planned: PlannedPlateau, reach: Reach) -> float:
        """Return for how long a plateau wants room: to settle as late as is likely, and to dwell.

        At most as long as fits when the whole range is in front of it.
        """
        likely_s = self._settle_max_s
        if len(self._settled_s) >= _SETTLED_MIN:
            likely_s = min(likely_s, _SETTLE_LATE * max(self._settled_s))
        low_rad, high_rad = reach
        return planned.dwell_s + settle_s(
            self._joint,
            planned.joint_velocity_rad_s,
            planned.dwell_s,
            settle_max_s=likely_s,
            room_rad=high_rad - low_rad,
        )

    def _fits(self, planned: PlannedPlateau, here_rad: float, reach: Reach) -> bool:
        duration_s = self.duration_s(planned, reach)
        return has_room(self._joint, planned.joint_velocity_rad_s, duration_s, here_rad, reach)
