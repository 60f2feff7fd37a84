"""How far a joint must have come although no count says so: an encoder that froze in motion.

A joint goes on unless something slows it down, and what that may be is bounded: by all that
current, weight and friction can do; and, while it is led, by how it was slowing down before and by
what its current has changed since. Joints that stand are for `daq.loop.safety.standstill`.
"""

from __future__ import annotations

import math

from daq.loop.io.axis import Axis
from daq.loop.safety.loads import Load
from daq.loop.tracks.control import LoopControl

_MISSED_COUNTS = 12
"""So many counts a rotor must owe us by its speed."""
_PLAY_RAD = 1.15e-3
"""At the joint: so far a rotor may be alone inside its gear's play."""
_FALLEN = 0.85
"""An encoder that counts no more reports a speed that falls; a reply that came twice does not."""
_FRICTION_MORE = 3.0
"""Friction may be so many times that of the robot file."""
_SHAKING_RAD_S, _SHAKEN = 0.3, 5.0
"""Joints that move so fast push others about, by so many times their friction."""
_LATELY = 120
"""Cycles: so long a joint swings after its reference has been accelerated."""
_SLOWING_MORE = 2.0
_SLOWING_RAD_S2 = 5.0
"""So much a joint may slow down that is led at a constant speed."""


class MissedMotion:
    """Of one joint, since its last count."""

    def __init__(self, axis: Axis, load: Load, control: LoopControl) -> None:
        self._axis = axis
        self._load = load
        self._control = control
        self._filter_s = 1.0 / (math.tau * axis.behaviour.velocity_filter_hz)
        count_rad = math.tau / axis.joint.drive.encoder_counts_per_turn / abs(axis.motor_per_joint)
        self._owed_rad = max(_MISSED_COUNTS * count_rad, _PLAY_RAD)
        self.begin()

    def begin(self) -> None:
        """Begin with the first reply that has no count more."""
        self._braking_nm = self._lacking_nm = 0.0

    @property
    def hastening_rad_s2(self) -> float:
        """By how much it has been accelerated lately."""
        return self._control.tracks[self._axis.number].hastening_rad_s2(_LATELY)

    @property
    def shaking_nm(self) -> float:
        """What other joints push it with, if they move so fast that it feels it."""
        is_shaken = any(
            abs(track.axis.velocity_rad_s) > _SHAKING_RAD_S
            for track in self._control.tracks
            if track.axis is not self._axis
        )
        return _SHAKEN * self._load.friction_nm if is_shaken else 0.0

    def is_missed(self, still_s: float) -> bool:
        """Return whether it must have come further since its last count.

        Whatever slows it down; or, while it is led, if it slows down no harder than it did, and by
        what its current has changed: what hangs on it and what rubs has not. But inside the play of
        its gear a rotor may stop at once.
        """
        axis, load = self._axis, self._load
        if abs(axis.velocity_rad_s) >= _FALLEN * abs(axis.velocity_moved_rad_s):
            return False
        # One reply alone is no speed.
        speed_rad_s = min(abs(axis.velocity_moved_rad_s), 2.0 * abs(axis.velocity_earlier_rad_s))
        if speed_rad_s < axis.slow_rad_s:
            return False
        way = math.copysign(1.0, axis.velocity_moved_rad_s)
        lacking_nm = way * (axis.iq_moved_a - axis.iq_a) * axis.nm_per_a
        self._lacking_nm = max(self._lacking_nm, lacking_nm)
        self._braking_nm = max(self._braking_nm, -way * axis.iq_a * axis.nm_per_a)
        against_nm = self._braking_nm + abs(load.gravity_nm) + load.unsure_nm
        against_nm += _FRICTION_MORE * load.friction_nm
        if self._way_rad(speed_rad_s, against_nm / load.inertia_kg_m2, still_s) >= self._owed_rad:
            return True
        if not load.tells_by_change(axis):
            return False
        before_rad_s = way * (axis.velocity_earlier_rad_s - axis.velocity_moved_rad_s)
        slowed_rad_s2 = self.hastening_rad_s2 + max(0.0, before_rad_s) / self._control.period_s
        slowing_rad_s2 = _SLOWING_RAD_S2 + _SLOWING_MORE * slowed_rad_s2
        slowing_rad_s2 += (self._lacking_nm + self.shaking_nm) / load.inertia_kg_m2
        return self._way_rad(speed_rad_s, slowing_rad_s2, still_s) >= self._owed_rad

    def _way_rad(self, speed_rad_s: float, slowing_rad_s2: float, still_s: float) -> float:
        """Return how far it comes at least while it slows down."""
        # Its speed by the board's filter is what it was a moment ago: it may turn round just now.
        speed_rad_s = max(0.0, speed_rad_s - self._filter_s * slowing_rad_s2)
        moving_s = min(still_s, speed_rad_s / slowing_rad_s2)
        return moving_s * (speed_rad_s - 0.5 * slowing_rad_s2 * moving_s)
