"""Knocks at a joint that is led slowly and gives no count: it sticks, or its encoder is dead.

Slow references push a joint slowly, and a joint whose encoder is dead looks like one that sticks
until it is pushed by several times its friction. By then a light one is tens of rad/s fast. So
before it can have become fast, it is pushed for a few milliseconds so hard that whatever sticks
must move: one count, and it is alive, and the push is over. What it means if there is none decides
`daq.loop.safety.standstill`.
"""

from __future__ import annotations

import math

from daq.loop.io.axis import Axis
from daq.loop.safety.loads import BREAKAWAYS, Load
from daq.loop.tracks.track import Track

SLOW_RAD_S = 0.08
"""Joints that are led faster are pushed fast enough to show by themselves what they are."""
_STICKS, _CREEPS_RAD_S = 0.4, 0.01
"""Of its friction: what it is pushed by beyond that may move it, if it leans on it already; where
its last count came faster than that, all that is more may."""
_UNSEEN_RAD_S = 0.2
"""So fast it may have become before it is knocked at."""
_BEYOND = 2.5
"""A knock is by so many times its friction more than a joint may well bear."""
_RISE_PER_S = 130.0
"""A knock rises by so many times that: a joint that is alive feels little of it."""
_LONGEST_S = 0.04
"""A knock that does not get so far, as the current limit is near, is unanswered then."""
_FASTEST_RAD_S = 0.15
"""Nobody is knocked at who is led faster by now: it turns round, and shows soon what it is."""


class Knock:
    """Of one joint; `watch` is called 50 times a second, `step` in every cycle of a knock.

    Attributes:
        is_on: Whether it is being knocked at.
    """

    __slots__ = (
        "_axis",
        "_began_ns",
        "_given_nm",
        "_is_over",
        "_is_slow",
        "_load",
        "_position_rad",
        "_stepped_ns",
        "_unseen_rad_s",
        "is_on",
    )

    def __init__(self, axis: Axis, load: Load) -> None:
        self._axis = axis
        self._load = load
        self.is_on = self._is_slow = self._is_over = False
        self._position_rad = self._unseen_rad_s = self._given_nm = 0.0
        self._began_ns = self._stepped_ns = 0

    def watch(self, track: Track, now_ns: int, elapsed_s: float) -> bool:
        """Return whether it is time to knock: unseen, it might be fast by now."""
        has_counted = self._axis.position_rad != self._position_rad
        self._position_rad = self._axis.position_rad
        led_rad_s = abs(track.reference[1])
        if has_counted or not _is_led(track):
            self._is_slow = self._is_over = False
        elif 0.0 < led_rad_s < SLOW_RAD_S:
            self._is_slow = True  # until it counts, however it is led meanwhile
        if not self._is_slow:
            self._unseen_rad_s = 0.0
            return False
        self._unseen_rad_s += self._moving_nm / self._load.inertia_kg_m2 * elapsed_s
        self._unseen_rad_s = max(0.0, self._unseen_rad_s)
        if self.is_on or self._is_over or led_rad_s > _FASTEST_RAD_S:
            return False
        if self._unseen_rad_s >= _UNSEEN_RAD_S:
            self.is_on, self._given_nm = True, 0.0
            self._began_ns = self._stepped_ns = now_ns
        return self.is_on

    def step(self, track: Track, beyond_nm: float, now_ns: int) -> bool:
        """Push harder, until it is pushed by enough beyond what it may well bear.

        Returns:
            Whether it has been pushed for so long that it must have counted.
        """
        if not _is_led(track) or abs(track.reference[1]) > _FASTEST_RAD_S:
            self.end(track)
            return False
        wanted_nm = _BEYOND * self._load.friction_nm
        if beyond_nm < wanted_nm:
            self._given_nm += _RISE_PER_S * wanted_nm * 1e-9 * (now_ns - self._stepped_ns)
        self._stepped_ns = now_ns
        axis = self._axis
        track.add_current(math.copysign(self._given_nm * axis.amperes_per_nm, self._push_a))
        return now_ns - self._began_ns > _LONGEST_S * 1e9

    def end(self, track: Track) -> None:
        """Push no more; it has counted, say."""
        if self.is_on:
            self.is_on, self._is_over = False, True
            track.add_current(0.0)

    def forget(self) -> None:
        """Note that somebody else has taken its current away."""
        self.is_on = self._is_slow = self._is_over = False

    @property
    def _push_a(self) -> float:
        return self._axis.iq_mean_a - self._axis.iq_moved_a

    @property
    def _moving_nm(self) -> float:
        """What may make it faster, of what it is pushed by; less than nothing brakes it."""
        axis, load, push_a = self._axis, self._load, self._push_a
        sticks_nm = _STICKS * load.friction_nm
        if not load.tells_by_change(axis):
            beyond_a = max(push_a - axis.push_high_a, axis.push_low_a - push_a)
            return beyond_a * abs(axis.nm_per_a) + BREAKAWAYS * load.friction_nm - sticks_nm
        push_nm, speed_rad_s = push_a * axis.nm_per_a, axis.velocity_moved_rad_s
        goes_on = abs(speed_rad_s) > _CREEPS_RAD_S and push_nm * speed_rad_s > 0.0
        return abs(push_nm) - (0.0 if goes_on else sticks_nm)


def _is_led(track: Track) -> bool:
    return track.follows and track.is_led
