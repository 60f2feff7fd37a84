"""Counts that do not come: an encoder that has frozen, or a joint that is pushed and does not move.

In motion, counts that stop dead faster than current, weight and friction could stop the rotor come
from an encoder that is not to be believed: its motor gets no more current. At rest, a joint that is
pushed beyond its weight and friction without one count is blocked, or its encoder is dead: the push
is taken back at once, and comes again only when counts do. In either case a position law would wind
up to all the current there is.
"""

from __future__ import annotations

import math

from daq.loop.events import Events
from daq.loop.io.axis import Axis
from daq.loop.safety.loads import Load
from daq.loop.safety.machine import Machine
from daq.loop.tracks.control import LoopControl
from daq.recording.states import Mode

ENCODER_FROZEN = "encoder-frozen"
"""The trip's code."""
STALL_S = 0.03
"""So long a joint may be pushed without a count, if it is not owed that many before."""
STALL_STOP_S = 1.0
"""After so long without a count the robot stops."""
_MISSED_COUNTS = 12
"""So many counts a rotor must owe us."""
_FALLEN = 0.85
"""An encoder that counts no more reports a speed that falls; a reply that came twice does not."""
_INERTIA_MORE = 2.0
"""What a joint turns may be so many times what CAD says."""
_FRICTION_MORE = 3.0
"""Friction may be so many times that of the robot file."""
_AFTER_PAUSE_S = 0.01
"""So long counts must stay away if the computer has paused lately: what is late looks the same."""
_FORGET_S = 0.05
_RELEASE_COUNTS = 3
_GENTLE = 0.25
"""Of Isat: what is left of a push where the weight is not known."""


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
        self._filter_s = 1.0 / (math.tau * axis.behaviour.velocity_filter_hz)
        self.is_alert = False
        self._still_since_ns = self._pushed_since_ns = self._yielded_ns = 0
        self._speed_rad_s = self._braking_nm = self._yielded_at_rad = 0.0
        self._pushed_rad = self._pushed_rad_s = 0.0

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

    def _look_at_standing(self, now_ns: int) -> None:
        axis = self._axis
        if not self.is_alert:
            self.is_alert = True
            # The last count came with the reply before this one, or shortly after. A link may have
            # taken its time over that: it is not as old as its cycle.
            self._still_since_ns, self._pushed_since_ns = now_ns - self._events.elapsed_ns, 0
            self._pushed_rad = self._pushed_rad_s = 0.0
            self._speed_rad_s, self._braking_nm = axis.velocity_before_rad_s, 0.0
        still_s = 1e-9 * (now_ns - self._still_since_ns)
        if self._machine.is_after_pause and still_s < _AFTER_PAUSE_S:
            return
        is_pushed = not axis.push_low_a <= axis.iq_a <= axis.push_high_a
        owed_rad = _MISSED_COUNTS * self._count_rad
        has_fallen = abs(axis.velocity_rad_s) < _FALLEN * abs(self._speed_rad_s)
        if has_fallen and self._owed_rad(still_s) >= owed_rad:
            self._distrust(still_s)
        elif not is_pushed:
            self._pushed_since_ns = 0
            self._pushed_rad = self._pushed_rad_s = 0.0
            if still_s > _FORGET_S:
                self._forget()
        else:
            self._pushed_since_ns = self._pushed_since_ns or now_ns
            is_long = now_ns - self._pushed_since_ns >= STALL_S * 1e9
            if self._pushed_on_rad() >= owed_rad or is_long:
                self._give_way(now_ns)

    def _pushed_on_rad(self) -> float:
        """Return how far the push must have moved it at least, if nothing blocked it."""
        axis, elapsed_s = self._axis, 1e-9 * self._events.elapsed_ns
        beyond_a = max(axis.iq_a - axis.push_high_a, axis.push_low_a - axis.iq_a)
        inertia_kg_m2 = _INERTIA_MORE * self._load.inertia_kg_m2
        self._pushed_rad_s += beyond_a * abs(axis.nm_per_a) / inertia_kg_m2 * elapsed_s
        self._pushed_rad += self._pushed_rad_s * elapsed_s
        # On the bench what rubs is what is measured, and nobody knows it yet.
        return 0.0 if axis.joint.is_on_bench or not self._load.is_known else self._pushed_rad

    def _owed_rad(self, still_s: float) -> float:
        """Return how far it must have come at least since its last count."""
        axis, load = self._axis, self._load
        speed_rad_s = abs(self._speed_rad_s)
        if speed_rad_s < axis.slow_rad_s:
            return 0.0
        drive_nm = math.copysign(1.0, self._speed_rad_s) * axis.iq_a * axis.nm_per_a
        self._braking_nm = max(self._braking_nm, -drive_nm)
        against_nm = self._braking_nm + abs(load.gravity_nm) + load.unsure_nm
        against_nm += _FRICTION_MORE * load.friction_nm
        slowing_rad_s2 = against_nm / load.inertia_kg_m2
        # Its speed by the board's filter is what it was a moment ago: it may turn round just now.
        speed_rad_s = max(0.0, speed_rad_s - self._filter_s * slowing_rad_s2)
        moving_s = min(still_s, speed_rad_s / slowing_rad_s2)
        return moving_s * (speed_rad_s - 0.5 * slowing_rad_s2 * moving_s)

    def _distrust(self, still_s: float) -> None:
        axis = self._axis
        name = axis.joint.name
        self._forget()
        self._machine.trip(
            f"joint {name}: its encoder's counts stopped dead at {self._speed_rad_s:.3g} rad/s, "
            f"{still_s * 1e3:.0f} ms ago, faster than it could brake: its motor gets no more "
            "current. Check the encoder and its cable, and whether the joint has hit something",
            code=ENCODER_FROZEN,
            source=name,
            blind=axis,
        )

    # --- pushed, and it does not move -------------------------------------------------------------

    def _give_way(self, now_ns: int) -> None:
        axis, load = self._axis, self._load
        name, pushed_a = axis.joint.name, axis.iq_a
        pushed_ms = 1e-6 * (now_ns - self._pushed_since_ns)
        if load.is_known and not axis.joint.is_on_bench:
            # The weight by CAD, or as it was when the joint last moved: whichever is nearer.
            bare_a = load.gravity_nm * axis.amperes_per_nm
            held_a = min(bare_a, axis.iq_moved_a, key=lambda known_a: abs(pushed_a - known_a))
            # Without friction's share: if it is the encoder that is dead, friction stops the joint.
            left_a = held_a
        else:
            left_a = math.copysign(_GENTLE * axis.isat_a, pushed_a)
        self._control.give_way(axis.number, left_a)
        self._yielded_ns, self._yielded_at_rad = now_ns, axis.position_rad
        text = (
            f"joint {name}: pushed with {pushed_a:.3g} A for {pushed_ms:.0f} ms without one "
            f"count of its encoder; {left_a:.3g} A are left until it moves. Is it blocked?"
        )
        self._events.add("stall", text, severity="warning", source=name)

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
            self._forget()
            self._machine.trip(
                f"joint {name}: no count of its encoder for {STALL_STOP_S:g} s since it was pushed "
                "against something; free the joint, or check the encoder and its cable",
                code="stall",
                source=name,
            )

    def _forget(self) -> None:
        self.is_alert = False
        self._yielded_ns = 0
