"""A rotor's encoder as a board reads it: counts, speed, index pulse, zero and rollover.

Nothing here knows currents or commands (`motor_output`).
"""

from __future__ import annotations

import math

from firmware_protocol.behaviour import Behaviour

_TURN_RAD = 2.0 * math.pi
_MARGIN_RAD = 1e-6
"""Wider than any rounding error of an angle, narrower than what a board can resolve."""


class Encoder:
    """One encoder, looked at once per physics step; with infinite counts per turn it is smooth.

    Attributes:
        angle_rad: As read, running on over as many turns as the motor makes.
        velocity_rad_s: Low-passed as the board does it.
        origin_rad: The angle that is reported as zero.
        base_rad: The same in the present range of the turn counter.
        is_zeroed: Whether calibration has ended.
        is_index_found: Whether the index has passed since calibration.
        index_toggle: Changes each time the index passes.
        has_rolled_over: The position has wrapped.
        is_frozen: Fault: the signal is gone. What the rotor does meanwhile is seen at once when it
            is back, as one jump.
    """

    def __init__(
        self,
        *,
        counts_per_turn: float,
        index_rad: float,
        behaviour: Behaviour,
        step_s: float,
    ) -> None:
        self._count_rad = _TURN_RAD / counts_per_turn
        self._wrap_rad = behaviour.position_wrap_turns * _TURN_RAD
        self._is_live_before = behaviour.calibration.is_position_live_before
        self._step_s = step_s
        self._velocity_gain = 1.0 - math.exp(-_TURN_RAD * behaviour.velocity_filter_hz * step_s)
        self._index_rad = self._quantised(index_rad)
        self._index_turn = 0
        self._zero_rad = self._index_zero_rad = 0.0
        self._is_index_compensated = False
        self.angle_rad = 0.0
        self.velocity_rad_s = 0.0
        self.is_frozen = False
        self.reset()

    def reset(self) -> None:
        """Forget calibration and index; until calibrated anew, turns count from here."""
        self.is_zeroed = False
        self._zero_rad = self.angle_rad
        self.is_index_found = False
        self.index_toggle = False
        self.has_rolled_over = False
        self._place_origin()

    def place(self, rotor_rad: float) -> None:
        """Put the encoder at an angle without a turn that it would see."""
        self.angle_rad = self._quantised(rotor_rad)
        self._index_turn = math.floor((self.angle_rad - self._index_rad) / _TURN_RAD)
        self._zero_rad = self.angle_rad
        self._place_origin()

    def set_zero(self) -> None:
        """End calibration: positions count from here."""
        self.is_zeroed = True
        self._zero_rad = self.angle_rad
        self._place_origin()

    def compensate_index(self, is_wanted: bool) -> None:
        """Choose whether positions are zero at the index once it was found."""
        if is_wanted != self._is_index_compensated:
            self._is_index_compensated = is_wanted
            self._place_origin()

    @property
    def position_rad(self) -> float:
        """As reported: wrapped about the zero of the calibration, then seen from the index."""
        return self._reported(self.angle_rad)

    def position_at(self, rotor_rad: float) -> float:
        """Return what is reported of a rotor that stands a little elsewhere than when last read."""
        if self.is_frozen:
            return self._reported(self.angle_rad)
        count = self._count_rad
        return self._reported(count * round(rotor_rad / count) if count else rotor_rad)

    def read(self, rotor_rad: float) -> None:
        """Look at the rotor after a physics step."""
        before = angle = self.angle_rad
        if not self.is_frozen:
            # As `_quantised`, without the call: this is done more often than anything else.
            count = self._count_rad
            self.angle_rad = angle = count * round(rotor_rad / count) if count else rotor_rad
        speed_rad_s = (angle - before) / self._step_s
        self.velocity_rad_s += self._velocity_gain * (speed_rad_s - self.velocity_rad_s)
        if not self._quiet_from_rad < angle < self._quiet_to_rad:
            self._look_for_events(before)

    # --- inside -----------------------------------------------------------------------------------

    def _reported(self, angle_rad: float) -> float:
        if not (self.is_zeroed or self._is_live_before):
            return 0.0
        wrap = self._wrap_rad
        # The turn counter wraps about the calibration's zero, whatever is reported as zero.
        counted = angle_rad - self._zero_rad
        if not -wrap <= counted < wrap:
            counted = (counted + wrap) % (2.0 * wrap) - wrap
        return counted - self._shift_rad

    def _quantised(self, rotor_rad: float) -> float:
        count = self._count_rad
        return count * round(rotor_rad / count) if count else rotor_rad

    def _place_origin(self) -> None:
        is_shifted = self._is_index_compensated and self.is_index_found
        self.origin_rad = self._index_zero_rad if is_shifted else self._zero_rad
        self._shift_rad = self.origin_rad - self._zero_rad
        self._count_ranges()
        self._quiet_from_rad = self._quiet_to_rad = math.inf

    def _look_for_events(self, before_rad: float) -> None:
        """See whether the index or the end of the range was passed, and how far off they are now.

        It costs more than the rest of a reading, and between the two there is nothing to see.
        """
        angle, wrap = self.angle_rad, self._wrap_rad
        before = before_rad - self._zero_rad
        range_before = math.floor((before + wrap) / (2.0 * wrap))
        range_after = math.floor((before + angle - before_rad + wrap) / (2.0 * wrap))
        if self.is_zeroed and range_after != range_before:
            self.has_rolled_over = True
        index_turn = math.floor((angle - self._index_rad) / _TURN_RAD)
        if index_turn != self._index_turn:
            self._pass_index(index_turn)
        turn_rad = self._index_rad + self._index_turn * _TURN_RAD
        range_rad = self._count_ranges() - wrap
        self._quiet_from_rad = max(turn_rad, range_rad) + _MARGIN_RAD
        self._quiet_to_rad = min(turn_rad + _TURN_RAD, range_rad + 2.0 * wrap) - _MARGIN_RAD

    def _count_ranges(self) -> float:
        """Return the angle in the middle of the present range of the turn counter."""
        wrap = self._wrap_rad
        number = math.floor((self.angle_rad - self._zero_rad + wrap) / (2.0 * wrap))
        middle_rad = self._zero_rad + 2.0 * wrap * number
        self.base_rad = middle_rad + self._shift_rad
        return middle_rad

    def _pass_index(self, index_turn: int) -> None:
        # Forwards the pulse is at the start of the new turn, backwards at the end of it.
        turn = max(index_turn, self._index_turn)
        self._index_turn = index_turn
        if not self.is_zeroed:
            return
        self.index_toggle = not self.index_toggle
        if not self.is_index_found:
            self.is_index_found = True
            self._index_zero_rad = self._index_rad + turn * _TURN_RAD
            self._place_origin()
