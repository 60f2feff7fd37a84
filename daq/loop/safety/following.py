"""Watches that every joint follows its reference, and stops constant speeds in time.

In time is before a position limit, and before the motor's position wraps on the wire. 50 times a
second, not in every cycle: a joint that is stuck or too weak falls behind slowly, and one that
turns at a constant speed can be foreseen.
"""

from __future__ import annotations

import math

from daq.boards.wire_range import CHECK_S
from daq.loop.events import Events
from daq.loop.safety.machine import Machine
from daq.loop.tracks.control import LoopControl
from daq.loop.tracks.track import Track
from daq.loop.wording import beyond
from daq.motion.errors import MotionLimitError
from daq.motion.planning import braking_rad
from daq.recording.states import Mode, State
from daq.robot import Safety

_CHECKS_AHEAD = 3
"""A joint is stopped so many checks before it would have to be, if they come as late as now."""


_STOPPED = {
    "limit": "stopped before its limit",
    "wrap": "stopped before its range ends: further on its motor's position wraps on the wire",
}
"""By the kind of the event."""


class FollowingGuard:
    """Watches the joints that follow a reference."""

    def __init__(
        self, control: LoopControl, machine: Machine, events: Events, safety: Safety
    ) -> None:
        self._control = control
        self._machine = machine
        self._events = events
        self._limit_rad = safety.following_error_max_rad
        self._checked_ns = 0
        self._ending: set[int] = set()

    def check(self) -> None:
        """Look at all joints."""
        now_ns, before_ns = self._events.t_ns, self._checked_ns
        self._checked_ns = now_ns
        elapsed_s = 1e-9 * (now_ns - before_ns)
        if self._machine.state in (State.READY, State.ACTIVE):
            for track in self._control.tracks:
                track.mind_integral(elapsed_s)
        if self._machine.state is not State.ACTIVE:
            return
        ahead_s = max(CHECK_S, _CHECKS_AHEAD * elapsed_s)
        for number, track in enumerate(self._control.tracks):
            if track.axis.is_fenced:
                self._trip_at_fence(track)
                return
            if track.mode is Mode.VELOCITY:
                self._look_ahead(number, track, ahead_s)
            if track.is_led:
                self._check_following(track)

    def _look_ahead(self, number: int, track: Track, ahead_s: float) -> None:
        """Stop a constant speed before its end.

        Before the wrap it comes to rest under velocity control, and is held then: stiffer gains
        would pull a joint that is behind forwards first.
        """
        kind = _end_ahead(track, ahead_s)
        if kind == "limit":
            self._stop(number, track, kind, Mode.HOLD)
        elif track.is_ending:
            pass  # it comes to rest already
        elif kind:
            self._stop(number, track, kind, Mode.VELOCITY, 0.0)
            self._ending.add(number)
        elif number in self._ending:
            self._ending.remove(number)
            if track.is_at_rest:
                self._control.set_mode(Mode.HOLD, [number], (), 0.0)

    def _stop(self, number: int, track: Track, kind: str, mode: Mode, *target: float) -> None:
        name = track.axis.joint.name
        try:
            self._control.set_mode(mode, [number], target, 0.0)
        except MotionLimitError:  # too many periods were skipped
            self._trip_at_fence(track)
            return
        self._events.add(kind, f"joint {name}: {_STOPPED[kind]}", source=name)

    def _trip_at_fence(self, track: Track) -> None:
        axis, turns = track.axis, track.axis.wire.wrap_rad / math.tau
        axis.is_fenced = False
        self._machine.trip(
            f"joint {axis.joint.name}: led to {track.reference[0]:.4g} rad, too near to where its "
            f"motor's position wraps on the wire (at ±{turns:g} turns); disable it and enable it "
            "near the middle of its way",
            code="wrap",
            kind="limit",
            source=axis.joint.name,
        )

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


def _end_ahead(track: Track, ahead_s: float) -> str:
    """Return which end a joint would reach next if it were not stopped now; empty for none yet."""
    axis, (position_rad, velocity_rad_s, _) = track.axis, track.reference
    speed_rad_s = abs(velocity_rad_s)
    is_upwards = velocity_rad_s > 0.0
    needed_rad = braking_rad(axis.joint, speed_rad_s) + speed_rad_s * ahead_s
    if abs((axis.high_rad if is_upwards else axis.low_rad) - position_rad) < needed_rad:
        return "limit"
    low_rad, high_rad = axis.reach_rad
    room_rad = high_rad - position_rad if is_upwards else position_rad - low_rad
    return "wrap" if speed_rad_s and room_rad < needed_rad else ""
