"""The rigid-body model of a robot for Pinocchio. Only this module of the package needs it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from daq.robot.description import Joint, Robot
from daq.robot.geometry import joint_poses


def make_model(robot: Robot) -> pin.Model:
    """Return the chain of a robot: revolute joints about z, at `joint_poses`, named as the robot's.

    It has the robot's gravity and limits, but no friction and rotors. A link that is not known
    weighs nothing; a joint on the bench turns the inertia of its load.
    """
    model = pin.Model()
    model.name = robot.name
    model.gravity.linear = np.array(robot.gravity_m_s2)
    parent = 0
    for joint, pose in zip(robot.joints, joint_poses(robot), strict=True):
        limits = joint.limits
        parent = model.addJoint(
            parent,
            pin.JointModelRZ(),
            pin.SE3(pose),
            joint.name,
            np.array([limits.torque_max_nm]),
            np.array([limits.velocity_max_rad_s]),
            np.array([limits.position_min_rad]),
            np.array([limits.position_max_rad]),
        )
        model.appendBodyToJoint(parent, _inertia(joint), pin.SE3.Identity())
    return model


def _inertia(joint: Joint) -> pin.Inertia:
    link = joint.link
    if link is None:
        load_kg_m2 = joint.load_inertia_kg_m2 or 0.0
        return pin.Inertia(0.0, np.zeros(3), np.diag([0.0, 0.0, load_kg_m2]))
    about = link.inertia_kg_m2
    elements = (about.xx, about.xy, about.yy, about.xz, about.yz, about.zz)
    return pin.Inertia.FromDynamicParameters(
        np.array([link.mass_kg, *link.first_moment_kg_m, *elements])
    )
