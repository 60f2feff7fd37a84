"""How hard a board's own law may brake a joint: Kd towards zero speed. Pure.

The board low-passes the speed before its law sees it. With an inertia M at the joint that makes

    M·dv/dt = −D·u,   du/dt = ω_f·(v − u),   D = K_i·N·η · N·Kd

which is critically damped at D = M·ω_f/4: the hardest braking that does not swing about rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from daq.control.torque_model import TorqueModel
from daq.robot import DrivenJoint, DrivenRobot

_CRITICAL = 0.25
_ROTOR_ALONE = 1.5
"""The same share of D for the rotor alone, which is all that turns inside a gear's play: there it
may swing a little, but not for long (a damping ratio of 0.4)."""
_UNKNOWN_LINKS = 5.0
"""An arm's links turn about so many times what the rotors do, where nothing is known of them."""
_LEAST_KG_M2 = 1e-3
"""At a joint, where the robot file says nothing of its rotor either: 1e-6 behind a gear of 31."""
_POSTURES = 64
_SEED_STEP = 0.618


def damping_nm_s_per_rad(joint: DrivenJoint, *, inertia_kg_m2: float, filter_hz: float) -> float:
    """Return D, the hardest damping at a joint that turns an inertia."""
    links = _CRITICAL * math.tau * filter_hz * inertia_kg_m2
    return min(links, rotor_damping_nm_s_per_rad(joint, filter_hz=filter_hz))


def rotor_damping_nm_s_per_rad(joint: DrivenJoint, *, filter_hz: float) -> float:
    """Return the hardest damping of a joint whose rotor turns alone, inside its gear's play."""
    rotor_kg_m2 = max(joint.drive.joint_inertia_kg_m2, 1e-9)
    return _ROTOR_ALONE * math.tau * filter_hz * rotor_kg_m2


def least_inertias_kg_m2(robot: DrivenRobot, model: TorqueModel | None) -> list[float]:
    """Return the least that each joint turns in any posture; its rotor where nothing is known."""
    rotors = _rotors_kg_m2(robot)
    if model is None:
        return rotors
    least = [math.inf] * len(rotors)
    for q_rad in _postures(robot):
        least = list(map(min, least, model.free_inertia_kg_m2(q_rad)))
    return list(map(max, least, rotors))


def greatest_inertias_kg_m2(robot: DrivenRobot, model: TorqueModel | None) -> list[float]:
    """Return the most that each joint turns in any posture, or a guess from its rotor."""
    rotors = _rotors_kg_m2(robot)
    if model is None:
        return [_UNKNOWN_LINKS * rotor for rotor in rotors]
    greatest = rotors
    for q_rad in _postures(robot):
        greatest = list(map(max, greatest, model.inertia_kg_m2(q_rad)))
    return greatest


def _rotors_kg_m2(robot: DrivenRobot) -> list[float]:
    return [joint.drive.joint_inertia_kg_m2 or _LEAST_KG_M2 for joint in robot.joints]


def greatest_gravities_nm(robot: DrivenRobot, model: TorqueModel) -> list[float]:
    """Return the most that gravity pulls at each joint in any posture."""
    return _greatest(model.gravity_nm(q_rad) for q_rad in _postures(robot))


def greatest_payloads_nm(robot: DrivenRobot, model: TorqueModel) -> list[float]:
    """Return the most that a payload nobody has told of adds to that."""
    return _greatest(model.payload_nm(q_rad) for q_rad in _postures(robot))


def _greatest(torques_nm: Iterable[list[float]]) -> list[float]:
    return [max(map(abs, of_joint)) for of_joint in zip(*torques_nm, strict=True)]


def _postures(robot: DrivenRobot) -> Iterator[list[float]]:
    """Yield postures that are evenly spread, the same ones every time."""
    for k in range(_POSTURES):
        yield [math.tau * ((k * _SEED_STEP * (n + 1)) % 1.0) for n in range(len(robot.joints))]
