"""Axes for boards whose law overflows, or whose replies are torn. All others use the plain one."""

from __future__ import annotations

import math
from typing import Any

from daq.loop.io.axis import NEVER, Axis, Law
from daq.robot import DrivenJoint
from firmware_protocol.behaviour import Behaviour

_HALF_RAW = 1 << 16
"""A position's upper half on the wire counts these."""
_TORN_OUTPUT = 2
"""The words that may be older than the rest (`Behaviour.torn_share`) end in its position."""
_TORN_MAX = 2.5
"""Upper halves, beside those that the motor turns in a cycle: more is no tear but a jump."""
_SLOW = 0.25
"""Upper halves per cycle: slower, a motor may as well turn back."""
_MENDED_MAX = 6
"""Replies in a row; after so many it was the expectation that was wrong."""


def make_axis(number: int, joint: DrivenJoint, *, behaviour: Behaviour, **others: Any) -> Axis:
    """Return the axis of a joint, by what its board does; arguments as for `Axis`."""
    kind = Axis
    if behaviour.torn_share and joint.drive.output == _TORN_OUTPUT:
        kind = TornAxis
    elif behaviour.current_sum_max_a is not None:
        kind = SummedAxis
    return kind(number, joint, behaviour=behaviour, **others)


class SummedAxis(Axis):
    """On a board whose law changes its sign where the sum of its terms overflows.

    Gains with which that could happen within the following-error limit are refused
    (`daq.boards.wire_limits`). That limit is checked 50 times a second; in between, the reference
    is written no further ahead of the motor than the sum allows. The motor does not notice: it has
    all the current that Isat lets through long before.
    """

    __slots__ = ("_age_s", "_ahead_max_raw", "_sum_max_a")

    def __init__(
        self, *arguments: Any, behaviour: Behaviour, period_s: float, **others: Any
    ) -> None:
        self._sum_max_a = behaviour.current_sum_max_a or math.inf
        self._ahead_max_raw: float = NEVER
        # Of what is known of the motor when the next command acts.
        self._age_s = (behaviour.reply_lag_max + 2) * period_s
        super().__init__(*arguments, behaviour=behaviour, period_s=period_s, **others)

    def refer(self, position_rad: float, velocity_rad_s: float) -> None:
        """Write the reference of the next command, joint side."""
        super().refer(position_rad, velocity_rad_s)
        raws, at, most = self._raws, self._reference_at, self._ahead_max_raw
        ahead_raw = raws[at] - self._last_raw
        if not -most <= ahead_raw <= most:
            raws[at] = self._last_raw + round(math.copysign(most, ahead_raw))

    def obey(self, law: Law) -> None:
        """Write the gains and the feed-forward of the next command, whose reference is written."""
        self._ahead_max_raw = NEVER
        if law.kp_a_per_rad:
            motor_rad_s = self.speed_max_rad_s * abs(self.motor_per_joint)
            others_a = 2.0 * law.kd_a_s_per_rad * motor_rad_s + self.current_max_a
            ahead_rad = max(self._sum_max_a - others_a, self.isat_a) / law.kp_a_per_rad
            ahead_rad -= self._age_s * motor_rad_s
            self._ahead_max_raw = min(max(ahead_rad, 0.0) / self._lsb_rad, NEVER)
        super().obey(law)


class TornAxis(SummedAxis):
    """Of the motor whose position may come in two halves that are not of the same moment.

    Then the upper half is one rewrite of the reply older, and the position off by a few counts of
    it. Of all positions with this lower half, the one is taken that is nearest to where the motor
    was going. The recording keeps what the wire said.
    """

    __slots__ = ("_mended", "_wire_raw")

    def __init__(self, *arguments: Any, **others: Any) -> None:
        self._mended = self._wire_raw = 0
        super().__init__(*arguments, **others)

    def read(self, raws: tuple[int, ...]) -> bool:
        """Take in the joint's part of a reply."""
        at = self._position_at
        is_same, self._wire_raw = raws[at] == self._wire_raw, raws[at]
        step_raw = raws[self._velocity_at] * self._speed_per_cycle
        halves = round((self._last_raw + step_raw - raws[at]) / _HALF_RAW)
        if halves and self._mended < _MENDED_MAX and _is_tear(halves, step_raw / _HALF_RAW):
            self._mended += 1
            raws = (*raws[:at], raws[at] + halves * _HALF_RAW, *raws[at + 1 :])
        else:
            self._mended = 0
        is_plain = super().read(raws)
        if is_same and self.has_moved:
            # What was mended is a guess: an encoder that has frozen must be seen.
            self.has_moved = False
            return False
        return is_plain

    def bridge(self, raws: tuple[int, ...], missed: int) -> None:
        """Take in the first reply after `missed` cycles without one: nothing is expected of it."""
        self._mended = _MENDED_MAX
        super().bridge(raws, missed)


def _is_tear(halves: int, step: float) -> bool:
    """Whether a position that lacks so many upper halves may be torn: then it is behind."""
    is_behind = halves * step > 0.0 or abs(step) < _SLOW
    return is_behind and abs(halves) < _TORN_MAX + abs(step)
