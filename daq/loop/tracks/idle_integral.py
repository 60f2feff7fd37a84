"""What a board's integral of the position error may have become while Ki = 0.

Of some firmware it is not known whether the integral is kept, goes on or is cleared while Ki = 0.
So it is made not to matter: a motor without gains is followed by a reference that keeps it near 0
if it goes on, and what a motor with gains collects is added up. Ki rises from 0 only where that is
little, and where it has not been in use since the motor was enabled: else an integral of which
nobody knows would become current at once.
"""

from __future__ import annotations

import math

from daq.loop.io.axis import Axis
from firmware_protocol.behaviour import IdleIntegral

_SMALL = 0.02
"""Of the current limit: an integral that makes no more current may come back with its Ki."""
_UNWIND_S = 0.2
"""In about this time a reference without gains takes back what the integral has collected."""
_KNOWN = ((), (IdleIntegral.CLEARED,))


class IdleIntegralWatch:
    """The integral of one motor, while nobody uses it. Motor side."""

    __slots__ = ("_axis", "_error_rad", "_integral_rad_s", "_is_needed", "_rollovers", "_was_used")

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._is_needed = axis.behaviour.idle_integrals not in _KNOWN
        self.begin()

    def begin(self) -> None:
        """Begin anew: the motor is not enabled, which clears its integral."""
        self._integral_rad_s = self._error_rad = 0.0
        self._rollovers = self._axis.rollovers
        self._was_used = False

    def note_use(self) -> None:
        """Note that there is a Ki: what its integral holds may be kept without it."""
        self._was_used = self._is_needed

    def is_small(self, ki_a_per_rad_s: float) -> bool:
        """Whether the integral may come back with a Ki."""
        if self._was_used:
            return False
        current_a = ki_a_per_rad_s * abs(self._integral_rad_s)
        return current_a <= _SMALL * self._axis.current_max_a

    def follow(self, elapsed_s: float, *, is_led: bool) -> None:
        """Add up what it collects, and without gains lead it back to 0."""
        if not self._is_needed:
            return
        axis, error_rad = self._axis, self._axis.error_rad
        self._integral_rad_s += 0.5 * (self._error_rad + error_rad) * elapsed_s
        if axis.rollovers != self._rollovers:
            self._integral_rad_s = math.inf  # for a moment the error was a whole range
        if not is_led and math.isfinite(self._integral_rad_s):
            back_rad = self._integral_rad_s / _UNWIND_S
            axis.refer(axis.position_rad - back_rad / axis.motor_per_joint, 0.0)
            error_rad = axis.error_rad
        self._error_rad = error_rad
