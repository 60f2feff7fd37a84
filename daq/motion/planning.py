"""Makes motions that keep the robot file's limits.

What may be commanded is less than what stops the robot: `COMMANDED_SHARE` of the highest speed, and
positions a little inside their limits. Moves keep to the file's acceleration, or to one that
reaches the highest speed in `SPEED_UP_S` where that is less; a stop in front of a limit takes all
that the file allows, up to `HARD_STOP` times as much. Planning takes some tens of microseconds, so
the loop can do it between two cycles.

Beside its limits a joint has a reach: how far it can be led before its motor's position wraps on
the wire. It depends on where the motor was calibrated, so the robot file cannot state it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from daq.motion import quintic
from daq.motion.errors import MotionLimitError
from daq.motion.moves import MotionSequence, QuinticMove, SpeedChange, Standstill
from daq.motion.playback import Playback
from daq.robot.description import Joint

SPEED_UP_S = 0.25
"""Acceleration limit: in this time from rest to `velocity_max_rad_s`."""
HARD_STOP = 10.0
COMMANDED_SHARE = 0.9
"""Of the highest speed: the rest is for joints that overshoot, or are carried along by others."""
COMMANDED_MARGIN_RAD = 0.02
"""Inside the position limits, or a hundredth of the range where that is less."""
FADE_S = 0.5
"""Time in which a feed-forward torque comes and goes, at least."""
_SHORTEST_S = 0.05
"""Of any move and change of speed, however small: a few cycles would be a jolt."""
_GROWTH_MIN = 1.01
_DURATION_MAX_S = 600.0
_SLACK = 1.0 + 1e-9
# Of a quintic between two rests: peaks of speed and acceleration, for way and duration 1.
_REST_SPEED = 15.0 / 8.0
_REST_ACCELERATION = 10.0 / math.sqrt(3.0)


Reach = tuple[float, float]
"""How far down and up a joint can be led (rad)."""
UNBOUNDED: Reach = (-math.inf, math.inf)


def acceleration_max_rad_s2(joint: Joint) -> float:
    """Return the acceleration that planned moves of a joint keep to."""
    smooth_rad_s2 = joint.limits.velocity_max_rad_s / SPEED_UP_S
    return min(joint.limits.acceleration_max_rad_s2 or math.inf, smooth_rad_s2)


def hardest_rad_s2(joint: Joint) -> float:
    """Return the acceleration that nothing exceeds but the safe stop."""
    smooth_rad_s2 = joint.limits.velocity_max_rad_s / SPEED_UP_S
    return min(joint.limits.acceleration_max_rad_s2 or math.inf, HARD_STOP * smooth_rad_s2)


def speed_max_rad_s(joint: Joint) -> float:
    """Return the highest speed that may be commanded."""
    return COMMANDED_SHARE * joint.limits.velocity_max_rad_s


def position_range_rad(joint: Joint) -> tuple[float, float]:
    """Return the lowest and the highest position that may be commanded."""
    low, high = joint.limits.position_min_rad, joint.limits.position_max_rad
    margin_rad = min(COMMANDED_MARGIN_RAD, 0.01 * (high - low))
    return low + margin_rad, high - margin_rad


def braking_rad(joint: Joint, velocity_rad_s: float) -> float:
    """Return the way that a smooth stop from a speed takes."""
    return 0.75 * velocity_rad_s**2 / acceleration_max_rad_s2(joint)


def plan_move(
    joints: Sequence[Joint],
    start_q: Sequence[float],
    start_dq: Sequence[float],
    end_q: Sequence[float],
    end_dq: Sequence[float] | None = None,
    *,
    period_s: float,
    speed_fraction: float = 0.5,
    duration_s: float = 0.0,
    duration_min_s: float = 0.0,
    start_torque: Sequence[float] | None = None,
    end_torque: Sequence[float] | None = None,
    reaches: Sequence[Reach] | None = None,
    ranges: Sequence[Reach] | None = None,
) -> QuinticMove:
    """Return a smooth move of all joints together that keeps every limit all the way.

    Args:
        joints: Whose limits; one entry of the following for each.
        start_q: Where they are (rad). A joint outside its limits may only come back.
        start_dq: How fast they are (rad/s).
        end_q: Where they shall be.
        end_dq: How fast they shall be there; by default at rest.
        period_s: The loop's period.
        speed_fraction: How much of its highest speed a joint may use, `COMMANDED_SHARE` at most,
            unless it starts or ends faster.
        duration_s: How long it shall take; 0 for as short as the limits allow.
        duration_min_s: How long it shall take at least, in that case.
        start_torque: Feed-forward torque at the start (N·m).
        end_torque: Feed-forward torque at the end.
        reaches: How far the joints can be led; one beyond it may only come back.
        ranges: Between which positions they may be commanded, where that is not by their limits.

    Raises:
        MotionLimitError: The target or the way there is outside a limit, or the duration too short.
    """
    end_dq = end_dq or (0.0,) * len(joints)
    reaches = reaches or [UNBOUNDED] * len(joints)
    ranges = ranges or list(map(position_range_rad, joints))
    ends = zip(joints, start_q, start_dq, end_q, end_dq, strict=True)
    plans = [
        _JointPlan(*each, reach=reach, allowed=allowed, fraction=speed_fraction)
        for each, reach, allowed in zip(ends, reaches, ranges, strict=True)
    ]
    if duration_s:
        cycles = max(1, math.ceil(duration_s / period_s - 1e-6))
    else:
        cycles = _shortest(plans, duration_min_s, period_s)
    for plan in plans:
        plan.check(cycles * period_s)
        plan.check_way(cycles * period_s)
    return QuinticMove(
        start_q,
        start_dq,
        end_q,
        end_dq,
        cycles=cycles,
        period_s=period_s,
        start_torque=start_torque,
        end_torque=end_torque,
    )


def plan_speed(
    joints: Sequence[Joint],
    start_q: Sequence[float],
    start_dq: Sequence[float],
    target_dq: Sequence[float],
    *,
    period_s: float,
    reaches: Sequence[Reach] | None = None,
    gentleness: float = 1.0,
) -> SpeedChange:
    """Return a smooth change to constant speeds, which then last; arguments as for `plan_move`.

    It is endless unless all speeds asked for are zero. Of positions, only those are checked at
    which a joint would come to rest if it were stopped at once: the caller watches them. The change
    takes `gentleness` times as long as the acceleration limits want.

    Raises:
        MotionLimitError: A speed is beyond the limit, or there is no room to brake from it.
    """
    ramps_s = []
    reaches = reaches or [UNBOUNDED] * len(joints)
    parts = zip(joints, start_q, start_dq, target_dq, reaches, strict=True)
    for joint, q, dq, target, reach in parts:
        check_speed(joint, target)
        ramp_s = gentleness * _ramp_s(joint, target - dq)
        ramps_s.append(ramp_s)
        # Where it would turn back at the latest, and where it would be stopped at once.
        turns_rad = q + 0.5 * dq * ramp_s
        stops_rad = q + 0.5 * (dq + target) * ramp_s + 0.5 * target * _ramp_s(joint, target)
        for reached_rad in (turns_rad, stops_rad):
            _check_reach(joint.name, q, reached_rad, reach)
    return SpeedChange(start_q, start_dq, target_dq, ramp_s=ramps_s, period_s=period_s)


def speed_with_room(
    joint: Joint,
    q: float,
    dq: float,
    target_dq: float,
    allowed: Reach,
    *,
    late_s: float,
    gentleness: float = 1.0,
) -> float:
    """Return the speed nearest to the wanted one from which a joint can still stop in its range.

    Args:
        joint: Whose acceleration.
        q: Where it is, or is led to, whichever is further (rad).
        dq: How fast it is led.
        target_dq: How fast it shall be.
        allowed: Between which positions it shall stay.
        late_s: How long it goes on before it is stopped.
        gentleness: How many times as long changes take as the acceleration limit wants.
    """

    def has_room(speed: float) -> bool:
        rests_rad = q + 0.5 * (dq + speed) * gentleness * _ramp_s(joint, speed - dq)
        rests_rad += speed * (late_s + 0.5 * gentleness * _ramp_s(joint, speed))
        return allowed[0] <= rests_rad <= allowed[1]

    if has_room(target_dq):
        return target_dq
    if not has_room(0.0):
        return 0.0
    slow, fast = 0.0, target_dq
    for _ in range(12):
        middle = 0.5 * (slow + fast)
        slow, fast = (middle, fast) if has_room(middle) else (slow, middle)
    return slow


def stop_move(
    joints: Sequence[Joint],
    q: Sequence[float],
    dq: Sequence[float],
    *,
    period_s: float,
    start_torque: Sequence[float] | None = None,
    reaches: Sequence[Reach] | None = None,
    gentleness: float = 1.0,
) -> SpeedChange:
    """Bring every joint smoothly to rest, inside its position limits if that is possible at all.

    Never refuses: a stop must always be possible. A joint that comes too fast towards a limit
    brakes harder, as hard as its file allows; what is left then is for the safe stop. A
    feed-forward torque at the start fades out. Arguments as for `plan_move` and `plan_speed`.
    """
    ramps_s = []
    reaches = reaches or [UNBOUNDED] * len(joints)
    for joint, position, speed, (low, high) in zip(joints, q, dq, reaches, strict=True):
        limits, shortest_s = joint.limits, _ramp_s(joint, speed)
        ramp_s = gentleness * shortest_s
        if speed > 0:
            room = min(limits.position_max_rad, high) - position
        else:
            room = position - max(limits.position_min_rad, low)
        if speed and abs(speed) * ramp_s > 2.0 * room:
            hardest = hardest_rad_s2(joint) / acceleration_max_rad_s2(joint)
            ramp_s = max(2.0 * room / abs(speed), shortest_s / hardest, period_s)
        ramps_s.append(ramp_s)
    at_rest = (0.0,) * len(joints)
    return SpeedChange(
        q,
        dq,
        at_rest,
        ramp_s=ramps_s,
        period_s=period_s,
        start_torque=start_torque,
        fade_s=FADE_S,
    )


def plan_playback(
    joints: Sequence[Joint],
    start_q: Sequence[float],
    start_dq: Sequence[float],
    playback: Playback,
    *,
    period_s: float,
    speed_fraction: float = 0.5,
    start_torque: Sequence[float] | None = None,
    reaches: Sequence[Reach] | None = None,
) -> MotionSequence:
    """Return a whole playback: approach (0), trajectory (1), stop (2) and standstill (3).

    Its rows have been checked; `speed_fraction` is of the approach. Arguments as for `plan_move`.

    Raises:
        MotionLimitError: The first row cannot be reached inside the limits.
    """
    count = len(joints)
    first, last = playback.row(0), playback.end_row
    approach = plan_move(
        joints,
        start_q,
        start_dq,
        first[:count],
        first[count : 2 * count],
        period_s=period_s,
        speed_fraction=speed_fraction,
        duration_min_s=FADE_S if any(first[2 * count :]) or any(start_torque or ()) else 0.0,
        start_torque=start_torque,
        end_torque=first[2 * count :],
        reaches=reaches,
    )
    stop = stop_move(
        joints,
        last[:count],
        last[count : 2 * count],
        period_s=period_s,
        start_torque=last[2 * count :],
        reaches=reaches,
    )
    at_rest = stop.row(stop.cycles or 0)[:count]
    for joint, end_q in zip(joints, at_rest, strict=True):
        low, high = position_range_rad(joint)
        if not low <= end_q <= high:
            limit = low if end_q < low else high
            raise MotionLimitError(
                joint.name,
                f"the last row is too fast: it would stop at {end_q:.4g} rad, limit {limit:.4g}",
                value=end_q,
                limit=limit,
                code="no-room-to-stop",
            )
    stay = Standstill(at_rest)
    return MotionSequence(approach, playback, stop, stay)


def check_speed(joint: Joint, speed_rad_s: float) -> None:
    """Check that a joint may be commanded to have a speed.

    Raises:
        MotionLimitError: It may not.
    """
    limit = speed_max_rad_s(joint)
    if not abs(speed_rad_s) <= limit * _SLACK:
        raise MotionLimitError(
            joint.name,
            f"a speed of {speed_rad_s:.4g} rad/s was asked for, at most {limit:.4g} rad/s may be "
            f"({COMMANDED_SHARE:.0%} of its limit)",
            value=speed_rad_s,
            limit=limit,
            code="speed-limit",
        )


def check_reach(name: str, position_rad: float, reach: Reach) -> None:
    """Check that a joint can be led to a position.

    Raises:
        MotionLimitError: It cannot, with the code `wrap`.
    """
    low, high = reach
    if not low - 1e-12 <= position_rad <= high + 1e-12:
        raise MotionLimitError(
            name,
            f"it would be led to {position_rad:.4g} rad, its reach is {low:.4g} to {high:.4g} rad:"
            " further on its motor's position wraps on the wire, and the motor would run away;"
            " drive it back first, or disable it and enable it near the middle of its way",
            value=position_rad,
            limit=low if position_rad < low else high,
            code="wrap",
        )


def _check_reach(name: str, start_rad: float, position_rad: float, reach: Reach) -> None:
    """Check the same of a motion: it may begin beyond the reach, and come back."""
    low, high = reach
    check_reach(name, position_rad, (min(low, start_rad), max(high, start_rad)))


def _ramp_s(joint: Joint, change_rad_s: float) -> float:
    # The speed's curve 3s² - 2s³ is 1.5 times as steep in its middle as on average.
    return max(1.5 * abs(change_rad_s) / acceleration_max_rad_s2(joint), _SHORTEST_S)


class _JointPlan:
    """One joint's part of a move of yet unknown duration."""

    __slots__ = (
        "_high",
        "_low",
        "_reach",
        "_way",
        "acceleration",
        "dq",
        "end_dq",
        "name",
        "q",
        "speed",
    )

    def __init__(
        self,
        joint: Joint,
        q: float,
        dq: float,
        end_q: float,
        end_dq: float,
        *,
        reach: Reach,
        allowed: Reach,
        fraction: float,
    ) -> None:
        limits = joint.limits
        self.name, self.q, self.dq, self.end_dq = joint.name, q, dq, end_dq
        self._way = end_q - q
        (self._low, self._high), self._reach = allowed, reach
        usual_rad_s = min(fraction, COMMANDED_SHARE) * limits.velocity_max_rad_s
        self.speed = max(usual_rad_s, abs(dq), abs(end_dq))
        self.acceleration = acceleration_max_rad_s2(joint)
        speeds = (
            ("starts", dq, limits.velocity_max_rad_s),
            ("ends", end_dq, speed_max_rad_s(joint)),
        )
        for what, value, limit in speeds:
            if not abs(value) <= limit * _SLACK:
                message = f"the move {what} at {value:.4g} rad/s, limit {limit:.4g} rad/s"
                raise MotionLimitError(
                    self.name, message, value=value, limit=limit, code="speed-limit"
                )
        self._check_position(end_q, "the target is")
        self._low, self._high = min(self._low, q), max(self._high, q)

    @property
    def shortest_s(self) -> float:
        """Lower bound of the duration; exact between two rests."""
        way = abs(self._way)
        if not self.dq and not self.end_dq:
            by_acceleration = math.sqrt(_REST_ACCELERATION * way / self.acceleration)
            return max(_REST_SPEED * way / self.speed, by_acceleration)
        change = abs(self.end_dq - self.dq)
        return max(way / self.speed, 1.5 * change / self.acceleration)

    def shortfall(self, duration_s: float) -> float:
        """Estimate by what factor the duration is too short; 1 or less if it is long enough."""
        speed, acceleration = self._peaks(duration_s)
        return max(speed / self.speed, math.sqrt(acceleration / self.acceleration)) / _SLACK

    def check(self, duration_s: float) -> None:
        """Check that speed and acceleration stay inside their limits."""
        limits = ((self.speed, "rad/s"), (self.acceleration, "rad/s²"))
        for value, (limit, unit) in zip(self._peaks(duration_s), limits, strict=True):
            if not value <= limit * _SLACK:
                message = f"a move within {duration_s:.4g} s needs {value:.4g} {unit}"
                message += f", limit {limit:.4g} {unit}; give it more time"
                raise MotionLimitError(
                    self.name, message, value=value, limit=limit, code="too-short"
                )

    def _peaks(self, duration_s: float) -> tuple[float, float]:
        ends = (self._way, duration_s * self.dq, duration_s * self.end_dq)
        speed, acceleration = quintic.peak_speed(*ends), quintic.peak_acceleration(*ends)
        return speed / duration_s, acceleration / duration_s**2

    def check_way(self, duration_s: float) -> None:
        """Check that the position stays inside its limits; long moves from speed may leave them."""
        if self.dq or self.end_dq:
            ends = (self._way, duration_s * self.dq, duration_s * self.end_dq)
            for reached in quintic.range_of(*ends):
                self._check_position(self.q + reached, f"a move within {duration_s:.4g} s reaches")

    def _check_position(self, value: float, what: str) -> None:
        if not self._low - 1e-12 <= value <= self._high + 1e-12:
            limit = self._low if value < self._low else self._high
            message = f"{what} {value:.4g} rad, limit {limit:.4g} rad"
            raise MotionLimitError(
                self.name, message, value=value, limit=limit, code="position-limit"
            )
        _check_reach(self.name, self.q, value, self._reach)


def _shortest(plans: list[_JointPlan], least_s: float, period_s: float) -> int:
    """Return about the fewest cycles that keep the limits of speed and acceleration."""
    duration_s = max(least_s, _SHORTEST_S, *(plan.shortest_s for plan in plans))
    while True:
        cycles = max(1, math.ceil(duration_s / period_s - 1e-9))
        duration_s = cycles * period_s
        shortfall = max(plan.shortfall(duration_s) for plan in plans)
        if shortfall <= 1.0 or duration_s > _DURATION_MAX_S:
            return cycles
        duration_s *= max(shortfall, _GROWTH_MIN)
