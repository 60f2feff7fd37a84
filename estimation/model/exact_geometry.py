"""The arm that a robot file means, where its numbers were rounded.

`1.5708` makes axes that are parallel, or upright, miss that by 4 µrad. Nobody can measure what such
a tilt would add to the torque, but to a rank it counts as much as a link. A threshold cannot tell
it from a short link, for both are small numbers. So angles near a multiple of 15° are that
multiple, offsets of nearly 0 are 0, and then what depends does so to 1e-15 and what does not is far
above.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from daq.robot import Joint, Placement, Robot
from daq.robot.geometry import joint_poses, rotation, rpy_of
from estimation.types import FloatArray

ANGLE_RAD = 2e-3
"""An angle this near to a multiple of 15° is meant to be it: 3.14 is 1.6e-3 off. Φ₁β differs from
Φθ by about as much, in rad, as the angles do: 4e-6 of the torque for 1.5708, 4e-4 for 1.57."""
LENGTH = 1e-4
"""An offset below this share of the arm's length is meant to be 0: 0.1 mm of 1 m."""
_STEP_RAD = math.pi / 12


def meant_robot(robot: Robot) -> Robot:
    """Return the arm with its axes exactly where a robot file with rounded numbers means them.

    With placements and gravity only, its frames those of `robot` up to `ANGLE_RAD` and `LENGTH`.
    """
    poses = joint_poses(robot)
    offsets = np.array([pose[:3, 3] for pose in poses])
    # What joint 1 stands on does not matter, but how its axis stands to gravity does.
    gravity = poses[0][:3, :3].T @ np.array(robot.gravity_m_s2)
    gravity[np.abs(gravity) < ANGLE_RAD * np.linalg.norm(gravity)] = 0.0
    length_m = float(np.linalg.norm(offsets[1:], axis=1).sum())
    offsets[np.abs(offsets) < LENGTH * length_m] = 0.0
    turns = [np.eye(3), *(_meant_turn(pose[:3, :3]) for pose in poses[1:])]
    joints = tuple(
        Joint(
            name=joint.name,
            limits=joint.limits,
            placement=Placement(xyz_m=tuple(offset.tolist()), rpy_rad=rpy_of(turn)),
        )
        for joint, offset, turn in zip(robot.joints, offsets, turns, strict=True)
    )
    return msgspec.structs.replace(robot, joints=joints, gravity_m_s2=tuple(gravity.tolist()))


def _meant_turn(turn: FloatArray) -> FloatArray:
    """Return a rotation whose angles are multiples of 15° where they are nearly so.

    The angles are those of Rz·Rx·Rz, of which the second is the one between this axis and the one
    before: where these are parallel, only the sum of the others counts.
    """
    tilt = _meant_angle(math.atan2(math.hypot(turn[0, 2], turn[1, 2]), turn[2, 2]))
    if math.sin(tilt) < ANGLE_RAD:
        sense = math.copysign(1.0, math.cos(tilt))
        before, after = math.atan2(turn[1, 0], turn[0, 0]), 0.0
        tilt = 0.0 if sense > 0 else math.pi
    else:
        before = math.atan2(turn[0, 2], -turn[1, 2])
        after = math.atan2(turn[2, 0], turn[2, 1])
    turned = rotation(2, _meant_angle(before)) @ rotation(0, tilt)
    return (turned @ rotation(2, _meant_angle(after)))[:3, :3]


def _meant_angle(angle_rad: float) -> float:
    nearest = _STEP_RAD * round(angle_rad / _STEP_RAD)
    return nearest if abs(angle_rad - nearest) < ANGLE_RAD else angle_rad
