"""A joint that an integral leads and that stands still: arrived, stuck, or with a dead encoder.

An integral winds up for as long as there is an error, and friction keeps the last one. Where it
moves the joint, that hunts about its place; where the encoder is dead, nothing ends it. So a joint
without one count for a while is held where it stands, with the current that held it when it came to
stand. One that stands further from where it is led has to show that it is alive: it is pushed less,
until it gives way.
"""

from __future__ import annotations

import enum
import math

from daq.loop.io.axis import Axis

STANDS_S = 0.5
"""After so long without a count nothing more is wound up."""
_FRICTIONS = 2.5
"""Nor when the current has changed by so many times its friction: twice turns a joint round."""
_NONE_RAD_S = 0.002
_ARRIVED_RAD = 0.003
"""At the joint: one that stands so near has arrived."""
_CREEPING_RAD_S = 0.03
"""A joint of which the last count came faster may still be moving, if its encoder is dead."""
_LESS, _LESS_A = 5.0, 0.1
"""So many times its friction less makes a joint give way whose friction is twice as much."""
_ANSWERS_S = 0.2
"""So soon after that."""
_BEARS_S = 0.1
"""What a joint bears for so long without moving, nothing moves it with."""


class Standing(enum.Enum):
    """What is to be done about a joint."""

    NOTHING = enum.auto()
    SETTLES = enum.auto()
    """Hold it where it is, with another current."""
    IS_ASKED = enum.auto()
    """The same, with so much less that it must give way."""
    ANSWERS = enum.auto()
    """It has: lead it where it was led before."""
    IS_DEAD = enum.auto()
    """Nothing that it is given brings a count."""


class StandingWatch:
    """Watches one joint 50 times a second.

    Attributes:
        wanted_a: The current that it is to be held with, once it settles.
    """

    __slots__ = (
        "_asked_s",
        "_axis",
        "_between_a",
        "_friction_a",
        "_has_answered",
        "_held_a",
        "_is_settled",
        "_position_rad",
        "_still_s",
        "wanted_a",
    )

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._friction_a = axis.joint.drive.joint_coulomb_nm * abs(axis.amperes_per_nm)
        self._position_rad = self._between_a = self.wanted_a = 0.0
        self.begin()

    def begin(self) -> None:
        """Begin anew: it is led elsewhere."""
        self._has_answered = False
        self._note_motion()

    def _note_motion(self) -> None:
        self._still_s = self._held_a = self._asked_s = 0.0
        self._is_settled = False

    def look(self, elapsed_s: float, kd_a_s_per_rad: float) -> Standing:
        """Return what is to be done about a joint that is led nowhere."""
        axis, position_rad = self._axis, self._axis.position_rad
        if position_rad != self._position_rad or abs(axis.velocity_rad_s) > _NONE_RAD_S:
            self._position_rad = position_rad
            return self._note_count()
        if not self._still_s:
            self._held_a = axis.iq_mean_a
        self._still_s += elapsed_s
        if self._asked_s:
            self._asked_s += elapsed_s
            return Standing.IS_DEAD if self._asked_s > _ANSWERS_S else Standing.NOTHING
        if self._is_settled or axis.joint.is_on_bench:
            return Standing.NOTHING
        error_rad = axis.error_rad / axis.motor_per_joint
        is_near = abs(error_rad) <= _ARRIVED_RAD
        if not is_near and self._has_answered:
            return Standing.NOTHING  # it is alive, and only stuck
        is_pushed = abs(axis.iq_mean_a - self._held_a) > _FRICTIONS * self._friction_a
        if not (is_pushed or self._still_s >= STANDS_S):
            if self._still_s >= _BEARS_S:
                self._bears(axis.iq_mean_a)
            return Standing.NOTHING
        self.wanted_a = self._resting_a(kd_a_s_per_rad)
        if is_near:
            self._is_settled = True
        else:
            self._asked_s = elapsed_s
            less_a = _LESS * self._friction_a + _LESS_A
            self.wanted_a -= math.copysign(less_a, axis.error_rad)
        self._bears(self.wanted_a if is_near else 0.5 * (self.wanted_a + axis.iq_mean_a))
        return Standing.SETTLES if is_near else Standing.IS_ASKED

    def _note_count(self) -> Standing:
        answers = self._asked_s > 0.0
        self._note_motion()
        if not answers:
            return Standing.NOTHING
        self._has_answered = True
        self._bears(self._between_a)  # it will be pushed as before
        return Standing.ANSWERS

    def _bears(self, iq_a: float) -> None:
        """Note that a current does not move it, nor one a little beside."""
        self._between_a = iq_a
        self._axis.iq_moved_a, self._axis.velocity_moved_rad_s = iq_a, 0.0

    def _resting_a(self, kd_a_s_per_rad: float) -> float:
        """Return the current that holds it, without what has been wound up since it stands.

        A joint that was creeping to its place is given less: a board that sees no speed does not
        brake, and friction has to stop what may be moving on.
        """
        axis = self._axis
        creeping_rad_s = axis.velocity_moved_rad_s
        if creeping_rad_s * axis.error_rad * axis.motor_per_joint <= 0.0:
            return self._held_a  # it had come to rest
        friction_a = self._friction_a * min(1.0, abs(creeping_rad_s) / _CREEPING_RAD_S)
        braking_a = kd_a_s_per_rad * creeping_rad_s * axis.motor_per_joint
        return self._held_a - braking_a - math.copysign(friction_a, creeping_rad_s * axis.nm_per_a)
