"""Watches that every joint follows its reference, and stops constant speeds before a limit.

50 times a second, not in every cycle: a joint that is stuck or too weak falls behind slowly, and
one that turns at a constant speed can be foreseen.
"""

from __future__ import annotations

from daq.loop.events import Events
from daq.loop.safety.machine import Machine
from daq.loop.tracks.control import LoopControl
from daq.loop.tracks.track import Track
from daq.loop.wording import beyond
from daq.motion.planning import acceleration_max_rad_s2
from daq.recording.states import Mode, State
from daq.robot import Safety

_LOOK_AHEAD_S = 0.06
"""Time between two checks, and for a joint that follows its reference late."""
_RAMP = 0.75
"""A smooth stop from a speed v takes `_RAMP` · v² / a of way (`daq.motion.planning`)."""


class FollowingGuard:
    """Watches the joints that follow a reference."""

    def __init__(
        self, control: LoopControl, machine: Machine, events: Events, safety: Safety
    ) -> None:
        self._control = control
        self._machine = machine
        self._events = events
        self._limit_rad = safety.following_error_max_rad

    def check(self) -> None:
        """Look at all joints."""
        if self._machine.state is not State.ACTIVE:
            return
        for number, track in enumerate(self._control.tracks):
            if track.mode is Mode.VELOCITY and _is_near_limit(track):
                self._control.set_mode(Mode.HOLD, [number], (), 0.0)
                name = track.axis.joint.name
                self._events.add("limit", f"joint {name}: stopped before its limit", source=name)
            if track.is_led:
                self._check_following(track)

    def _check_following(self, track: Track) -> None:
        behind_rad = track.reference[0] - track.axis.position_rad
        if abs(behind_rad) > self._limit_rad:
            name = track.axis.joint.name
            self._machine.trip(
                f"joint {name}: led away by {beyond(behind_rad, self._limit_rad, 'rad')}; is it "
                "blocked, or are its gains too low?",
                code="following-error",
                kind="limit",
                source=name,
            )


def _is_near_limit(track: Track) -> bool:
    axis, (position_rad, velocity_rad_s, _) = track.axis, track.reference
    speed_rad_s = abs(velocity_rad_s)
    limit_rad = axis.high_rad if velocity_rad_s > 0.0 else axis.low_rad
    braking_rad = _RAMP * speed_rad_s**2 / acceleration_max_rad_s2(axis.joint)
    return abs(limit_rad - position_rad) < braking_rad + speed_rad_s * _LOOK_AHEAD_S
