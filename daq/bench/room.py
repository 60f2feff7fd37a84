"""Room for a plateau on the wire: a free joint turns without end, its motor's position wraps. Pure.

No plateau crosses the wrap: each must fit between the two ends (`settle_s`), and is begun far
enough back (`way_rad`).
"""

from __future__ import annotations

import math

from daq.boards.wire_range import CHECK_S, WireRange
from daq.errors import ConfigError
from daq.motion.planning import Reach, braking_rad
from daq.robot import DrivenJoint

_SETTLE_MIN_S = 1.5
"""A plateau that has no room to settle for so long is not worth driving."""
_APPROACH_S = 0.1
"""What driving back may miss its target by, at the joint's highest speed."""


def way_rad(joint: DrivenJoint, joint_velocity_rad_s: float, duration_s: float) -> float:
    """Return the way that a joint needs in front of it to keep a speed for so long, and stop."""
    speed_rad_s = abs(joint_velocity_rad_s)
    return speed_rad_s * (duration_s + 2.0 * CHECK_S) + braking_rad(joint, speed_rad_s)


def way_ahead_rad(joint: DrivenJoint, joint_velocity_rad_s: float, duration_s: float) -> float:
    """Return the same with its sign."""
    return math.copysign(way_rad(joint, joint_velocity_rad_s, duration_s), joint_velocity_rad_s)


def has_room(
    joint: DrivenJoint,
    joint_velocity_rad_s: float,
    duration_s: float,
    here_rad: float,
    reach: Reach,
) -> bool:
    """Whether a joint that is here can keep a speed for so long, and stop, within its reach."""
    low_rad, high_rad = reach
    end_rad = here_rad + way_ahead_rad(joint, joint_velocity_rad_s, duration_s)
    return low_rad <= end_rad <= high_rad


def back_to_rad(needed_rad: float, joint: DrivenJoint, reach: Reach) -> float:
    """Return whereto a joint is driven back for a way, with its sign: no further than it must."""
    low_rad, high_rad = reach
    spare_rad = high_rad - low_rad - abs(needed_rad)
    margin_rad = min(0.5 * spare_rad, 2.0 * _APPROACH_S * joint.limits.velocity_max_rad_s)
    if needed_rad > 0.0:
        return high_rad - needed_rad - margin_rad
    return low_rad - needed_rad + margin_rad


def settle_s(
    joint: DrivenJoint,
    joint_velocity_rad_s: float,
    dwell_s: float,
    *,
    settle_max_s: float,
    room_rad: float,
) -> float:
    """Return how long a free joint may take to settle, if its whole way is `room_rad` long."""
    room_rad -= _APPROACH_S * joint.limits.velocity_max_rad_s
    spare_rad = room_rad - way_rad(joint, joint_velocity_rad_s, dwell_s)
    return min(settle_max_s, spare_rad / abs(joint_velocity_rad_s))


def check_room(
    joint: DrivenJoint,
    joint_velocity_rad_s: float,
    dwell_s: float,
    settle_max_s: float,
    wire: WireRange,
) -> None:
    """Check that a plateau ends before the motor's position wraps on the wire.

    Raises:
        ConfigError: It does not, from wherever it is begun.
    """
    room_rad = 2.0 * wire.reach_rad / joint.drive.gear_reduction
    if room_rad <= 0.0:
        problem = (
            "there is no room at any speed before positions wrap on the wire: lower the joint's "
            "velocity_max_rad_s or [safety] following_error_max_rad"
        )
        raise ConfigError(f"bench of joint {joint.name}", [problem], code="wrap")
    settle_min_s = min(settle_max_s, _SETTLE_MIN_S)
    speed_rad_s = abs(joint_velocity_rad_s)
    left_s = settle_s(joint, speed_rad_s, dwell_s, settle_max_s=math.inf, room_rad=room_rad)
    if left_s < settle_min_s:
        turns = joint.drive.gear_reduction * room_rad / math.tau
        problem = (
            f"--dwell, --speed-max: {dwell_s:.3g} s at {speed_rad_s:.4g} rad/s and "
            f"{settle_min_s:g} s to settle do not fit into the {turns:.0f} motor turns that may"
            " be driven before positions wrap on the wire; measure at most "
            f"{dwell_s + left_s - settle_min_s:.3g} s there, or drive slower"
        )
        raise ConfigError(f"bench of joint {joint.name}", [problem], code="wrap")
