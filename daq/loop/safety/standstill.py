"""Counts that do not come: an encoder that has frozen, or a joint that is pushed and does not move.

In motion (`daq.loop.safety.missed_motion`) the motor of an encoder that is not to be believed gets
no more current. At rest, a joint that is pushed beyond its weight and friction without one count is
blocked, or its encoder is dead: the push is taken back at once, and comes again only when counts
do. In either case a position law would wind up to all the current there is.

What hangs on a joint and what rubs tells the current with which it last moved, in any posture and
without a model; a light joint becomes several rad/s fast within 10 ms of twice its friction. What
an integral does at rest, slowly, is for `daq.loop.tracks.standing`.
"""

from __future__ import annotations

import math

from daq.loop.events import Events
from daq.loop.io.axis import Axis
from daq.loop.safety.knock import SLOW_RAD_S, Knock
from daq.loop.safety.loads import GOING_ON, Load
from daq.loop.safety.machine import Machine
from daq.loop.safety.missed_motion import MissedMotion
from daq.loop.tracks.control import LoopControl
from daq.loop.tracks.track import CARRIED_RAD_S
from daq.recording.states import Mode, State

ENCODER_FROZEN = "encoder-frozen"
"""The trip's code."""
STALL_S = 0.03
"""So long a joint may be pushed without a count, if it is not owed that many before."""
STALL_STOP_S = 1.0
"""After so long without a count the robot stops."""
_PUSHED_COUNTS, _LED_COUNTS = 8, 150
"""So many counts a rotor must owe us because it is pushed, or because it is led."""
_AFTER_PAUSE_S, _PAUSE_COUNTS_NS = 0.01, 100_000_000
"""So long counts must stay away if the computer has just paused: what is late looks the same."""
_FORGET_S = 0.05
_LED_RAD_S, _CREEPS_RAD_S = 0.02, 0.045
"""A joint that was slower, or is led more slowly, may well stick; one that is led nowhere any more,
already where a single count makes it look so fast."""
_RELEASE_COUNTS = 3
_TURNING_ROUND, _TURNING_ROUND_MOST = 2.5, 5.0
"""So many times its friction bears a joint that is pushed the other way, or stood: by the robot
file, and if that says less than there is."""
_GOING_ON_MOST = 2.5
"""The same of one that goes on, and may be shaken by others; before homing nothing shakes it."""
_SPARE_A = 0.1
"""Beside it, for noise."""


class _Push:
    """How far a push must have moved a joint that nothing blocks."""

    __slots__ = ("_moved_rad", "_owed_rad", "_speed_rad_s")

    def __init__(self, owed_rad: float) -> None:
        self._owed_rad = owed_rad
        self.end()

    def end(self) -> None:
        """Note that it is pushed no longer."""
        self._moved_rad = self._speed_rad_s = 0.0

    def goes_on(self, hastening_rad_s2: float, elapsed_s: float) -> bool:
        """Return whether it must have moved far enough by now."""
        self._speed_rad_s = max(0.0, self._speed_rad_s + hastening_rad_s2 * elapsed_s)
        self._moved_rad += self._speed_rad_s * elapsed_s
        return self._moved_rad >= self._owed_rad


class StandstillGuard:
    """Watches one joint that has not moved.

    Attributes:
        is_alert: Whether the next reply must be looked at even if it is plain.
    """

    def __init__(
        self, axis: Axis, load: Load, control: LoopControl, machine: Machine, events: Events
    ) -> None:
        self._axis = axis
        self._load = load
        self._control = control
        self._machine = machine
        self._events = events
        self._count_rad = math.tau / axis.joint.drive.encoder_counts_per_turn
        self._count_rad /= abs(axis.motor_per_joint)
        self.is_alert = False
        self._still_since_ns = self._pushed_since_ns = self._yielded_ns = 0
        self._yielded_at_rad = math.nan
        self._motion = MissedMotion(axis, load, control)
        self._knock = Knock(axis, load)
        self._checked_ns = 0
        self._pushes = [_Push(counts * self._count_rad) for counts in (_PUSHED_COUNTS, _LED_COUNTS)]

    def look(self) -> None:
        """Look at a reply about which there is something to notice, or was in the one before."""
        axis, now_ns = self._axis, self._events.t_ns
        track = self._control.tracks[axis.number]
        if track.mode is Mode.OFF:
            self._forget()
        elif self._yielded_ns:
            self._look_at_yielding(now_ns)
        elif axis.has_moved:
            self._forget()
        else:
            self._look_at_standing(now_ns)

    def check(self) -> bool:
        """Return whether it is to be knocked at; called 50 times a second."""
        now_ns, before_ns = self._events.t_ns, self._checked_ns
        self._checked_ns = now_ns
        axis, track = self._axis, self._control.tracks[self._axis.number]
        if axis.position_rad != self._yielded_at_rad:
            self._yielded_at_rad = math.nan  # it has counted
        if self._machine.state is not State.ACTIVE or axis.joint.is_on_bench:
            self._knock.forget()
            return False
        return self._knock.watch(track, now_ns, 1e-9 * (now_ns - before_ns))

    def _look_at_standing(self, now_ns: int) -> None:
        axis = self._axis
        if not self.is_alert:
            self.is_alert = True
            # The last count came with the reply before this one, or shortly after. A link may have
            # taken its time over that: it is not as old as its cycle.
            pause_ended_ns = self._machine.pause_ended_ns
            self._still_since_ns = max(now_ns - self._events.elapsed_ns, pause_ended_ns)
            self._motion.begin()
            self._stop_pushing()
        still_s = 1e-9 * (now_ns - self._still_since_ns)
        is_after_pause = now_ns - self._machine.pause_ended_ns < _PAUSE_COUNTS_NS
        if is_after_pause and still_s < _AFTER_PAUSE_S:
            return
        is_unanswered = False
        if self._knock.is_on:
            track = self._control.tracks[axis.number]
            is_unanswered = self._knock.step(track, self._beyond_nm()[0], now_ns)
        if self._motion.is_missed(still_s):
            self._distrust(still_s)
        elif is_unanswered:
            self._give_way(now_ns)
        elif not self._is_pushed_on(now_ns):
            if not (self._pushed_since_ns or self._knock.is_on) and still_s > _FORGET_S:
                self._forget()
        elif self._is_going_on and abs(axis.velocity_moved_rad_s) >= axis.slow_rad_s:
            self._distrust(still_s)
        else:
            self._give_way(now_ns)

    @property
    def _is_carried(self) -> bool:
        return self._load.tells_by_change(self._axis)

    def _is_pushed_on(self, now_ns: int) -> bool:
        """Return whether it is pushed so that it must have moved by now."""
        beyond_nm = self._beyond_nm()
        if max(beyond_nm) <= 0.0:
            self._stop_pushing()
            return False
        self._pushed_since_ns = self._pushed_since_ns or now_ns
        if not self._is_carried and now_ns - self._pushed_since_ns >= STALL_S * 1e9:
            return True
        if self._axis.joint.is_on_bench:
            return False  # what rubs is what is measured
        inertia_kg_m2, elapsed_s = self._load.inertia_max_kg_m2, 1e-9 * self._events.elapsed_ns
        return any(
            push.goes_on(pushed_nm / inertia_kg_m2, elapsed_s)
            for push, pushed_nm in zip(self._pushes, beyond_nm, strict=True)
        )

    def _stop_pushing(self) -> None:
        self._pushed_since_ns = 0
        for push in self._pushes:
            push.end()

    def _beyond_nm(self) -> tuple[float, float]:
        """Return by how much it is pushed beyond what it may well bear, and what it should."""
        axis = self._axis
        push_a = axis.iq_a - axis.iq_moved_a
        if not self._is_carried:
            beyond_a = max(push_a - axis.push_high_a, axis.push_low_a - push_a)
            return beyond_a * abs(axis.nm_per_a), 0.0
        push_nm, friction_nm = push_a * axis.nm_per_a, self._load.friction_nm
        if self._is_going_on and push_nm * axis.velocity_moved_rad_s > 0.0:
            frictions = _GOING_ON_MOST if axis.is_homed else GOING_ON
            allowed_nm = frictions * friction_nm + self._motion.shaking_nm
            allowed_nm += self._load.inertia_max_kg_m2 * self._motion.hastening_rad_s2
            return abs(push_nm) - allowed_nm, 0.0
        led_rad_s = math.copysign(1.0, push_nm) * self._control.tracks[axis.number].reference[1]
        usual_nm = abs(push_nm) - _TURNING_ROUND * friction_nm
        at_most_nm = _TURNING_ROUND_MOST * friction_nm + _SPARE_A * abs(axis.nm_per_a)
        return abs(push_nm) - at_most_nm, usual_nm if led_rad_s >= SLOW_RAD_S else 0.0

    @property
    def _is_going_on(self) -> bool:
        """Whether it was moving when its last count came, and is led on, or drawn on."""
        axis = self._axis
        speed_rad_s, earlier_rad_s = axis.velocity_moved_rad_s, axis.velocity_earlier_rad_s
        if abs(earlier_rad_s) < abs(speed_rad_s):
            speed_rad_s = earlier_rad_s  # one count alone is no motion
        led_rad_s = self._control.tracks[axis.number].reference[1]
        if led_rad_s * speed_rad_s > 0.0 and abs(led_rad_s) >= _LED_RAD_S:
            return abs(speed_rad_s) >= _LED_RAD_S
        drawn_rad = axis.error_rad / axis.motor_per_joint
        is_drawn = not led_rad_s and drawn_rad * speed_rad_s > 0.0
        return is_drawn and abs(speed_rad_s) >= _CREEPS_RAD_S

    def _distrust(self, still_s: float) -> None:
        axis = self._axis
        name = axis.joint.name
        self._forget()
        self._machine.trip(
            f"joint {name}: its encoder's counts stopped dead at "
            f"{axis.velocity_moved_rad_s:.3g} rad/s, {still_s * 1e3:.0f} ms ago, faster than it "
            "could brake: its motor gets no more current. Check the encoder and its "
            "cable, and whether the joint has hit something",
            code=ENCODER_FROZEN,
            source=name,
            blind=axis,
        )

    # --- pushed, and it does not move -------------------------------------------------------------

    def _give_way(self, now_ns: int) -> None:
        axis = self._axis
        name, pushed_a = axis.joint.name, axis.iq_a
        pushed_ms = 1e-6 * (now_ns - (self._pushed_since_ns or self._still_since_ns))
        left_a = self._holding_a()
        self._control.give_way(axis.number, left_a)
        self._knock.forget()
        if self._yielded_at_rad == axis.position_rad:
            self._trip_stalled("though it was pushed again")  # somebody has led it on meanwhile
            return
        self._yielded_ns, self._yielded_at_rad = now_ns, axis.position_rad
        text = (
            f"joint {name}: pushed with {pushed_a:.3g} A for {pushed_ms:.0f} ms without one "
            f"count of its encoder; {left_a:.3g} A are left until it moves. Is it blocked?"
        )
        self._events.add("stall", text, severity="warning", source=name)

    def _holding_a(self) -> float:
        """Return what holds the joint, in the middle of what its friction bears.

        If it is the encoder that is dead, friction stops the joint then.
        """
        axis, load, carried_nm = self._axis, self._load, self._carried_nm
        if not load.is_known:
            return carried_nm * axis.amperes_per_nm
        spare_nm = load.unsure_nm if self._is_carried else 0.0
        low_nm, high_nm = load.gravity_nm - spare_nm, load.gravity_nm + spare_nm
        return min(max(carried_nm, low_nm), high_nm) * axis.amperes_per_nm

    @property
    def _carried_nm(self) -> float:
        """What its motor bore when its last count came, without what moved it."""
        axis = self._axis
        carried_nm, speed_rad_s = axis.iq_moved_a * axis.nm_per_a, axis.velocity_moved_rad_s
        share = min(1.0, abs(speed_rad_s) / CARRIED_RAD_S)
        return carried_nm - math.copysign(share * self._load.friction_nm, speed_rad_s)

    def _look_at_yielding(self, now_ns: int) -> None:
        axis = self._axis
        name = axis.joint.name
        if self._control.tracks[axis.number].mode is not Mode.CURRENT:
            self._forget()  # somebody wants something else of it
        elif abs(axis.position_rad - self._yielded_at_rad) >= _RELEASE_COUNTS * self._count_rad:
            self._forget()
            self._control.set_mode(Mode.HOLD, [axis.number], (), 0.0)
            self._events.add("stall", f"joint {name}: moves again, and is held", source=name)
        elif now_ns - self._yielded_ns >= STALL_STOP_S * 1e9:
            self._trip_stalled(f"for {STALL_STOP_S:g} s since it was pushed against something")

    def _trip_stalled(self, what: str) -> None:
        name = self._axis.joint.name
        self._forget()
        self._machine.trip(
            f"joint {name}: no count of its encoder {what}; free the joint, or check the encoder "
            "and its cable",
            code="stall",
            source=name,
        )

    def _forget(self) -> None:
        self._knock.end(self._control.tracks[self._axis.number])
        self.is_alert = False
        self._yielded_ns = 0
