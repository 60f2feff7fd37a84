"""After a pause of the computer: from where a joint was left back to its motion.

A reference that jumped to where the motion is by now would ask for all the current there is. So it
goes on from where its board has it, and pursues the motion inside the limits of speed and
acceleration: no faster than may be commanded, and with no more current than is left.
"""

from __future__ import annotations

import math

from daq.loop.io.axis import Axis
from daq.motion.planning import acceleration_max_rad_s2, hardest_rad_s2, speed_max_rad_s

Reference = tuple[float, float, float]
"""Position (rad), velocity (rad/s), torque (N·m), joint side."""

_NOTHING_RAD, _NOTHING_RAD_S = 1e-5, 1e-3
_PURSUIT_PER_S = 15.0
"""So fast a small rest fades."""
_CLOSING = 0.25
"""Of the planned acceleration: so hard the reference brakes when it comes near its motion."""
_HASTE, _BRAKE = 1.25, 2.0
"""Of the planned acceleration, if the file allows it: in all while catching up, and slowing."""
_SPEED_NEAR = 0.95
_SPARE_SPEED = 0.03
"""Of the highest speed: so much faster than a motion that leaves no room."""
_CURRENT_SHARE = 0.25
"""Of the current that was left before the pause: gravity may take the rest further on."""
_MOST_SHARE, _LEAST_SHARE = 0.6, 0.15
"""Of the planned acceleration: so hard it pursues at most, and however little current is left."""
_TORQUE_S = 0.1
"""A feed-forward torque comes from none to all in this time."""


class CatchUp:
    """The reference of a joint on its way back to its motion, cycle by cycle.

    Args:
        axis: The joint, as it was measured before the pause.
        reference: From where it goes on.
        planned: Where its motion is by now.
        sway_s: By how much it becomes faster than its reference, per acceleration.
        period_s: The loop's.

    Attributes:
        is_over: Whether nothing is left to catch up with.
    """

    def __init__(
        self,
        axis: Axis,
        reference: Reference,
        planned: Reference,
        *,
        sway_s: float,
        period_s: float,
    ) -> None:
        joint = axis.joint
        self._position_rad, self._velocity_rad_s, self._torque_nm = reference
        self._planned_rad_s = planned[1]
        self._period_s, self._sway_s = period_s, max(sway_s, period_s)
        usual, hardest = acceleration_max_rad_s2(joint), hardest_rad_s2(joint)
        spare_a = _CURRENT_SHARE * (axis.current_max_a - abs(axis.iq_mean_a))
        spare_rad_s2 = spare_a * abs(axis.nm_per_a) / axis.inertia_max_kg_m2
        self._pursuit_rad_s2 = min(_MOST_SHARE * usual, max(spare_rad_s2, _LEAST_SHARE * usual))
        self._haste_rad_s2 = min(_HASTE * usual, hardest)
        self._brake_rad_s2 = min(_BRAKE * usual, hardest)
        self._closing_rad_s2 = min(_CLOSING * usual, self._pursuit_rad_s2)
        self._speed_rad_s = speed_max_rad_s(joint)
        self._spare_rad_s = _SPARE_SPEED * joint.limits.velocity_max_rad_s
        self._top_rad_s = _SPEED_NEAR * joint.limits.velocity_max_rad_s
        self._torque_step_nm = axis.current_max_a * abs(axis.nm_per_a) * period_s / _TORQUE_S
        self.is_over = self._is_near(planned)

    def restart(self, position_rad: float, velocity_rad_s: float, planned: Reference) -> None:
        """Go on from elsewhere: the joint was measured again."""
        self._position_rad, self._velocity_rad_s = position_rad, velocity_rad_s
        self._planned_rad_s = planned[1]
        self.is_over = False

    def shift(self, offset_rad: float) -> None:
        """Shift it with the joint's zero."""
        self._position_rad += offset_rad

    def step(self, planned: Reference, periods: int = 1) -> Reference:
        """Return the next reference, beside the one that the motion has then, so much later."""
        planned_rad, planned_rad_s, planned_nm = planned
        period_s, before_rad_s = periods * self._period_s, self._velocity_rad_s
        gap_rad = planned_rad - self._position_rad - before_rad_s * period_s
        closing_rad_s = min(
            _PURSUIT_PER_S * abs(gap_rad), math.sqrt(2.0 * self._closing_rad_s2 * abs(gap_rad))
        )
        most_rad_s = max(self._speed_rad_s, abs(planned_rad_s) + self._spare_rad_s)
        wanted_rad_s = planned_rad_s + math.copysign(closing_rad_s, gap_rad)
        wanted_rad_s = _clamped(wanted_rad_s, most_rad_s)
        change_rad_s = self._change(wanted_rad_s - before_rad_s, planned_rad_s, period_s)
        velocity_rad_s = before_rad_s + change_rad_s
        self._position_rad += 0.5 * (before_rad_s + velocity_rad_s) * period_s
        self._velocity_rad_s, self._planned_rad_s = velocity_rad_s, planned_rad_s
        self._torque_nm += _clamped(planned_nm - self._torque_nm, self._torque_step_nm)
        self.is_over = self._is_near(planned)
        return planned if self.is_over else self._reference

    @property
    def _reference(self) -> Reference:
        return self._position_rad, self._velocity_rad_s, self._torque_nm

    def _is_near(self, planned: Reference) -> bool:
        return (
            abs(planned[0] - self._position_rad) < _NOTHING_RAD
            and abs(planned[1] - self._velocity_rad_s) < _NOTHING_RAD_S
            and abs(planned[2] - self._torque_nm) <= self._torque_step_nm
        )

    def _change(self, wanted_rad_s: float, planned_rad_s: float, period_s: float) -> float:
        """Return by how much the speed changes in a time, of what is wanted."""
        speed_rad_s = self._velocity_rad_s
        if wanted_rad_s * speed_rad_s < 0.0:
            return _clamped(wanted_rad_s, self._brake_rad_s2 * period_s)
        # As hard as the motion itself goes there, and what is left of the current for the pursuit.
        planned_rad_s2 = (planned_rad_s - self._planned_rad_s) / period_s
        helping_rad_s2 = max(math.copysign(1.0, wanted_rad_s) * planned_rad_s2, 0.0)
        most_rad_s2 = min(
            helping_rad_s2 + self._pursuit_rad_s2,
            self._haste_rad_s2,
            max(self._top_rad_s - abs(speed_rad_s), 0.0) / self._sway_s,
        )
        return _clamped(wanted_rad_s, most_rad_s2 * period_s)


def _clamped(value: float, highest: float) -> float:
    return min(max(value, -highest), highest)
