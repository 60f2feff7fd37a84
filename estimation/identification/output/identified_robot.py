"""The identified parameters as a robot again: links, rotors and friction, for other programs."""

from __future__ import annotations

from collections.abc import Sequence

from daq.robot import Friction, Inertia, Joint, JointDynamics, Link, Robot
from daq.robot.editing.edit import IDENTIFIED, with_friction, with_links
from estimation.model.parameters import DYNAMICS, Parameters

_DIGITS = 12
"""Enough that a link at the edge of what is physically consistent stays inside."""
_BEYOND = 1e-6
"""Of a bounded value: what is beyond its bound by less is at it."""


def identified_text(
    text: str, robot: Robot, parameters: Parameters, theta: Sequence[float], *, source: str
) -> str:
    """Return a robot file with the identified numbers in it, and everything else as it was.

    Args:
        text: The robot file that the recordings carry.
        robot: What it describes.
        parameters: Of the model.
        theta: Identified, in their order.
        source: Name of the text in an error.

    Returns:
        The text. Where a joint has a drive, friction and rotor are written there, viscous at the
        motor and Coulomb at the joint; everything else, and all of a joint without a drive, goes
        to `[joints.dynamics]`. Comments beside numbers that change become "identified".

    Raises:
        ConfigError: The links break the file's own bounds, or are not physically consistent.
    """
    links = {
        joint.name: _link(joint, theta[parameters.link(index)])
        for index, joint in enumerate(robot.joints)
    }
    rotors, frictions, dynamics = {}, {}, {}
    inertias = parameters.of_kind("drive_inertia")
    is_basic = set(parameters.terms) <= {"viscous", "coulomb", "drive_inertia"}
    for index, joint in enumerate(robot.joints):
        if joint.drive is not None:
            if len(inertias):
                inertia = max(theta[inertias[index]], 0.0) / joint.drive.inertia_ratio
                rotors[joint.name] = _round(inertia)
            friction = _friction(joint, index, parameters, theta)
            if friction is not None:
                frictions[joint.name] = friction
        if joint.drive is None or not is_basic or joint.dynamics is not None:
            dynamics[joint.name] = _dynamics(index, parameters, theta)
    changed = with_links(text, links, rotors, dynamics=dynamics, source=source)
    if not frictions:
        return changed
    return with_friction(changed, frictions, remark=IDENTIFIED, source=source)


def joint_friction(
    parameters: Parameters, theta: Sequence[float]
) -> dict[str, tuple[float, float]]:
    """Return viscous and Coulomb friction at each joint, by name; 0 where the model has none."""
    viscous, coulomb = parameters.of_kind("viscous"), parameters.of_kind("coulomb")
    return {
        name: (
            theta[viscous[index]] if len(viscous) else 0.0,
            theta[coulomb[index]] if len(coulomb) else 0.0,
        )
        for index, name in enumerate(parameters.joint_names)
    }


def _link(joint: Joint, values: Sequence[float]) -> Link:
    mass, *moment = (_round(value) for value in values[:4])
    bounds = joint.bounds
    if bounds is not None:
        mass = _inside(mass, bounds.mass_min_kg, bounds.mass_max_kg, mass)
        low, high = bounds.centre_of_mass_min_m, bounds.centre_of_mass_max_m
        if low is not None and high is not None:
            moment = [
                _moment_inside(part, mass, least, most)
                for part, least, most in zip(moment, low, high, strict=True)
            ]
    xx, xy, yy, xz, yz, zz = (_round(value) for value in values[4:])
    inertia = Inertia(xx=xx, xy=xy, yy=yy, xz=xz, yz=yz, zz=zz)
    old = joint.link
    return Link(
        mass_kg=mass,
        first_moment_kg_m=(moment[0], moment[1], moment[2]),
        inertia_kg_m2=inertia,
        capsule_radius_m=0.04 if old is None else old.capsule_radius_m,
        tip_m=None if old is None else old.tip_m,
    )


def _friction(
    joint: Joint, index: int, parameters: Parameters, theta: Sequence[float]
) -> Friction | None:
    if joint.drive is None or not {"viscous", "coulomb"} <= set(parameters.terms):
        return None
    viscous = theta[parameters.of_kind("viscous")[index]]
    coulomb = theta[parameters.of_kind("coulomb")[index]]
    return Friction(
        viscous_motor_nm_s_per_rad=_round(max(viscous, 0.0) / joint.drive.inertia_ratio),
        coulomb_joint_nm=_round(max(coulomb, 0.0)),
    )


def _dynamics(index: int, parameters: Parameters, theta: Sequence[float]) -> JointDynamics:
    """Return all terms of a joint, and of the coupled motor of the same number."""
    return JointDynamics(
        **{
            DYNAMICS[item.kind]: _round(theta[place])
            for place, item in enumerate(parameters.items)
            if item.joint == index and place >= parameters.inertial_count
        }
    )


def _inside(value: float, low: float | None, high: float | None, size: float) -> float:
    """Return a value at its bound, which may be beyond it by what the solver and rounding leave."""
    if low is not None and low - _BEYOND * size < value < low:
        return low
    if high is not None and high < value < high + _BEYOND * size:
        return high
    return value


def _moment_inside(moment: float, mass: float, low: float, high: float) -> float:
    """Return the moment of a centre of mass at its bound; a little inside, against rounding."""
    little = 1e-3 * _BEYOND * (high - low)
    centre = moment / mass
    kept = _inside(centre, low + little, high - little, high - low)
    return moment if kept == centre else mass * kept


def _round(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
