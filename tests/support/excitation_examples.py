"""Arms for the tests of excitation."""

from __future__ import annotations

from typing import Any

import msgspec

from daq.robot import Robot, load_robot
from daq.robot.parse import build_robot

QUICK = 300
"""Evaluations of a search that need not be good."""


def laas4(**workspace: Any) -> Robot:
    """The shipped arm, perhaps with other surroundings."""
    robot = load_robot("laas4")
    return msgspec.structs.replace(
        robot, workspace=msgspec.structs.replace(robot.workspace, **workspace)
    )


def with_limits(robot: Robot, **limits: float) -> Robot:
    """The same arm with other limits on every joint."""
    joints = tuple(
        msgspec.structs.replace(joint, limits=msgspec.structs.replace(joint.limits, **limits))
        for joint in robot.joints
    )
    return msgspec.structs.replace(robot, joints=joints)


def seven_joints(*, has_links: bool = True) -> Robot:
    """An arm without boards whose shoulder and wrist axes meet, as those of many do."""
    half = 1.5707963267948966
    lengths = (0.28, 0.0, 0.41, 0.01, 0.31, 0.0, 0.26)
    masses = (0.7, 0.6, 0.6, 0.5, 0.4, 0.4, 0.3)
    joints = []
    for number, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        joint: dict[str, Any] = {
            "name": f"joint{number + 1}",
            "limits": {
                "position_min_rad": -2.5,
                "position_max_rad": 2.5,
                "velocity_max_rad_s": 2.0,
                "torque_max_nm": 40.0,
            },
            "dh": {"a_m": 0.0, "d_m": -length, "alpha_rad": half},
        }
        if has_links:
            second = mass * (length**2 / 3 + 0.004)
            joint["link"] = {
                "mass_kg": mass,
                "first_moment_kg_m": [0.01 * mass, -0.005 * mass, -mass * length / 2],
                "inertia_kg_m2": {
                    **{"xx": second, "yy": second, "zz": 0.005 * mass},
                    **{"xy": 0.0, "xz": 0.0, "yz": 0.0},
                },
            }
        joints.append(joint)
    data = {"schema": 1, "name": "seven", "description": "seven joints", "joints": joints}
    return build_robot(data, "seven.toml")
