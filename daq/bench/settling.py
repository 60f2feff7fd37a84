"""Detects when a speed has settled, from the lag of the motor behind its reference.

With a velocity PI on the board the current is Kp·lag + Kd·(speed error), so the current is steady
when the lag is. The lag is known to an encoder count, without the noise of a measured current:
its mean over a window is compared with that over the window before.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

WINDOW_S = 0.25
"""How long a window lasts, unless looks are so rare that it would hold hardly any."""
TOLERANCE, TOLERANCE_A = 0.01, 1e-3
"""How much the current may change from one window to the next: of its own size, and at least."""
_LOOKS_MIN = 4
_LOOKS_KEPT = 2 * _LOOKS_MIN + 1
_SATURATED, _LATEST_S = 0.93, 0.1


@dataclass(frozen=True, slots=True)
class Look:
    """The joint at one moment, motor side."""

    t_s: float
    angle_rad: float
    lag_rad: float
    velocity_rad_s: float
    iq_a: float


class Diagnosis(NamedTuple):
    """What most likely happened: in a word, and for people with numbers and what to do."""

    code: str
    text: str


class SettlingDetector:
    """Watches one plateau.

    Args:
        kp_a_per_rad: Gain on the lag.
        target_rad_s: Speed that was commanded, at the motor.
        limit_a: Current that the board does not exceed.
        advice: What to try when the gains are wrong.
        speed_tolerance: How far the mean speed may be off, relative to the target. Where a load
            varies on the way, only this is judged; None to look at the current.
    """

    def __init__(
        self,
        *,
        kp_a_per_rad: float,
        target_rad_s: float,
        limit_a: float,
        advice: str,
        speed_tolerance: float | None = None,
    ) -> None:
        self._kp = kp_a_per_rad
        self._target_rad_s = target_rad_s
        self._limit_a = limit_a
        self._advice = advice
        self._speed_tolerance = speed_tolerance
        self._looks: deque[Look] = deque()
        self._is_ramping = True
        self._ramp_end_s = -math.inf

    def add(self, look: Look, *, is_ramping: bool) -> bool:
        """Take one more look; return whether it has settled, never while `is_ramping`."""
        if is_ramping:
            self._ramp_end_s = look.t_s
        self._is_ramping = is_ramping
        self._looks.append(look)
        while look.t_s - self._looks[0].t_s > 2.0 * WINDOW_S and len(self._looks) > _LOOKS_KEPT:
            self._looks.popleft()
        before, after = self._halves()
        began_s = max(self._looks[0].t_s, self._ramp_end_s)
        is_short = look.t_s - began_s < 1.9 * self._window_s or len(before) < _LOOKS_MIN
        if is_ramping or is_short or self._is_saturated():
            return False
        drift_rad = _mean_lag(after) - _mean_lag(before)
        if self._speed_tolerance is not None:
            error_rad_s = drift_rad / self._window_s
            return abs(error_rad_s) <= self._speed_tolerance * abs(self._target_rad_s)
        level_a = self._kp * abs(_mean_lag(after))
        return self._kp * abs(drift_rad) <= max(TOLERANCE * level_a, TOLERANCE_A)

    def problem(self) -> Diagnosis:
        """Return why it has not settled."""
        if not self._looks:
            return Diagnosis("no-looks", "it was given up at once")
        before, after = self._halves()
        speed_rad_s = sum(look.velocity_rad_s for look in self._looks) / len(self._looks)
        target = self._target_rad_s
        if self._is_saturated():
            return Diagnosis(
                "saturated",
                f"the current is saturated at its limit of {self._limit_a:.3g} A while the motor "
                f"turns at {speed_rad_s:.4g} of {target:.4g} rad/s: drive it slower (--speed-max) "
                "or raise the joint's current_max_a",
            )
        if self._is_ramping:
            return Diagnosis(
                "falls-behind",
                f"it turns at {speed_rad_s:.4g} of {target:.4g} rad/s and falls behind; the PI is "
                f"badly tuned, {self._advice}",
            )
        lags_rad = [look.lag_rad for look in self._looks]
        swing_rad, level_rad = max(lags_rad) - min(lags_rad), abs(_mean_lag(after))
        is_one_way = swing_rad < 1.5 * abs(lags_rad[-1] - lags_rad[0])
        if swing_rad > max(0.2 * level_rad, 0.05) and not is_one_way:
            return Diagnosis(
                "oscillates",
                f"it oscillates: the lag swings by {swing_rad:.3g} rad around {level_rad:.3g} rad "
                f"at the motor; the PI is badly tuned, {self._advice}",
            )
        drift_a = self._kp * (_mean_lag(after) - _mean_lag(before)) if before and after else 0.0
        return Diagnosis(
            "still-changes",
            f"the current still changes by {1e3 * drift_a:.2g} mA in {self._window_s:.2g} s (at "
            f"{speed_rad_s:.4g} of {target:.4g} rad/s): wait longer (--settle-max), or "
            f"{self._advice}",
        )

    @property
    def _window_s(self) -> float:
        return max(WINDOW_S, 0.5 * (self._looks[-1].t_s - self._looks[0].t_s))

    def _halves(self) -> tuple[list[Look], list[Look]]:
        middle_s = self._looks[-1].t_s - self._window_s
        before = [look for look in self._looks if look.t_s < middle_s]
        return before, [look for look in self._looks if look.t_s >= middle_s]

    def _is_saturated(self) -> bool:
        latest = [look.iq_a for look in self._looks if look.t_s > self._looks[-1].t_s - _LATEST_S]
        return abs(sum(latest)) >= _SATURATED * self._limit_a * len(latest)


def _mean_lag(looks: list[Look]) -> float:
    return sum(look.lag_rad for look in looks) / len(looks) if looks else math.nan
