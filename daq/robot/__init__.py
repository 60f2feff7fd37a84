"""The robot description: one TOML file, one frozen value, shared by everyone.

One of the two contract packages that every other package may import. It needs only msgspec and
NumPy, and knows nothing of links, boards or wires.
"""

from daq.robot.bodies import DhRow, Inertia, JointDynamics, Link, LinkBounds, Placement
from daq.robot.description import (
    DrivenJoint,
    DrivenRobot,
    Estimation,
    Joint,
    JointLimits,
    PublishedParameters,
    Robot,
    Transmission,
    Workspace,
)
from daq.robot.driving import (
    Bench,
    BoardPort,
    Bus,
    Control,
    Drive,
    Friction,
    Gains,
    Motor,
    Safety,
    SpiPort,
    Timing,
)
from daq.robot.load import load_robot, robot_text, shipped_robots
from daq.robot.parse import parse_robot

__all__ = [
    "Bench",
    "BoardPort",
    "Bus",
    "Control",
    "DhRow",
    "Drive",
    "DrivenJoint",
    "DrivenRobot",
    "Estimation",
    "Friction",
    "Gains",
    "Inertia",
    "Joint",
    "JointDynamics",
    "JointLimits",
    "Link",
    "LinkBounds",
    "Motor",
    "Placement",
    "PublishedParameters",
    "Robot",
    "Safety",
    "SpiPort",
    "Timing",
    "Transmission",
    "Workspace",
    "load_robot",
    "parse_robot",
    "robot_text",
    "shipped_robots",
]
