"""Holds a joint before it reaches a limit, and watches that every joint follows its reference.

What counts is the measured position and speed, in every cycle: references can be resent, and a
joint that is pushed has none. The first answer is a controlled hold; a limit trips when that has
failed (`daq.loop.safety.axis_guard`). What can be foreseen for longer, such as where a motor's
position wraps on the wire, is looked at 50 times a second.
"""

from __future__ import annotations

import math

from daq.boards.wire_range import BLEND_S, CHECK_S
from daq.loop.events import Events
from daq.loop.io.axis import SPEED_AHEAD, Axis
from daq.loop.safety.loads import Loads
from daq.loop.safety.machine import Machine
from daq.loop.tracks.control import LoopControl
from daq.loop.tracks.planner import JOG_RAD
from daq.loop.tracks.track import Track
from daq.loop.wording import beyond
from daq.motion.errors import MotionLimitError
from daq.motion.planning import acceleration_max_rad_s2, braking_rad, position_range_rad
from daq.recording.states import DRIVEN_MODES, Mode, State
from daq.robot import Safety

_CHECKS_AHEAD = 3
"""A joint is stopped so many checks before it would have to be, if they come as late as now."""
_LATE_S = 0.02
"""Of what is measured when a reference acts, and of the board's law that follows it."""
_PLANNED = (Mode.VELOCITY, Mode.POSITION, Mode.PLAY)
_PLANNED_NEAR = 0.97
"""Of the speed limit: so fast a joint may become by a planned motion before it is held."""
_PATIENCE_S, _PATIENCE_MAX_S = 0.3, 1.0
"""So long a joint that is brought to rest may be away from its reference; at most so long if it is
on its way there."""


_STOPPED = {
    "limit": "stopped before its limit",
    "speed": "stopped before its speed limit",
    "jog": f"stopped {JOG_RAD:g} rad from where it was enabled: its zero is not known",
    "following": "stopped, because it does not follow",
    "wrap": "stopped before its range ends: further on its motor's position wraps on the wire",
}
"""By what it comes near to."""


class MotionGuard:
    """Watches where the joints go."""

    def __init__(
        self,
        control: LoopControl,
        loads: Loads,
        machine: Machine,
        events: Events,
        safety: Safety,
    ) -> None:
        self._control = control
        self._loads = loads
        self._machine = machine
        self._events = events
        self._checked_ns = 0
        self._ending: set[int] = set()
        self._behind_ns: dict[int, int] = {}
        for track in control.tracks:
            axis = track.axis
            axis.following_max_rad = safety.following_error_max_rad
            # Never less than the way that is needed, at low speeds and high ones.
            axis.ahead_s = max(
                self._needed_rad(track, share * axis.speed_max_rad_s, Mode.CURRENT)
                / (share * axis.speed_max_rad_s)
                for share in (0.1, 0.25, 0.5, 1.0)
            )

    # --- every cycle, of a joint about which there is something to notice -------------------------

    def look(self, axis: Axis) -> None:
        """Look whether a joint comes too near to a limit, or does not follow."""
        track = self._control.tracks[axis.number]
        if track.mode is Mode.VELOCITY or track.mode in DRIVEN_MODES:
            self._look_ahead(track)
        if track.mode in _PLANNED:
            self._look_at_speed(track)
        if track.is_led:
            self._check_following(track)

    def _look_ahead(self, track: Track) -> None:
        axis = track.axis
        velocity_rad_s = axis.velocity_rad_s
        speed_rad_s = abs(velocity_rad_s)
        end_rad = axis.high_rad if velocity_rad_s > 0.0 else axis.low_rad
        room_rad = abs(end_rad - axis.position_rad)
        if speed_rad_s and room_rad < self._needed_rad(track, speed_rad_s, track.mode):
            self._hold(track, "limit")
        elif track.mode in DRIVEN_MODES:
            growth_rad_s = max(0.0, speed_rad_s - abs(axis.velocity_before_rad_s))
            if speed_rad_s + SPEED_AHEAD * growth_rad_s > axis.speed_near_rad_s:
                self._hold(track, "speed")

    def _look_at_speed(self, track: Track) -> None:
        if track.axis.joint.is_on_bench:
            return  # a test that is led off its plateau is worth nothing: it ends at the limit
        if abs(track.axis.velocity_rad_s) > _PLANNED_NEAR * track.axis.speed_max_rad_s:
            self._hold(track, "speed")

    def _hold(self, track: Track, why: str) -> None:
        """Bring a joint to rest by its own gains, and no longer push it."""
        is_driven = track.mode in DRIVEN_MODES
        track.stop_pushing()
        if self._control.is_playing:
            try:
                self._control.come_to_rest()
            except MotionLimitError:
                self._trip_at_fence(track)
                return
            self._tell(track, why)
        else:
            self._stop(track.axis.number, track, why, Mode.HOLD)
            if is_driven and track.mode is Mode.HOLD:
                track.take_hold()

    # --- every cycle in which nothing is heard of a joint ---------------------------------------

    def restrain(self, axis: Axis) -> None:
        """Let a current do no more than hold a joint: within 20 ms it would be far too fast."""
        weight_a = self._loads.of[axis.number].gravity_nm * axis.amperes_per_nm
        self._control.tracks[axis.number].restrain(min(weight_a, 0.0), max(weight_a, 0.0))

    def go_on(self, axis: Axis) -> None:
        """Let it have its current again."""
        self._control.tracks[axis.number].add_current(0.0)

    # --- now and then -----------------------------------------------------------------------------

    def check(self) -> None:
        """Look at all joints, 50 times a second."""
        now_ns, before_ns = self._events.t_ns, self._checked_ns
        self._checked_ns = now_ns
        elapsed_s = 1e-9 * (now_ns - before_ns)
        if self._machine.state in (State.READY, State.ACTIVE):
            for track in self._control.tracks:
                if track.mind(elapsed_s):
                    self._trip_dead(track)
            self._control.note_busy()
        if self._machine.state is not State.ACTIVE:
            return
        ahead_s = max(CHECK_S, _CHECKS_AHEAD * elapsed_s)
        for number, track in enumerate(self._control.tracks):
            if track.axis.is_fenced:
                self._trip_at_fence(track)
                return
            if track.mode is Mode.VELOCITY:
                self._foresee(number, track, ahead_s)
            if track.is_led:
                self._check_following(track)

    def _foresee(self, number: int, track: Track, ahead_s: float) -> None:
        """Stop a constant speed before its end.

        Before the wrap it comes to rest under velocity control, and is held then: stiffer gains
        would pull a joint that is behind forwards first.
        """
        why = self._end_ahead(track, ahead_s)
        if why in ("limit", "jog"):
            self._stop(number, track, why, Mode.HOLD)
        elif track.is_ending:
            pass  # it comes to rest already
        elif why:
            self._stop(number, track, why, Mode.VELOCITY, 0.0)
            self._ending.add(number)
        elif number in self._ending:
            self._ending.remove(number)
            if track.is_at_rest:
                self._control.set_mode(Mode.HOLD, [number], (), 0.0)

    def _stop(self, number: int, track: Track, why: str, mode: Mode, *target: float) -> None:
        try:
            self._control.set_mode(mode, [number], target, 0.0)
        except MotionLimitError:  # too many periods were skipped
            self._trip_at_fence(track)
            return
        track.guard()
        self._tell(track, why)

    def _tell(self, track: Track, why: str) -> None:
        name, kind = track.axis.joint.name, "wrap" if why == "wrap" else "limit"
        self._events.add(kind, f"joint {name}: {_STOPPED[why]}", source=name)

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

    def _trip_dead(self, track: Track) -> None:
        name = track.axis.joint.name
        self._machine.trip(
            f"joint {name}: no count of its encoder, whether it is pushed more or less; free the "
            "joint, or check the encoder and its cable",
            code="stall",
            source=name,
        )

    def _check_following(self, track: Track) -> None:
        """Bring a joint to rest that does not follow; stop the robot if that does not help."""
        axis = track.axis
        behind_rad = track.reference[0] - axis.position_rad
        limit_rad = axis.error_max_rad + _LATE_S * abs(track.reference[1])
        most_rad = axis.following_max_rad
        if axis.joint.is_on_bench:
            limit_rad = most_rad  # soft gains belong to the test
        now_ns = self._events.t_ns
        if abs(behind_rad) <= min(limit_rad, most_rad):
            self._behind_ns.pop(axis.number, None)
            return
        since_ns = self._behind_ns.setdefault(axis.number, now_ns)
        is_coming = behind_rad * axis.velocity_rad_s > 0.0
        patience_s = _PATIENCE_MAX_S if is_coming else _PATIENCE_S
        if abs(behind_rad) <= most_rad and now_ns - since_ns < patience_s * 1e9:
            if since_ns == now_ns and track.mode in _PLANNED:
                self._hold(track, "following")
            return
        del self._behind_ns[axis.number]
        name, limit_rad = axis.joint.name, min(limit_rad, most_rad)
        self._machine.trip(
            f"joint {name}: led away by {beyond(behind_rad, limit_rad, 'rad')}; is it "
            "blocked, or are its gains too low?",
            code="following-error",
            kind="limit",
            source=name,
            is_of_motion=True,
        )

    # --- how far ----------------------------------------------------------------------------------

    def _needed_rad(self, track: Track, speed_rad_s: float, mode: Mode) -> float:
        """Return the way in which a joint comes to rest, from a measured speed."""
        joint, gentleness = track.axis.joint, self._control.planner.gentleness(track)
        late_s = _LATE_S + (BLEND_S if mode in DRIVEN_MODES else 0.0)
        way_rad = gentleness * braking_rad(joint, speed_rad_s) + late_s * speed_rad_s
        return way_rad + self._swing_rad(track, speed_rad_s)

    def _swing_rad(self, track: Track, speed_rad_s: float) -> float:
        """Return how far a joint swings beyond where it is brought to rest."""
        # A small change of speed is made within 50 ms.
        hardest_rad_s2 = min(acceleration_max_rad_s2(track.axis.joint), 30.0 * speed_rad_s)
        return track.overshoot_rad(hardest_rad_s2 / self._control.planner.gentleness(track))

    def _end_ahead(self, track: Track, ahead_s: float) -> str:
        """Return which end a joint would reach if it were not stopped now; empty for none yet."""
        axis, (position_rad, velocity_rad_s, _) = track.axis, track.reference
        speed_rad_s = abs(velocity_rad_s)
        is_upwards = velocity_rad_s > 0.0
        gentleness = self._control.planner.gentleness(track)
        needed_rad = gentleness * braking_rad(axis.joint, speed_rad_s) + speed_rad_s * ahead_s
        swing_rad = self._swing_rad(track, speed_rad_s)
        if axis.is_homed:
            low_rad, high_rad = position_range_rad(axis.joint)
            room_rad = high_rad - position_rad if is_upwards else position_rad - low_rad
            if speed_rad_s and room_rad < needed_rad + swing_rad:
                return "limit"
        else:
            room_rad = JOG_RAD - abs(position_rad - axis.enabled_at_rad)
            is_outwards = velocity_rad_s * (position_rad - axis.enabled_at_rad) > 0.0
            if is_outwards and room_rad < needed_rad:
                return "jog"
        low_rad, high_rad = axis.reach_rad
        room_rad = high_rad - position_rad if is_upwards else position_rad - low_rad
        return "wrap" if speed_rad_s and room_rad < needed_rad else ""
