"""Which gains a board's own law holds a joint with, without swinging up. Pure.

With an inertia M at the joint, all gains at the joint too, and a speed that the board low-passes at
ω_f before its law sees it, the closed loop has the polynomial

    M/ω_f·s⁴ + M·s³ + (Kp/ω_f + Kd)·s² + (Kp + Ki/ω_f)·s + Ki

By Routh it is stable where (Kp + Ki/ω_f)·(Kd − Ki/ω_f²) > M·Ki; what the law does late counts
against Kd. Two more things are not in it: inside a gear's play only the rotor turns, and there a Kd
that is too high swings with the filter, as in `daq.control.braking`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from daq.control.braking import rotor_damping_nm_s_per_rad
from daq.robot import DrivenJoint, Gains

_MARGIN = 1.5
"""On the inertia: links are not quite what the file says, and may carry something."""
_LATE_S = 0.5e-3
"""How late a board's law acts at most, its tick and its current loop together."""


@dataclass(frozen=True, slots=True)
class StableGains:
    """What gains a joint may have on its board.

    Attributes:
        joint: Which one.
        inertia_kg_m2: The most that it turns in any posture.
        amperes_per_nm_rad: Gains at the motor per gain at the joint.
        filter_hz: Of the speed on its board.
    """

    joint: DrivenJoint
    inertia_kg_m2: float
    amperes_per_nm_rad: float
    filter_hz: float

    @property
    def kd_max_a_s_per_rad(self) -> float:
        """The highest Kd; never less than the robot file's own."""
        control = self.joint.control
        damping = rotor_damping_nm_s_per_rad(self.joint, filter_hz=self.filter_hz)
        return max(
            damping * self.amperes_per_nm_rad,
            control.position.kd_a_s_per_rad,
            control.velocity.kd_a_s_per_rad,
        )

    def problem(self, gains: Gains, ki_a_per_rad_s: float) -> str:
        """Return why a joint would swing with gains at its motor, in words; empty if it does not.

        Args:
            gains: Kp and Kd.
            ki_a_per_rad_s: What the board has of their Ki.
        """
        if gains == self.joint.control.position:
            return ""  # whoever wrote the robot file has tried them
        kp, kd, ki = gains.kp_a_per_rad, gains.kd_a_s_per_rad, ki_a_per_rad_s
        if kd > self.kd_max_a_s_per_rad:
            return (
                f"kd_a_s_per_rad = {kd:g}: the rotor would swing with its board's filter of "
                f"{self.filter_hz:g} Hz; at most {_down(self.kd_max_a_s_per_rad)} is stable"
            )
        if kd < _LATE_S * kp:
            return (
                f"kd_a_s_per_rad = {kd:g}: nothing damps it; at least {_up(_LATE_S * kp)} with "
                f"kp_a_per_rad = {kp:g}"
            )
        ki_max = self._ki_max_a_per_rad_s(kp, kd)
        if ki <= ki_max:
            return ""
        text = f"ki_a_per_rad_s = {ki:g} with kp_a_per_rad = {kp:g} and kd_a_s_per_rad = {kd:g}: "
        text += f"it would swing up by itself; at most ki_a_per_rad_s = {_down(ki_max)}"
        kp_least = self._kp_least_a_per_rad(kd, ki)
        if kp_least is not None:
            text += f", or at least kp_a_per_rad = {_up(kp_least)}"
        return text

    @property
    def _inertia_a_s2_per_rad(self) -> float:
        return _MARGIN * self.inertia_kg_m2 * self.amperes_per_nm_rad

    def _ki_max_a_per_rad_s(self, kp: float, kd: float) -> float:
        """Solve Routh's condition for Ki: (Kp + Ki/ω)·(D − Ki/ω²) = M·Ki, D = Kd − late·Kp."""
        corner = math.tau * self.filter_hz
        damping, inertia = kd - _LATE_S * kp, self._inertia_a_s2_per_rad
        # Ki²/ω³ + (M + Kp/ω² − D/ω)·Ki − Kp·D = 0, without the loss of digits of a small a.
        a, c = corner**-3, -kp * damping
        b = inertia + kp / corner**2 - damping / corner
        root = math.sqrt(b * b - 4.0 * a * c)
        return -2.0 * c / (b + root) if b > 0.0 else (root - b) / (2.0 * a)

    def _kp_least_a_per_rad(self, kd: float, ki: float) -> float | None:
        """Return the least Kp that is stable with the others; None where none is."""
        inertia = self._inertia_a_s2_per_rad
        # Kp·(Kd − late·Kp) = M·Ki; the filter's share is left out, which is on the safe side.
        under_root = kd * kd - 4.0 * _LATE_S * inertia * ki
        if under_root < 0.0:
            return None
        return 2.0 * inertia * ki / (kd + math.sqrt(under_root))


def _down(value: float) -> str:
    """Write a highest value so that it is not more."""
    return f"{0.995 * value:.3g}"


def _up(value: float) -> str:
    """Write a least value so that it is not less."""
    return f"{1.005 * value:.3g}"
