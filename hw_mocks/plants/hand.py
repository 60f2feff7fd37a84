"""A person's hand on the motors, for programs that ask to have them turned past their index.

It leads each rotor along a smooth path, a little more than a turn forth and back, by a spring and a
damper whose torque is limited:

    τ = clamp(k·(θ₀ + a(t) − θ) + d·(ȧ(t) − ω), ±τ_max),  a(t) = A·(1 − cos(2πt/T))/2

θ₀ is where the rotor stood when the hand took hold. That is enough to get past friction, the weight
of the links and a board that brakes, and too little to hurt a motor that a program holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

from hw_mocks.errors import MockConfigError

TURN_S: Final = 4.0
"""How long it takes, forth and back."""
_TRAVEL_RAD: Final = 1.2 * math.tau
_STIFFNESS_NM_PER_RAD: Final = 0.2
_DAMPING_NM_S_PER_RAD: Final = 5e-3
_TORQUE_MAX_NM: Final = 0.15
_TURN_NS: Final = round(TURN_S * 1e9)
_RATE_RAD_S: Final = math.tau / TURN_S


class Hand:
    """Takes hold of all motors at these times after the start, each time for `TURN_S`.

    Raises:
        MockConfigError: A time that is not finite or before the start, or two turns at once.
    """

    def __init__(self, at_s: Sequence[float]) -> None:
        times_s = sorted(at_s)
        problems = [f"{t:g} s: must be a time after the start" for t in times_s if not 0 <= t < 1e9]
        problems += [
            f"{second:g} s: the turn that begins at {first:g} s takes {TURN_S:g} s"
            for first, second in itertools.pairwise(times_s)
            if second < first + TURN_S
        ]
        if problems:
            raise MockConfigError("hand", problems)
        self._begins_ns = [round(t * 1e9) for t in times_s]
        self._from_rad: list[float] = []

    def torques_nm(
        self,
        now_ns: int,
        motor_position_rad: Sequence[float],
        motor_velocity_rad_s: Sequence[float],
    ) -> list[float] | None:
        """Return the torque on each rotor, None while no hand is there.

        Times must not run back from call to call.
        """
        begins_ns = self._begins_ns
        if not begins_ns or now_ns < begins_ns[0]:
            return None
        since_ns = now_ns - begins_ns[0]
        if since_ns >= _TURN_NS:
            del begins_ns[0]
            self._from_rad = []
            return None
        self._from_rad = self._from_rad or list(motor_position_rad)
        angle = since_ns * 1e-9 * _RATE_RAD_S
        ahead_rad = 0.5 * _TRAVEL_RAD * (1.0 - math.cos(angle))
        speed_rad_s = 0.5 * _TRAVEL_RAD * _RATE_RAD_S * math.sin(angle)
        return [
            max(
                -_TORQUE_MAX_NM,
                min(
                    _TORQUE_MAX_NM,
                    _STIFFNESS_NM_PER_RAD * (from_rad + ahead_rad - position_rad)
                    + _DAMPING_NM_S_PER_RAD * (speed_rad_s - velocity_rad_s),
                ),
            )
            for from_rad, position_rad, velocity_rad_s in zip(
                self._from_rad, motor_position_rad, motor_velocity_rad_s, strict=True
            )
        ]
