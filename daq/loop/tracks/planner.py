"""Plans what single joints are asked to do, inside the limits of the robot file and its motors.

Where the model of the robot and its posture are known, a move takes as long as its motors need;
else only speed, acceleration and the current limit count. Until a joint is homed it may be jogged,
slowly and not far from where it was enabled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from daq.loop.tracks.track import Track
from daq.motion.errors import MotionLimitError
from daq.motion.moves import Motion, QuinticMove, SpeedChange
from daq.motion.planning import (
    acceleration_max_rad_s2,
    check_reach,
    check_speed,
    plan_move,
    plan_speed,
    position_range_rad,
    speed_with_room,
    stop_move,
)
from daq.motion.playback import Playback
from daq.motion.torque_check import State, TorqueCheck
from daq.recording.states import DRIVEN_MODES, Mode

JOG_RAD = 0.35
JOG_RAD_S = 0.3
"""Until a joint is homed it goes no further than this from where it was enabled, and no faster."""
_SPEED_NEAR = 0.95
"""Of the speed limit: no joint shall swing beyond it."""
_GENTLEST = 8.0
"""A weak motor slows down so many times as slowly as its acceleration limit says, at most."""
_LATE_S = 0.08
"""How long a joint may go on at a constant speed before it is stopped in front of a limit."""


class Planner:
    """Makes the motions of joints; changes nothing.

    Attributes:
        torques: Looks whether the motors are strong enough; None where that is not known.
    """

    def __init__(
        self, tracks: Sequence[Track], torques: TorqueCheck | None, *, period_s: float
    ) -> None:
        self._tracks = tracks
        self._period_s = period_s
        self.torques = torques

    def gentleness(self, track: Track) -> float:
        """Return how many times as long a change of speed takes where the motor is weak."""
        if self.torques is None:
            return 1.0
        slowing_rad_s2 = self.torques.slowing_rad_s2(track.axis.number)
        wanted_rad_s2 = acceleration_max_rad_s2(track.axis.joint)
        return min(max(wanted_rad_s2 / max(slowing_rad_s2, 1e-3), 1.0), _GENTLEST)

    def stop(self, track: Track) -> Motion:
        """Plan to bring a joint to rest, harder where its range or its wire's ends.

        Raises:
            MotionLimitError: It would come to rest where it cannot be held.
        """
        joint, fence, (q, dq, torque) = track.axis.joint, track.axis.fence_rad, track.present()
        check_reach(joint.name, q, fence)
        motion = stop_move(
            [joint],
            [q],
            [dq],
            period_s=self._period_s,
            start_torque=[torque],
            reaches=[fence],
            gentleness=self.gentleness(track),
        )
        check_reach(joint.name, motion.row(motion.cycles or 0)[0], fence)
        return motion

    def moves(
        self, tracks: Sequence[Track], targets_rad: Sequence[float], duration_s: float
    ) -> list[QuinticMove]:
        """Plan moves to positions that begin together; each takes the time that it needs.

        Raises:
            MotionLimitError: A target or the way there is beyond a limit.
        """
        wanted = list(zip(tracks, targets_rad, strict=True))
        plans = [self._move(*each, duration_s, 1.0) for each in wanted]
        stretch = self._stretch(tracks, plans)
        if stretch > 1.0 and duration_s:
            name = tracks[0].axis.joint.name
            raise MotionLimitError(
                name,
                f"a move within {duration_s:.4g} s takes more torque than the motors give; "
                f"{stretch * duration_s:.3g} s are enough",
                value=duration_s,
                limit=stretch * duration_s,
                code="too-short",
            )
        return [self._move(*each, 0.0, stretch) for each in wanted] if stretch > 1.0 else plans

    def speeds(
        self, tracks: Sequence[Track], targets_rad_s: Sequence[float]
    ) -> list[tuple[float, Motion]]:
        """Plan changes to constant speeds, less than asked for where a limit is too near.

        Returns:
            The speed that each joint will have, and the way there.

        Raises:
            MotionLimitError: A speed is beyond the limit.
        """
        slowed = [self._slowed(*each) for each in zip(tracks, targets_rad_s, strict=True)]
        plans: list[Motion] = []
        gentleness = 1.0
        for _ in range(2):
            plans = [
                self.stop(track) if wanted and not speed else self._speed(track, speed, gentleness)
                for track, speed, wanted in zip(tracks, slowed, targets_rad_s, strict=True)
            ]
            stretch = self._stretch(tracks, plans)
            if stretch <= 1.0:
                break
            gentleness = stretch**2
        return list(zip(slowed, plans, strict=True))

    def check_playback(self, playback: Playback) -> None:
        """Check that the motors are strong enough for a trajectory.

        Raises:
            MotionLimitError: One is not.
        """
        if self.torques is not None:
            self.torques.check_playback(playback)

    # --- one joint --------------------------------------------------------------------------------

    def _move(
        self, track: Track, target_rad: float, duration_s: float, stretch: float
    ) -> QuinticMove:
        axis, (q, dq, torque) = track.axis, track.start()
        joint = axis.joint
        check_reach(joint.name, q, axis.fence_rad)
        fraction = 0.5
        if not axis.is_homed:
            fraction = min(fraction, JOG_RAD_S / joint.limits.velocity_max_rad_s)

        def plan(least_s: float) -> QuinticMove:
            return plan_move(
                [joint],
                [q],
                [dq],
                [target_rad],
                period_s=self._period_s,
                speed_fraction=fraction,
                duration_s=duration_s,
                duration_min_s=least_s,
                start_torque=[torque],
                reaches=[axis.reach_rad],
                ranges=[_range_rad(track)],
            )

        shortest = plan(0.0)
        stretch = max(stretch, _gentleness(track, target_rad))
        if stretch <= 1.0 or duration_s:
            return shortest
        return plan(stretch * (shortest.cycles or 1) * self._period_s)

    def _slowed(self, track: Track, target_rad_s: float) -> float:
        """Return the speed nearest to a wanted one from which there is room to stop."""
        axis, (q, dq, _) = track.axis, track.present()
        check_speed(axis.joint, target_rad_s)
        if track.is_kept:
            return 0.0
        # The joint may be ahead of its reference.
        furthest = max if target_rad_s > 0.0 else min
        q = furthest(q, axis.position_rad)
        low, high = _range_rad(track)
        gentleness = self.gentleness(track)
        swing_rad = track.overshoot_rad(acceleration_max_rad_s2(axis.joint) / gentleness)
        allowed = low + swing_rad, high - swing_rad
        return speed_with_room(
            axis.joint, q, dq, target_rad_s, allowed, late_s=_LATE_S, gentleness=gentleness
        )

    def _speed(self, track: Track, speed_rad_s: float, gentleness: float) -> SpeedChange:
        axis, (q, dq, _) = track.axis, track.present()
        check_reach(axis.joint.name, q, axis.fence_rad)
        spare_rad_s = _SPEED_NEAR * axis.speed_max_rad_s - abs(speed_rad_s)
        sway_rad_s = track.overshoot_rad_s(acceleration_max_rad_s2(axis.joint))
        gentleness = max(gentleness, self.gentleness(track), sway_rad_s / max(spare_rad_s, 1e-3))
        return plan_speed(
            [axis.joint],
            [q],
            [dq],
            [speed_rad_s],
            period_s=self._period_s,
            reaches=[axis.reach_rad],
            gentleness=gentleness,
        )

    # --- all joints -------------------------------------------------------------------------------

    def _stretch(self, tracks: Sequence[Track], plans: Sequence[Motion]) -> float:
        """Return how many times as long plans must take for the motors' sake."""
        if self.torques is None or not all(track.axis.is_homed for track in self._tracks):
            return 1.0
        planned = {track.axis.number: plan for track, plan in zip(tracks, plans, strict=True)}
        cycles = max(map(_cycles, plans), default=0)

        def state(k: int) -> State:
            positions, speeds = [], []
            for number, track in enumerate(self._tracks):
                plan = planned.get(number)
                q, dq, _ = track.foreseen(k) if plan is None else plan.row(k)
                positions.append(q)
                speeds.append(dq)
            return positions, speeds

        return self.torques.stretch(state, cycles) if cycles else 1.0


def _range_rad(track: Track) -> tuple[float, float]:
    """Return between which positions a joint may be commanded now."""
    axis = track.axis
    if axis.is_homed:
        return position_range_rad(axis.joint)
    return axis.enabled_at_rad - JOG_RAD, axis.enabled_at_rad + JOG_RAD


def _cycles(plan: Motion) -> int:
    """Return how long a motion changes, if it does not end."""
    return plan.changing_cycles if isinstance(plan, SpeedChange) else plan.cycles or 0


def _gentleness(track: Track, target_rad: float) -> float:
    """Return how many times as long a move must take to swing over no limit at its end."""
    axis = track.axis
    room_rad = min(target_rad - axis.low_rad, axis.high_rad - target_rad)
    swing_rad = track.overshoot_rad(acceleration_max_rad_s2(axis.joint))
    return math.sqrt(swing_rad / max(0.7 * room_rad, 1e-3))


def jog_problem(track: Track, mode: Mode, target: float) -> str:
    """Return what a joint that is not homed may not do, in words; empty if it may."""
    if mode in DRIVEN_MODES:
        return "it may be held, or jogged slowly"
    if mode is Mode.VELOCITY and abs(target) > JOG_RAD_S:
        return f"{target:.4g} rad/s, at most {JOG_RAD_S:g} rad/s"
    low, high = _range_rad(track)
    if mode is Mode.POSITION and not low <= target <= high:
        return f"to {target:.4g} rad, from {low:.4g} to {high:.4g} rad"
    return ""
