"""How far a motor may be led before its position on the wire wraps.

Boards take the plain difference of reference and position: a reference that wraps a moment before
the rotor does asks for all the current there is, against the motion. So no reference with Kp or Ki
goes near the wrap. This is where "near" is stated, for all who plan, check and write references.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from daq.robot import DrivenJoint, DrivenRobot
from firmware_protocol.behaviour import Behaviour

CHECK_S = 0.06
"""How late a joint that leaves its reference is noticed: two checks of 50 Hz, and a late reply."""
BLEND_S = 0.1
"""Gains slew to new values in this time; until they are gone, the reference goes on as it was."""


@dataclass(frozen=True, slots=True)
class WireRange:
    """Three distances from the wire's zero to either side, at the motor.

    Attributes:
        wrap_rad: Positions wrap there.
        fence_rad: No reference goes further while there is Kp or Ki. A rotor that strays from its
            reference, as far as the following-error limit lets it, does not reach the wrap.
        reach_rad: No motion is planned further. One that is broken off at full speed, or overtaken
            by periods that were skipped, does not reach the fence.
    """

    wrap_rad: float
    fence_rad: float
    reach_rad: float


def wire_range(robot: DrivenRobot, joint: DrivenJoint, behaviour: Behaviour) -> WireRange:
    """Return how far a joint's motor may be led on a board that behaves so."""
    motor_rad_s = joint.limits.velocity_max_rad_s * joint.drive.gear_reduction
    strays_rad = robot.safety.following_error_max_rad * joint.drive.gear_reduction
    skipped_s = 1e-3 * max(port.command_timeout_ms for port in robot.boards)
    wrap_rad = behaviour.position_wrap_turns * math.tau
    fence_rad = wrap_rad - strays_rad - motor_rad_s * CHECK_S
    return WireRange(wrap_rad, fence_rad, fence_rad - motor_rad_s * (BLEND_S + skipped_s))
