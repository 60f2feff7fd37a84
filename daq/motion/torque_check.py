"""Whether the motors are strong enough for a planned motion, by the model of the robot. Pure.

Along a given way gravity and friction stay what they are, and all that comes of speed and
acceleration falls with the square of the time taken. So one look at a few points of a plan says how
much longer it must take. The limit is what the motors' currents give, less a share for what CAD
does not know; how heavy the arm really is shows in the currents that hold it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from daq.control.torque_model import TorqueModel
from daq.motion.errors import MotionLimitError
from daq.motion.playback import Playback
from daq.robot import DrivenJoint

POINTS = 12
"""Of a move, evenly spread in time: they miss 3 % of its hardest acceleration, and cost 0.15 ms."""
PLAYBACK_POINTS = 32
"""Of a trajectory: more would cost the loop more than 0.2 ms."""
LOAD_SHARE = 0.9
"""Of the torque at a joint's highest current: what a planned move may ask for."""
GRAVITY_SCALE = 1.1
"""Of CAD's gravity, until a joint has been held somewhere."""
STRETCH_MAX = 20.0
"""A plan that must take even longer is refused: it hardly moves."""

State = tuple[list[float], list[float]]
"""Positions (rad) and speeds (rad/s) of all joints."""


class TorqueCheck:
    """Looks at plans of one robot.

    Args:
        torques_max_nm: What each motor gives at its joint.
        inertias_max_kg_m2: The most that it turns in any posture.
        gravities_max_nm: The most that gravity pulls at it, by CAD.

    Attributes:
        gravity_scales: How many times as much as CAD says gravity pulls at each joint; others
            bring it up to date.
    """

    def __init__(
        self,
        joints: Sequence[DrivenJoint],
        model: TorqueModel,
        torques_max_nm: Sequence[float],
        *,
        inertias_max_kg_m2: Sequence[float],
        gravities_max_nm: Sequence[float],
        period_s: float,
    ) -> None:
        self._joints = joints
        self._model = model
        self._torques_max_nm = torques_max_nm
        self._period_s = period_s
        self._inertias_max_kg_m2 = inertias_max_kg_m2
        self._gravities_max_nm = gravities_max_nm
        self.gravity_scales = [GRAVITY_SCALE] * len(joints)

    def slowing_rad_s2(self, number: int) -> float:
        """Return with how much a joint can be slowed down wherever it is."""
        weight_nm = self.gravity_scales[number] * self._gravities_max_nm[number]
        spare_nm = LOAD_SHARE * self._torques_max_nm[number] - weight_nm
        return max(spare_nm, 0.0) / self._inertias_max_kg_m2[number]

    def stretch(self, state: Callable[[int], State], cycles: int) -> float:
        """Return how many times as long a motion must take; 1 where it may be as it is.

        Args:
            state: What all joints do in a cycle of it, those that it does not move included.
            cycles: Of the motion.

        Raises:
            MotionLimitError: A motor could not even hold its joint on the way.
        """
        needed = 1.0
        for point in range(POINTS + 1):
            k = round(point * cycles / POINTS)
            (q, dq), (_, after) = state(k), state(k + 1)
            ddq = [(b - a) / self._period_s for a, b in zip(dq, after, strict=True)]
            needed = max(needed, self._needed(q, dq, ddq))
        return math.sqrt(needed)

    def _needed(self, q: list[float], dq: list[float], ddq: list[float]) -> float:
        """Return how many times less may come of speed and acceleration at a point."""
        needed = 1.0
        statics_nm = self._model.gravity_nm(q)
        totals_nm = self._model.torque_nm(q, dq, ddq)
        known = zip(self._joints, self.gravity_scales, self._torques_max_nm, strict=True)
        parts = zip(known, statics_nm, totals_nm, strict=True)
        for (joint, scale, highest_nm), bare_nm, total_nm in parts:
            allowed_nm = LOAD_SHARE * highest_nm
            static_nm, moving_nm = scale * bare_nm, total_nm - bare_nm
            if abs(static_nm + moving_nm) <= allowed_nm:
                continue
            if abs(static_nm) >= allowed_nm:
                raise _too_heavy(joint, static_nm, allowed_nm)
            room_nm = allowed_nm - math.copysign(static_nm, static_nm * moving_nm)
            needed = max(needed, abs(moving_nm) / room_nm)
            if needed > STRETCH_MAX**2:
                raise _too_heavy(joint, static_nm, allowed_nm)
        return needed

    def check_playback(self, playback: Playback) -> None:
        """Look at a trajectory at up to `PLAYBACK_POINTS` of its rows.

        Raises:
            MotionLimitError: It takes more torque than a motor gives.
        """
        count, last = len(self._joints), playback.cycles
        for point in range(min(PLAYBACK_POINTS, last)):
            k = point * last // PLAYBACK_POINTS
            row, after = playback.row(k), playback.row(k + 1)
            dq = row[count : 2 * count]
            pairs = zip(dq, after[count : 2 * count], strict=True)
            ddq = [(b - a) / self._period_s for a, b in pairs]
            torques_nm = self._model.torque_nm(row[:count], dq, ddq)
            for joint, needed_nm, highest_nm in zip(
                self._joints, torques_nm, self._torques_max_nm, strict=True
            ):
                if abs(needed_nm) > highest_nm:
                    raise MotionLimitError(
                        joint.name,
                        f"row {k} (t = {k * self._period_s:.3f} s) takes {needed_nm:.4g} N·m by "
                        f"the robot file, limit {highest_nm:.4g} N·m; play it slower",
                        value=needed_nm,
                        limit=highest_nm,
                        row=k,
                        code="torque-limit",
                    )


def _too_heavy(joint: DrivenJoint, static_nm: float, allowed_nm: float) -> MotionLimitError:
    return MotionLimitError(
        joint.name,
        f"on the way gravity takes {abs(static_nm):.4g} N·m, and the motor may give "
        f"{allowed_nm:.4g} N·m ({LOAD_SHARE:.0%} of what its current limit allows)",
        value=static_nm,
        limit=allowed_nm,
        code="torque-limit",
    )
