"""The calibration of one motor: a rotating field that the rotor must follow.

The rotor jumps to the field's nearest pole, is turned back and forth again by some electrical
turns, and ends at most half of one from where it began. An encoder that does not see the rotor
turn as far as the field has failed the test.
"""

from __future__ import annotations

import math

_SETTLED, _BACK, _TURNED, _FORTH = 0.2, 0.5, 0.55, 0.85
"""Shares of the duration: at the pole, turned back, resting there, back at the pole."""
_OFF_MAX = 0.25
"""Of the way that the field turns."""
_STIFFNESS_A_PER_RAD, _DAMPING_A_S_PER_RAD = 120.0, 1.0


class Alignment:
    """One calibration that is going on; angles are the rotor's own, from the plant.

    Attributes:
        is_over: Whether it has come to its end.
        has_failed: Whether the encoder was not where it should be.
    """

    def __init__(
        self, start_rad: float, *, pole_pairs: int, travel_turns: float, duration_s: float
    ) -> None:
        electrical_rad = math.tau / pole_pairs
        self._start_rad = start_rad
        self._pole_rad = electrical_rad * round(start_rad / electrical_rad)
        self._back_rad = self._pole_rad - travel_turns * electrical_rad
        self._duration_s = duration_s
        self._elapsed_s = 0.0
        self._settled_rad: float | None = None
        self._is_turned = False
        self.is_over = False
        self.has_failed = False

    def current_a(self, rotor_rad: float, rotor_rad_s: float, step_s: float) -> float:
        """Return the field's pull on the rotor in the coming step."""
        self._elapsed_s += step_s
        target_rad, target_rad_s = self._field()
        return _STIFFNESS_A_PER_RAD * (target_rad - rotor_rad) + _DAMPING_A_S_PER_RAD * (
            target_rad_s - rotor_rad_s
        )

    def look(self, encoder_rad: float) -> None:
        """Compare how far encoder and field have turned back, half-way."""
        progress = self._elapsed_s / self._duration_s
        if self._settled_rad is None and progress >= _SETTLED:
            self._settled_rad = encoder_rad
        if not self._is_turned and self._settled_rad is not None and progress >= _TURNED:
            self._is_turned = True
            way_rad = self._back_rad - self._pole_rad
            off_rad = encoder_rad - self._settled_rad - way_rad
            self.has_failed = abs(off_rad) > _OFF_MAX * abs(way_rad) if way_rad else False
        self.is_over = progress >= 1.0

    def _field(self) -> tuple[float, float]:
        progress = self._elapsed_s / self._duration_s
        if progress < _SETTLED:
            return self._between(self._start_rad, self._pole_rad, progress, 0.0, _SETTLED)
        if progress < _TURNED:
            return self._between(self._pole_rad, self._back_rad, progress, _SETTLED, _BACK)
        return self._between(self._back_rad, self._pole_rad, progress, _TURNED, _FORTH)

    def _between(
        self, begin_rad: float, end_rad: float, progress: float, begin: float, end: float
    ) -> tuple[float, float]:
        share = min(1.0, (progress - begin) / (end - begin))
        way_rad = end_rad - begin_rad
        speed = 6.0 * share * (1.0 - share) / ((end - begin) * self._duration_s)
        return begin_rad + way_rad * share * share * (3.0 - 2.0 * share), way_rad * speed
