"""From one set of gains to another without moving the joint that they hold.

At rest a board drives FF + Kp·e + Ki·X. Other gains hold the joint with the same current if the
feed-forward takes over what they give less, at the present e and X. While all of them slew together
in straight lines the sum stays what it is. X is not reported: it is the rest of what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from daq.loop.io.axis import Axis, Law
from daq.robot import Gains

CARRIED_SHARE = 0.6
"""Of the current limit: gains do not change so that more feed-forward than this is needed, unless
it is what holds the joint."""
KI_GROWTH_MAX = 12.0
"""Ki does not grow more at once: what is wrong with the measured integral grows with it."""
SHIFT_MAX_RAD = 0.01
"""At the joint: what a moving joint takes to move must not displace it by more when it rests."""
_MOVING_RAD_S = 0.08
_NEAR_LIMIT_A = 0.5


@dataclass(frozen=True, slots=True)
class Handover:
    """What the law of a joint gives at this moment.

    Attributes:
        axis: The joint.
        law: Its gains and feed-forward now.
        reference: Position (rad), velocity (rad/s) and torque (N·m) of the next command.
        period_s: The loop's.
    """

    axis: Axis
    law: Law
    reference: tuple[float, float, float]
    period_s: float

    @property
    def error_rad(self) -> float:
        """How far the motor was behind its reference when it was last measured."""
        axis = self.axis
        motor_rad_s = self.reference[1] * axis.motor_per_joint
        return axis.error_rad - motor_rad_s * self.period_s  # the reference is the next one

    @property
    def integral_a(self) -> float:
        """What the board's integral gives: the rest of what it drives."""
        law, axis = self.law, self.axis
        behind_rad_s = (self.reference[1] - axis.velocity_rad_s) * axis.motor_per_joint
        given_a = law.iq_ff_a + self.reference[2] * axis.amperes_per_nm
        given_a += law.kp_a_per_rad * self.error_rad + law.kd_a_s_per_rad * behind_rad_s
        return axis.iq_mean_a - given_a

    @property
    def is_cut_off(self) -> bool:
        """Whether the current may be less than what the law asks for: then nothing can be told."""
        return abs(self.axis.iq_mean_a) >= self.axis.isat_a - _NEAR_LIMIT_A

    def carried_a(self, gains: Gains, ki_a_per_rad_s: float, *, is_moving: bool = False) -> float:
        """Return the feed-forward with which other gains hold the joint as the present ones do."""
        law = self.law
        carried_a = law.iq_ff_a
        if not is_moving:  # in motion the error is what moves it, not what holds it
            carried_a += (law.kp_a_per_rad - gains.kp_a_per_rad) * self.error_rad
        if law.ki_a_per_rad_s:
            carried_a += (1.0 - ki_a_per_rad_s / law.ki_a_per_rad_s) * self.integral_a
        return carried_a

    def free_a(self) -> float:
        """Return the same of a joint without gains: a current that drives it on does not hold."""
        axis, iq_ff_a = self.axis, self.law.iq_ff_a
        is_driving = iq_ff_a * axis.nm_per_a * axis.velocity_rad_s > 0.0
        return 0.0 if is_driving and abs(axis.velocity_rad_s) > _MOVING_RAD_S else iq_ff_a

    def may_grow(self, ki_a_per_rad_s: float) -> bool:
        """Whether a Ki that is in use may grow: its integral is multiplied with it."""
        growth = ki_a_per_rad_s / self.law.ki_a_per_rad_s
        if growth > KI_GROWTH_MAX or self.is_cut_off:
            return False
        most_a = CARRIED_SHARE * self.axis.current_max_a
        return abs(self.integral_a) * (growth - 1.0) <= max(most_a, abs(self.axis.iq_mean_a))

    def problem(self, gains: Gains, ki_a_per_rad_s: float, *, is_moving: bool) -> str:
        """Return why a joint that is led cannot be handed over now, in words; empty if it can."""
        axis, law = self.axis, self.law
        is_same = gains.kp_a_per_rad == law.kp_a_per_rad and ki_a_per_rad_s == law.ki_a_per_rad_s
        if is_same:
            return ""
        if self.is_cut_off:
            return (
                f"its current of {axis.iq_mean_a:.3g} A is at its limit of {axis.isat_a:.3g} A, so "
                "what holds it is not known; move it to where less hangs on it, then change Kp "
                "and Ki"
            )
        carried_a = self.carried_a(gains, ki_a_per_rad_s)
        stiffness_a_per_rad = gains.kp_a_per_rad * abs(axis.motor_per_joint)
        shift_a = abs(carried_a - law.iq_ff_a)
        may_be_loaded = is_moving and not axis.joint.is_on_bench
        if may_be_loaded and shift_a > SHIFT_MAX_RAD * stiffness_a_per_rad:
            return (
                "it is moving, and what that takes cannot be told from what holds it; bring it to "
                "rest with `mode hold`, then change Kp and Ki"
            )
        most_a = max(CARRIED_SHARE * axis.current_max_a, abs(axis.iq_mean_a) + _NEAR_LIMIT_A)
        if abs(carried_a) > most_a:
            return (
                f"at {axis.iq_mean_a:.3g} A it would take a feed-forward of {carried_a:.3g} A to "
                f"hold it, at most {most_a:.3g} A are given; move it to where less hangs on it, "
                "or disable it, enable it and set its gains before anything else"
            )
        return ""
